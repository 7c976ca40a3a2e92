"""The errors of Cohabit, and the way in which a stopped job leaves.

Every error derives from `CohabitError`. `Preempted` does not: it is no error.
"""

from __future__ import annotations


class CohabitError(Exception):
    """Any error of Cohabit. Its text says what is wrong, where, and what to do."""


class CheckpointError(CohabitError):
    """A checkpoint cannot be saved or read: no space, no permission, or another program than the one that saved it."""


class CheckpointDamaged(CheckpointError):
    """The bytes of a checkpoint are not those that were saved. `Job.load` then takes the one before."""


class MetricError(CohabitError, TypeError):
    """A metric is not a number."""


class MissingPackageError(CohabitError, ImportError):
    """An integration needs a package that is not installed."""


class Preempted(SystemExit):
    """Leaves a job that is being stopped, after it has saved its state: `raise cohabit.Preempted`.

    Let it through. It ends the process with the exit code 143 (128 + SIGTERM) and without a traceback, `finally`
    blocks and `with` blocks run, and Cohabit queues the job again without using a retry if it was stopped to
    continue later.

    It derives from `SystemExit`, not from `CohabitError`, so that `except Exception` around a training step does
    not swallow it. In a thread other than the main one it ends, like any `SystemExit`, only that thread.
    """

    EXIT_CODE = 143

    def __init__(self, code: int = EXIT_CODE) -> None:
        super().__init__(code)
