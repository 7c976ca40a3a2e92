"""The errors of Cohabit, and the way in which a stopped job leaves.

Every error derives from `CohabitError`. `Preempted` does not: it is no error.
"""

from __future__ import annotations


class CohabitError(Exception):
    """Any error of Cohabit. Its text says what is wrong, where, and what to do."""

    code: str = ""
    """The code of the command line's `--output json`, if the cluster or the client said it."""


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


class ConfigurationError(CohabitError):
    """There is no usable address or token: no configuration, a file that cannot be read, or another protocol."""


class UnreachableError(CohabitError, ConnectionError):
    """No head answers."""


class NotAllowedError(CohabitError, PermissionError):
    """The token is unknown, expired or revoked, or may not do this."""


class NotFoundError(CohabitError, LookupError):
    """There is no such job, node or file."""


class InvalidRequestError(CohabitError, ValueError):
    """The request cannot be carried out as it is: a wrong option, or more than the cluster has."""


class WrongStateError(CohabitError):
    """The job is not in a state in which this can be done."""


class TryLaterError(CohabitError):
    """Not possible now, but perhaps later: a limit is reached, or a node is away."""


class FileError(CohabitError, OSError):
    """A file or a directory cannot be read or written."""


class InternalError(CohabitError):
    """A bug in Cohabit, or a head of another version."""


class JobFailedError(CohabitError):
    """A job that was waited for did not complete. `record` is its last record."""

    def __init__(self, message: str, record: object = None) -> None:
        super().__init__(message)
        self.record = record


class RemoteCallError(CohabitError):
    """A call of `Executor` did not run, or left no result: its job failed, or it could not be loaded there."""


class VersionMismatchError(RemoteCallError):
    """The interpreter of a job is not that of the driver."""


class UnpicklableError(CohabitError, TypeError):
    """A function, an argument or a result cannot be pickled. The message names the object."""


class ResultTooLargeError(RemoteCallError):
    """A result is larger than what comes back."""


_BY_CODE: dict[str, type[CohabitError]] = {
    "usage": InvalidRequestError,
    "unsatisfiable": InvalidRequestError,
    "ambiguous": InvalidRequestError,
    "wrong_state": WrongStateError,
    "not_found": NotFoundError,
    "unreachable": UnreachableError,
    "not_allowed": NotAllowedError,
    "configuration": ConfigurationError,
    "unavailable": TryLaterError,
    "input_output": FileError,
    "protocol": InternalError,
    "internal": InternalError,
}


def of(code: str, message: str) -> CohabitError:
    """The error with a code of the command line's `--output json`. The native half raises it."""
    error = _BY_CODE.get(code, CohabitError)(message)
    error.code = code
    return error
