"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from .records import JobRecord

_COLORS = {"COMPLETED": "#2e7d32", "RUNNING": "#1565c0", "PENDING": "#6d4c41", "HELD": "#6d4c41"}


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table. Everything in it is text of others, so nothing of it is markup."""
    head = "".join(f"<th>{escape(it)}</th>" for it in headings)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def jobs_table(records: Iterable[JobRecord]) -> str:
    rows = [[it.id, it.name, _State(it.state), _progress(it), it.reason] for it in records]
    return table(["job", "name", "state", "progress", "reason"], rows)


class _State(str):
    """A state, which has a color."""


def _cell(cell: Any) -> str:
    if isinstance(cell, _State):
        return f'<span style="color:{_COLORS.get(cell, "#c62828")};font-weight:600">{escape(cell)}</span>'
    if cell is None:
        return ""
    return escape(f"{cell:.6g}" if isinstance(cell, float) else str(cell))


def _progress(record: JobRecord) -> str:
    if record.members is not None:
        return ", ".join(f"{count} {state}" for state, count in record.members.items())
    progress = record.progress
    if progress is None:
        return ""
    total = "" if progress.total is None else f"/{progress.total}"
    metrics = "".join(f", {name} {value:.4g}" for name, value in progress.metrics.items())
    return f"{progress.step}{total}{metrics}"
