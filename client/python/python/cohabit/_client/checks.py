"""Arguments that never reach the cluster if they are wrong."""

from __future__ import annotations

from typing import Optional

from .._job.spans import seconds
from ..errors import InvalidRequestError
from .options import Span


def timeout_seconds(timeout: Optional[Span]) -> Optional[float]:
    """How long to wait, in seconds; 0 only looks.

    Raises:
        InvalidRequestError: It is no span of time.
    """
    if timeout is None:
        return None
    if isinstance(timeout, (int, float)) and timeout == 0:
        return 0.0
    try:
        return seconds(timeout)
    except ValueError as error:
        raise InvalidRequestError(f"timeout: {error}") from None


def check_whole_number(name: str, value: Optional[int], least: int = 0) -> None:
    """Checks a number that may be left out.

    Raises:
        InvalidRequestError: It is no whole number, or below the least one.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise InvalidRequestError(f"{name}={value!r}: expected a whole number, at least {least}")
