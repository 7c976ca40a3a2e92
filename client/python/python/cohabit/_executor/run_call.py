"""Runs one call of an executor in a job.

Imports little before the call does: a process is started for each call.
"""

from __future__ import annotations

import os
import sys

from .envelope import (
    CALLS,
    RESULT,
    RESULTS,
    SENT,
    Outcome,
    Table,
    header_problem,
    is_batch,
    loads,
    read_blob,
    too_large,
    write_durably,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROGRAM = "import sys; from cohabit._executor.run_call import main; sys.exit(main(*sys.argv[1:]))"
"""Runs a call, with the folder of its batch and the nonce in it as arguments. Quicker than `python -m`."""


def main(folder: str, nonce: str) -> int:
    index = int(os.environ.get("COHABIT_ARRAY_INDEX", "0"))
    # The call may change the directory.
    home = home_of(folder, nonce)
    target = os.path.join(home, RESULT if folder == SENT else os.path.join(RESULTS, str(index)))
    outcome = _run(os.path.join(home, CALLS), index)
    write_durably(target, pickled(outcome))
    return 0 if outcome.succeeded else 1


def home_of(folder: str, nonce: str) -> str:
    """Where the calls are: the driver's folder, or the working directory if they were sent along."""
    if folder == SENT:
        return os.getcwd()
    if not is_batch(folder, nonce):
        node = os.uname().nodename
        sys.exit(
            f"{node} does not see {folder} of the driver: give Executor(shared=False), so that calls travel"
        )
    return folder


def _run(calls: str, index: int) -> Outcome:
    try:
        with open(calls, "rb") as file:
            table = Table.read(file)
            problem = header_problem(table.header)
            if problem is not None:
                return Outcome.refused("VersionMismatchError", problem)
            become_like(table.header)
            function = read_blob(file, table.functions[table.calls[index][0]])
            arguments = read_blob(file, table.calls[index][1])
    except OSError as error:
        return Outcome.refused("RemoteCallError", f"the call cannot be read: {error}")
    return run(function, arguments, table.header)


def run(pickled_function: bytes, pickled_arguments: bytes, header: dict[str, Any]) -> Outcome:
    """Runs a call of the driver that this header describes."""
    try:
        function, (args, kwargs) = loads(pickled_function), loads(pickled_arguments)
    except Exception as error:
        return Outcome.refused("RemoteCallError", _not_loaded(error, header))
    try:
        return Outcome.of(function(*args, **kwargs))
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code == 143:
            raise  # The job is being stopped: it is queued again.
        return Outcome.raised(error)


def become_like(header: dict[str, Any]) -> None:
    """What the function imports is found where the driver finds it, if that is here, too."""
    if os.path.isdir(header["directory"]):
        os.chdir(header["directory"])
    sys.path[1:1] = [path for path in header["path"] if path not in sys.path and os.path.exists(path)]


def _not_loaded(error: Exception, header: dict[str, Any]) -> str:
    text = f"the call cannot be loaded by {sys.executable} on {os.uname().nodename}: {type(error).__name__}: {error}"
    missing = getattr(error, "name", None)
    if isinstance(error, ImportError) and missing:
        text += (
            f"; install {missing} there, or let its functions travel: cloudpickle.register_pickle_by_value"
        )
    return f"{text} (the driver runs {header['executable']} on {header['host']})"


def pickled(outcome: Outcome) -> bytes:
    """The outcome as it travels: with a reason in its place where it cannot."""
    try:
        data = outcome.pickled()
    except Exception as error:
        problem = f"the result, a {type(outcome.value).__name__}, cannot be pickled: {error}"
        return Outcome.refused("UnpicklableError", problem).pickled()
    problem_of_size = too_large(len(data))
    return (
        data if problem_of_size is None else Outcome.refused("ResultTooLargeError", problem_of_size).pickled()
    )
