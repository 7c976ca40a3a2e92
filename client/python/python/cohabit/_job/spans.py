"""Spans of time as people write them: "10m", 600, timedelta(minutes=10)."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(span: float | str | timedelta) -> float:
    """The span in seconds. Text is a sequence of numbers with units: "90s", "10m", "1h30m", "2d"; without one, seconds.

    Raises:
        ValueError: It is not a span, or it is not above zero.
    """
    if isinstance(span, str):
        length = _parse(span)
    elif isinstance(span, timedelta):
        length = span.total_seconds()
    elif isinstance(span, (int, float)) and not isinstance(span, bool):
        length = float(span)
    else:
        raise _error(span)
    if not 0 < length < float("inf"):
        raise _error(span)
    return length


@lru_cache(maxsize=64)
def _parse(text: str) -> float:
    import re

    compact = text.replace(" ", "")
    parts = re.findall(r"(\d+(?:\.\d+)?)([a-z]*)", compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        raise _error(text)
    if len(parts) == 1 and not parts[0][1]:
        return float(parts[0][0])
    if any(unit not in _SECONDS for _, unit in parts):
        raise _error(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _error(span: object) -> ValueError:
    return ValueError(
        f"{span!r} is not a span of time above zero: "
        "give seconds, a timedelta, or a text such as '90s', '10m' or '1h30m'"
    )
