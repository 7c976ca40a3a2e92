"""Which of the values that a library logs are metrics."""

from __future__ import annotations

from ..errors import MetricError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def numeric(logs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Those that are numbers. Libraries also log texts and lists."""
    from .._job import metrics

    found: dict[str, Any] = {}
    for name, value in (logs or {}).items():
        try:
            metrics.check_name(name)
            found.update(metrics.check({name: value}))
        except MetricError:
            pass
    return found
