"""Cohabit for Python: the helper for training scripts, and the client of a cluster.

    import cohabit

    with cohabit.job() as job:                          # does nothing outside of a cluster
        state = job.load()                              # the latest checkpoint, or None
        for step in job.track(range(job.start, 1000)):  # progress, rate, remaining time
            loss = train_step()
            job.log(loss=loss)                          # metrics
            if job.should_checkpoint(every="10m"):      # also when the job is about to be stopped
                job.save(step, state)

Import it before PyTorch and other packages that take seconds: from then on a warning signal does not end the script.
Importing this module loads nothing else; `cohabit.Client` and `cohabit.Executor` load their modules when first used.
"""

from __future__ import annotations

import os as _os

from .errors import (
    CheckpointDamaged,
    CheckpointError,
    CohabitError,
    ConfigurationError,
    FileError,
    InternalError,
    InvalidRequestError,
    JobFailedError,
    MetricError,
    MissingPackageError,
    NotAllowedError,
    NotFoundError,
    Preempted,
    RemoteCallError,
    ResultTooLargeError,
    TryLaterError,
    UnpicklableError,
    UnreachableError,
    VersionMismatchError,
    WrongStateError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._job.job import Job as Job
    from .aio import AsyncClient as AsyncClient
    from .client import Client as Client
    from .client import JobHandle as JobHandle
    from .executor import Executor as Executor

# The warning signal would end a script that is still importing PyTorch.
if "COHABIT_JOB_ID" in _os.environ:
    from ._job import signals as _signals

    _signals.survive_warnings()

# Public names by the module that has them, loaded on first use.
_LAZY = {
    "Job": "._job.job",
    "Client": ".client",
    "Executor": ".executor",
    "JobHandle": ".client",
    "AsyncClient": ".aio",
    "__version__": "._version",
}

__all__ = [
    "AsyncClient",
    "CheckpointDamaged",
    "CheckpointError",
    "Client",
    "CohabitError",
    "ConfigurationError",
    "Executor",
    "FileError",
    "InternalError",
    "InvalidRequestError",
    "Job",
    "JobFailedError",
    "JobHandle",
    "MetricError",
    "MissingPackageError",
    "NotAllowedError",
    "NotFoundError",
    "Preempted",
    "RemoteCallError",
    "ResultTooLargeError",
    "TryLaterError",
    "UnpicklableError",
    "UnreachableError",
    "VersionMismatchError",
    "WrongStateError",
    "job",
    "worker_init",
]


def job(
    *,
    folder: str | _os.PathLike[str] | None = None,
    keep: int | None = None,
    all_ranks: bool | None = None,
) -> Job:
    """The job that this process is a part of. Until it is closed, every call returns the same object.

    Args:
        folder: Where checkpoints are saved. Default: the directory that Cohabit keeps for the job; outside of a job
            nothing is saved without it.
        keep: How many checkpoints to keep, at least 1. Default: 3.
        all_ranks: Whether every rank saves and loads a state of its own, for sharded states. Default: only rank 0
            saves, and all ranks load what it saved.

    Raises:
        CohabitError: The job is open already, with other arguments.
    """
    from ._job.job import open_job

    return open_job(folder=folder, keep=keep, all_ranks=all_ranks)


def worker_init(worker_id: int = 0) -> None:
    """Lets a process for loading data survive the stop of its job, so that the training can take its last step.

    Needed only where such processes are not forked, and the loader is not what `Job.track` iterates over:
    `DataLoader(..., worker_init_fn=cohabit.worker_init)`. The process ends with the training.
    """
    from ._job.signals import leave_to_parent

    leave_to_parent()


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'cohabit' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
