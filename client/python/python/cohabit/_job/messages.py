"""Messages to the person who reads the job's standard error."""

from __future__ import annotations

import sys

_said: set[str] = set()


def warn(text: str) -> None:
    """Writes a warning to standard error. A closed or full standard error does not stop a training."""
    try:
        sys.stderr.write(f"cohabit: warning: {text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def warn_of_exception(text: str, error: BaseException) -> None:
    """Writes a warning with the traceback of what caused it."""
    import traceback

    warn(f"{text}:\n{''.join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()}")


def warn_once(text: str) -> None:
    """Writes this warning, unless this process has written it before."""
    if text not in _said:
        _said.add(text)
        warn(text)
