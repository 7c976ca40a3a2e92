"""What a job printed last, for the message of its failure."""

from __future__ import annotations

from collections.abc import Iterable

from .output import Decoder

LINES = 10
"""So many lines are asked for."""
CHARACTERS = 2_000
"""And so much of them is shown."""


def last_words(printed: Iterable[tuple[str, bytes]]) -> str:
    """The end of a message: the last lines of standard error; empty if there are none."""
    decoder = Decoder("stderr")
    text = ("".join([decoder.text(piece) for piece in printed]) + decoder.end()).strip()
    if not text:
        return ""
    lines = text[-CHARACTERS:].splitlines()
    return "; it printed last:\n" + "\n".join(f"    {line}" for line in lines)
