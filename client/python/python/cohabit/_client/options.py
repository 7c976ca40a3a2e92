"""Describes jobs by keywords: each is a flag of `cohabit submit`, which its help and docs/OPERATIONS.md explain."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Callable, TypedDict, Union

from .._job.spans import seconds
from ..errors import InvalidRequestError

if TYPE_CHECKING:
    from ..client import JobHandle
    from .records import JobRecord

Path = Union[str, "os.PathLike[str]"]
Size = Union[int, str]
"""Bytes, or a text such as "20G"."""
Span = Union[int, float, str, timedelta]
"""Seconds, a timedelta, or a text such as "10m"."""
Reference = Union[int, str, "JobHandle", "JobRecord"]
"""A job: its number, `"12.5"` for a member of an array, its name, a `JobHandle`, or a record."""


_LEAST_MEMORY = 1 << 20


class SharedOptions(TypedDict, total=False):
    """The keywords of `Client.submit` that calls of an executor have, too."""

    gpus: float  # in total; 0.5 shares one, 0 needs none
    gpu_memory: Size  # on each GPU
    cpus: int | str  # on each node; "2..12" lets the scheduler change them
    memory: Size  # of each node; "20G..125G" lets the scheduler change it
    nodes: int | str  # or "any"
    launch: str  # "per-node" or "per-gpu"
    exclusive: bool
    enforced: bool
    cap_compute: bool
    gpu_processes: int
    max_slowdown: float
    time: Span  # the longest run of an attempt
    depends_on: Reference | Iterable[Reference]  # or texts such as "afterany:12"
    env: Mapping[str, str] | Iterable[str]  # values, or names whose values are copied
    priority: int
    qos: str  # "low", "normal", "high"
    project: str
    begin: str | datetime | timedelta
    hold: bool
    retries: int
    requeue_on_timeout: bool
    stall_timeout: Span
    on_stall: str  # "warn" or "requeue"
    checkpoint: Path
    stop_signal: str  # such as "SIGUSR1@60s"
    preemptible: bool
    grace: Span
    stdout: Path
    stderr: Path
    notify: str | Iterable[str]
    slurm_env: bool
    group: str
    model: Path
    iterations: int


class JobOptions(SharedOptions, total=False):
    """The keywords of `Client.submit`."""

    name: str
    array: int | str | Sequence[int]  # members: a count, or indices such as "0-99%4", range(3) or [1, 5]
    at_once: int
    each_line: Path
    from_json: Path
    workdir: Path
    snapshot: str | bool  # a copy of the code: True or "git", "all", "no"
    idempotency_key: str


def arguments(command: Sequence[Path] | Path, options: Mapping[str, Any]) -> list[str]:
    """The arguments of `cohabit submit` for this command and these keywords.

    Raises:
        InvalidRequestError: A keyword or a value is not known.
    """
    flags: list[str] = []
    for keyword, value in options.items():
        if keyword not in _WRITERS:
            raise InvalidRequestError(_unknown(keyword))
        if value is not None:
            flags += _written(keyword, value)
    return [*flags, "--", *_command(command)]


def _command(command: Sequence[Path] | Path) -> list[str]:
    if isinstance(command, (str, os.PathLike)):
        program = os.fspath(command)
        if any(letter.isspace() for letter in program.strip()) and not os.path.exists(program):
            import shlex

            raise InvalidRequestError(
                f"the command {program!r} is one word with spaces: give a list, such as {shlex.split(program)!r}"
            )
        return [program]
    words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in command]
    if not words:
        raise InvalidRequestError(
            "the command is empty: give a program and its arguments, such as ['python', 'train.py']"
        )
    return words


def _written(keyword: str, value: Any) -> list[str]:
    try:
        return _WRITERS[keyword](_flag(keyword), value)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidRequestError(f"{keyword}={value!r}: {error}") from None


def _flag(keyword: str) -> str:
    return "--" + {"gpu_memory": "gpu-mem", "memory": "mem"}.get(keyword, keyword).replace("_", "-")


def _unknown(keyword: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(
        {"gpu_mem": "gpu_memory", "mem": "memory"}.get(keyword, keyword), _WRITERS, 1, 0.7
    )
    advice = f": did you mean {close[0]}?" if close else f": use one of {', '.join(sorted(_WRITERS))}"
    return f"a job has no option {keyword!r}{advice}"


def _text(flag: str, value: Any) -> list[str]:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("expected a text or a number")
    return [f"{flag}={value}"]


def _path(flag: str, value: Path) -> list[str]:
    return [f"{flag}={os.fspath(value)}"]


def _size(flag: str, value: Size) -> list[str]:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("expected bytes, or a text such as '20G'")
    if isinstance(value, int) and value < _LEAST_MEMORY:
        raise ValueError(f"a number counts bytes: for gigabytes give the text '{value}G'")
    return [f"{flag}={value}B" if isinstance(value, int) else f"{flag}={value}"]


def _span(flag: str, value: Span) -> list[str]:
    return [f"{flag}={math.ceil(seconds(value))}s" if not isinstance(value, str) else f"{flag}={value}"]


def _switch(flag: str, value: bool) -> list[str]:
    if not isinstance(value, bool):
        raise ValueError("expected True or False")
    return [flag] if value else []


def _preemptible(flag: str, value: bool) -> list[str]:
    return _switch(flag, value) or ["--no-preemptible"]


def _snapshot(flag: str, value: str | bool) -> list[str]:
    if isinstance(value, bool):
        return [f"{flag}={'git' if value else 'no'}"]
    return _text(flag, value)


def _array(flag: str, value: int | str | Sequence[int]) -> list[str]:
    if isinstance(value, range):
        if not value or value.step < 0:
            raise ValueError("expected a range of at least one index that goes up")
        return [f"{flag}={value.start}-{value[-1]}:{value.step}"]
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise ValueError("expected at least 1 member")
        return [f"{flag}=0-{value - 1}"]
    if isinstance(value, (list, tuple)):
        if not value or not all(isinstance(index, int) and not isinstance(index, bool) for index in value):
            raise ValueError("expected at least one index, each a whole number")
        return [f"{flag}={','.join(map(str, value))}"]
    return _text(flag, value)


def _environment(flag: str, value: Mapping[str, str] | Iterable[str]) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{flag}={name}={each}" for name, each in value.items()]
    if isinstance(value, str):
        raise ValueError("expected a dict of values, or a list of names")
    return [f"{flag}={name}" for name in value]


def _dependencies(flag: str, value: Reference | Iterable[Reference]) -> list[str]:
    several = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    return [f"{flag}={getattr(each, 'id', each)}" for each in several]


def _begin(flag: str, value: str | datetime | timedelta) -> list[str]:
    if isinstance(value, timedelta):
        return [f"{flag}=now+{math.ceil(value.total_seconds())}s"]
    if isinstance(value, datetime):
        # A time without a zone is local, as everywhere in Python.
        return [
            f"{flag}={value.astimezone(timezone.utc).isoformat(timespec='seconds').replace('+00:00', 'Z')}"
        ]
    return _text(flag, value)


def _list(flag: str, value: str | Iterable[str]) -> list[str]:
    return [f"{flag}={each}" for each in ([value] if isinstance(value, str) else value)]


_WRITERS: dict[str, Callable[[str, Any], list[str]]] = {
    **dict.fromkeys(
        (
            "name",
            "gpus",
            "cpus",
            "nodes",
            "launch",
            "gpu_processes",
            "max_slowdown",
            "at_once",
            "priority",
            "qos",
        ),
        _text,
    ),
    **dict.fromkeys(
        ("project", "retries", "on_stall", "stop_signal", "group", "iterations", "idempotency_key"), _text
    ),
    **dict.fromkeys(("each_line", "from_json", "workdir", "checkpoint", "stdout", "stderr", "model"), _path),
    **dict.fromkeys(
        ("exclusive", "enforced", "cap_compute", "hold", "requeue_on_timeout", "slurm_env"), _switch
    ),
    **dict.fromkeys(("time", "stall_timeout", "grace"), _span),
    **dict.fromkeys(("gpu_memory", "memory"), _size),
    "array": _array,
    "begin": _begin,
    "depends_on": _dependencies,
    "env": _environment,
    "notify": _list,
    "preemptible": _preemptible,
    "snapshot": _snapshot,
}
