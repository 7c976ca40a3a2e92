"""What the cluster says of jobs and nodes: the documents of `--output json`, with types for what scripts use most.

Each has `document`, the whole of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional

ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"})
"""The states in which jobs have ended."""


@dataclass(frozen=True)
class Progress:
    """How far a job has come."""

    step: int
    total: Optional[int]
    rate: Optional[float]
    """Steps in a second."""
    remaining: Optional[float]
    """Seconds until the last step, at this rate."""
    metrics: dict[str, float]

    @classmethod
    def read(cls, document: dict[str, Any]) -> Progress:
        metrics = {name: float(value) for name, value in document["metrics"].items()}
        return cls(document["step"], document["total"], document["rate"], document["eta_s"], metrics)


@dataclass(frozen=True)
class JobRecord:
    """A job, or an array as a whole, as it was when it was asked for."""

    id: str
    name: str
    user: str
    state: str
    """PENDING, HELD, RUNNING, COMPLETING, or one of `ENDED`."""
    reason: str
    reason_code: str
    attempt: int
    exit_code: Optional[int]
    signal: Optional[int]
    submitted_at: datetime
    started_at: Optional[datetime]
    ended_at: Optional[datetime]
    nodes: tuple[str, ...]
    devices: tuple[str, ...]
    progress: Optional[Progress]
    members: Optional[dict[str, int]]
    """Of an array: how many members are in which state."""
    document: dict[str, Any] = field(repr=False, compare=False)

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def succeeded(self) -> bool:
        return self.state == "COMPLETED"

    @classmethod
    def read(cls, document: dict[str, Any]) -> JobRecord:
        progress, array = document["progress"], document.get("array")
        return cls(
            id=str(document["id"]),
            name=document["name"],
            user=document["user"],
            state=document["state"],
            reason=document["reason"],
            reason_code=document["reason_code"],
            attempt=document["attempt"],
            exit_code=document["exit_code"],
            signal=document["signal"],
            submitted_at=time(document["submitted_at"]),
            started_at=_time_or_none(document["started_at"]),
            ended_at=_time_or_none(document["ended_at"]),
            nodes=tuple(document["nodes"]),
            devices=tuple(document["devices"]),
            progress=None if progress is None else Progress.read(progress),
            members=None if array is None else dict(array["states"]),
            document=document,
        )

    def __str__(self) -> str:
        return f"job {self.id} ({self.name}) {self.state}: {self.reason}"

    def _repr_html_(self) -> str:
        from .html import jobs_table

        return jobs_table([self])


@dataclass(frozen=True)
class NodeRecord:
    """A node of the cluster."""

    name: str
    state: str
    document: dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def read(cls, document: dict[str, Any]) -> NodeRecord:
        return cls(document["name"], document["state"], document)


@dataclass(frozen=True)
class Explanation:
    """Why a job waits, or how it ended."""

    sentences: tuple[str, ...]
    history: tuple[tuple[datetime, str], ...]
    document: dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Explanation:
        history = tuple((time(event["at"]), event["text"]) for event in document["story"])
        return cls(tuple(document["sentences"]), history, document)

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def time(text: str) -> datetime:
    """A time of a document, in UTC."""
    # Python 3.9 knows no Z, and no nanoseconds.
    whole, _, rest = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{rest[:6]:0<6}+00:00")


def _time_or_none(text: Optional[str]) -> Optional[datetime]:
    return None if text is None else time(text)
