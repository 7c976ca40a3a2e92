"""Progress reports: JSON lines to `$COHABIT_PROGRESS`, which may be a file or a FIFO.

A report never delays or stops the training: the path is opened without blocking, and what does not fit is kept for
the next report.
"""

from __future__ import annotations

import json
import os

from .messages import warn_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The cluster keeps so many metrics of a line, and names of so many bytes.
MAX_METRICS = 64
MAX_NAME_BYTES = 100


class ProgressFile:
    """Appends lines, each with one write."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        self._is_torn = False
        # Linux opens a FIFO for reading and writing immediately, even if it has no reader yet.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            warn_once(f"progress is not reported, because {path} cannot be opened: {error.strerror}")

    @property
    def is_open(self) -> bool:
        """Whether lines can be written."""
        return self._file is not None

    def write(self, step: int | None, total: int | None, metrics: Mapping[str, float]) -> bool:
        """Writes a line. False if there was no room for it."""
        if self._file is None:
            return True
        fields: dict[str, float] = {}
        if step is not None:
            fields["step"] = step
        if total is not None:
            fields["total"] = total
        fields.update(metrics)
        line = (json.dumps(fields) + "\n").encode()
        # A line that was cut off must not spoil this one.
        line = b"\n" + line if self._is_torn else line
        try:
            written = os.write(self._file, line)
        except BlockingIOError:
            return False
        except OSError as error:
            warn_once(f"a progress report was not written to {self._path}: {error.strerror}")
            return False
        self._is_torn = written < len(line)
        return not self._is_torn

    def close(self) -> None:
        """Closes the file; later lines are dropped."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
