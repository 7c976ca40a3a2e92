"""Metrics of jobs as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import MissingPackageError
from .records import time

if TYPE_CHECKING:
    import pandas
    import polars

_FIXED = ("job", "attempt", "step", "time")


class Metrics:
    """What jobs have reported, a row for each report: `job`, `attempt`, `step`, `time`, and a column for each metric.

    `columns` has them by name; a metric that was not reported with a step is `None` there.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        rows = [(series, report) for series in document["series"] for report in series["reports"]]
        names = list(dict.fromkeys(name for _, report in rows for name in report["metrics"]))
        self.names: list[str] = names
        """The names of the metrics."""
        self.columns: dict[str, list[Any]] = {
            "job": [str(series["job"]) for series, _ in rows],
            "attempt": [series["attempt"] for series, _ in rows],
            "step": [report["step"] for _, report in rows],
            "time": [time(report["time"]) for _, report in rows],
            **{name: [_number(report["metrics"].get(name)) for _, report in rows] for name in names},
        }

    def __len__(self) -> int:
        return len(self.columns["step"])

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]

    def to_pandas(self) -> pandas.DataFrame:
        """A table of pandas, which has to be installed."""
        try:
            import pandas
        except ImportError as error:
            raise MissingPackageError("to_pandas needs the package pandas: pip install pandas") from error
        return pandas.DataFrame(self.columns)

    def to_polars(self) -> polars.DataFrame:
        """A table of polars, which has to be installed."""
        try:
            import polars
        except ImportError as error:
            raise MissingPackageError("to_polars needs the package polars: pip install polars") from error
        return polars.DataFrame(self.columns)

    def __repr__(self) -> str:
        return f"Metrics({len(self)} reports of {', '.join(self.names) or 'nothing'})"

    def _repr_html_(self) -> str:
        from .html import table

        last = range(max(0, len(self) - 20), len(self))
        return table([*_FIXED, *self.names], [[self.columns[it][row] for it in self.columns] for row in last])


def _number(value: Any) -> Any:
    # JSON has no NaN: documents have these as texts.
    return float(value) if isinstance(value, str) else value
