"""A progress bar on a terminal, redrawn in one line."""

from __future__ import annotations

import shutil
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDTH = 20


class Bar:
    """Draws to standard error."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._started_at = time.monotonic()
        self._drawn = 0
        self._text = ""

    def draw(self, step: int, total: int | None, metrics: Mapping[str, float]) -> None:
        """Draws the present state over the last one."""
        elapsed = time.monotonic() - self._started_at
        text = bar_text(step, total, step - self._start, elapsed, metrics)
        self._text = text[: max(shutil.get_terminal_size().columns - 1, 20)]
        self.redraw()

    def redraw(self) -> None:
        """Draws the last state."""
        self._write("\r" + self._text.ljust(self._drawn))
        self._drawn = len(self._text)

    def clear(self) -> None:
        """Makes its line empty."""
        if self._drawn:
            self._write("\r" + " " * self._drawn + "\r")
            self._drawn = 0

    def close(self) -> None:
        """Ends the line, if there is one."""
        if self._drawn:
            self._write("\n")
            self._drawn = 0

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            pass


def bar_text(step: int, total: int | None, done: int, elapsed: float, metrics: Mapping[str, float]) -> str:
    """For example ` 12% |##                  | 120/1000 [00:12<01:28, 10.0 steps/s, loss=0.41]`."""
    rate = done / elapsed if elapsed > 0 else 0.0
    speed = [f"{rate:.3g} steps/s" if rate >= 1 or not rate else f"{1 / rate:.3g} s/step"]
    notes = ", ".join(speed + [f"{name}={value:.4g}" for name, value in metrics.items()])
    if not total:
        return f"{step} steps [{_clock(elapsed)}, {notes}]"
    part = min(step / total, 1.0)
    filled = "#" * int(part * _WIDTH)
    left = _clock((total - step) / rate) if rate else "?"
    return f"{part:4.0%} |{filled:<{_WIDTH}}| {step}/{total} [{_clock(elapsed)}<{left}, {notes}]"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
