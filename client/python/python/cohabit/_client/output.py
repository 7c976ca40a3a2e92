"""Output of jobs as text."""

from __future__ import annotations

import codecs
from typing import Optional

from ..errors import InvalidRequestError

_STREAMS = ("stdout", "stderr")


class Decoder:
    """Text from the pieces of two streams, whose characters may be cut anywhere."""

    def __init__(self, stream: Optional[str]) -> None:
        if stream is not None and stream not in _STREAMS:
            raise InvalidRequestError(
                f"stream={stream!r}: use 'stdout' or 'stderr', or leave it out for both"
            )
        self._only = stream
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in _STREAMS}

    def text(self, printed: tuple[str, bytes]) -> str:
        stream, piece = printed
        return self._decoders[stream].decode(piece) if self._only in (None, stream) else ""

    def end(self) -> str:
        return "".join(decoder.decode(b"", final=True) for decoder in self._decoders.values())
