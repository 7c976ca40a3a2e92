"""Metrics: what a script may log, as numbers."""

from __future__ import annotations

from ..errors import MetricError
from .messages import warn_once
from .progress import MAX_METRICS, MAX_NAME_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Types that need no look at the value.
PLAIN = frozenset((float, int, bool))

_RESERVED = ("step", "total")


def check(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Values that can be made numbers later, when a report is due: the number of a tensor on a GPU costs a wait.

    Raises:
        MetricError: A value is not one number.
    """
    return {name: _checked(name, value) for name, value in metrics.items()}


def _checked(name: str, value: Any) -> Any:
    if type(value) in PLAIN:
        return value
    size = value.numel() if hasattr(value, "numel") else getattr(value, "size", 1)
    if isinstance(value, (str, bytes, complex)) or not (
        hasattr(value, "__float__") or hasattr(value, "item")
    ):
        raise _error(name, value, f"it is a {type(value).__name__}")
    if isinstance(size, int) and size != 1:
        raise _error(name, value, f"it has {size} values")
    # A tensor must not keep the graph of its step alive.
    return value.detach() if hasattr(value, "detach") else value


def numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics as numbers that JSON can hold."""
    # Another thread may log meanwhile.
    found = {name: _number(name, value) for name, value in dict(metrics).items()}
    long = [name for name in found if len(name.encode()) > MAX_NAME_BYTES]
    for name in long:
        warn_once(f"the metric {name[:40]}… is not kept: its name has more than {MAX_NAME_BYTES} bytes")
        del found[name]
    if len(found) > MAX_METRICS:
        warn_once(f"{len(found)} metrics were logged together, and only {MAX_METRICS} of them are kept")
        found = dict(list(found.items())[:MAX_METRICS])
    return found


def check_name(name: object) -> None:
    """Refuses names that a report uses itself.

    Raises:
        MetricError: The name cannot be used.
    """
    if not isinstance(name, str):
        raise MetricError(f"the name of a metric is a text, not {name!r}: write job.log({{'loss': loss}})")
    if name in _RESERVED:
        raise MetricError(
            f"{name!r} is not a metric: give it by its name, as in job.log(metrics, step=120, total=1000)"
        )


def _number(name: str, value: Any) -> float:
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    try:
        scalar: Any = value
        return float(scalar.item() if hasattr(scalar, "item") else scalar)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise _error(name, value, str(error)) from error


def _error(name: object, value: object, why: str) -> MetricError:
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:60]}…"
    return MetricError(f"the metric {name!r} must be one number, and {text} is not: {why}")
