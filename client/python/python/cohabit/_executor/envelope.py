"""How calls and results lie in files: what driver and job have in common.

A file of calls has a table behind its length; then the pickles. Functions that several calls share are there once. A
result is a file of its own. All of these are pickles: they stay among the jobs and the driver of one user.

A job imports this for each call, so it imports little itself.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pickle
    from typing import IO, Any, Optional

    Place = tuple[int, int]
    """Where a pickle begins behind the table, and how long it is."""

else:
    # The module `pickle` is this one with a slower twin, whose import takes a third of the time of a short call.
    try:
        import _pickle as pickle
    except ImportError:  # Another Python than CPython.
        import pickle

loads = pickle.loads

CALLS = "calls"
NONCE = "nonce"
RESULTS = "results"
RESULT = "cohabit-result"
KEY = "key"
LARGEST_RESULT = 1 << 30
FORMAT = 1
SENT = "."
"""Instead of the driver's folder: what it has was sent to the working directory of the job."""


class Table:
    """Where everything is in a file of calls: of each call the number of its function, and its arguments."""

    def __init__(
        self, header: dict[str, Any], functions: list[Place], calls: list[tuple[int, Place]]
    ) -> None:
        self.header = header
        self.functions = functions
        self.calls = calls

    def write(self, file: IO[bytes]) -> None:
        table = pickle.dumps((self.header, self.functions, self.calls), protocol=4)
        file.write(len(table).to_bytes(8, "big") + table)

    @classmethod
    def read(cls, file: IO[bytes]) -> Table:
        return cls(*pickle.loads(file.read(int.from_bytes(file.read(8), "big"))))


def read_blob(file: IO[bytes], place: Place) -> bytes:
    """The pickle at a place."""
    file.seek(0)
    start = 8 + int.from_bytes(file.read(8), "big")
    file.seek(start + place[0])
    return file.read(place[1])


def header() -> dict[str, Any]:
    """What the job has to know of the driver."""
    import cloudpickle

    return {
        "format": FORMAT,
        "python": list(sys.version_info[:2]),
        "cloudpickle": cloudpickle.__version__,
        "executable": sys.executable,
        "host": os.uname().nodename,
        "directory": os.getcwd(),
        "path": [os.path.abspath(path) for path in sys.path],
    }


def header_problem(told: dict[str, Any]) -> Optional[str]:
    """Why calls of this driver cannot run in this interpreter."""
    here = f"{sys.executable} on {os.uname().nodename}"
    driver = f"the driver, {told['executable']} on {told['host']}"
    if told["format"] != FORMAT:
        return f"{here} has another version of the package cohabit than {driver}: install the same one"
    theirs, ours = tuple(told["python"]), sys.version_info[:2]
    if theirs != ours:
        return (
            f"{driver}, is Python {theirs[0]}.{theirs[1]}, and {here} is Python {ours[0]}.{ours[1]}: "
            "give Executor(python=…) the path of the same version"
        )
    return None


def port_file(attempt: int) -> str:
    """Where an interpreter says on which port it listens."""
    return f"cohabit-port-{attempt}"


def is_batch(folder: str, nonce: str) -> bool:
    """Whether this folder is that of the driver, and no other of the same name on another machine."""
    try:
        with open(os.path.join(folder, NONCE), encoding="ascii") as file:
            return file.read() == nonce
    except OSError:
        return False


def write_durably(path: str, data: bytes) -> None:
    """Writes a file that is there as a whole or not at all."""
    unfinished = f"{path}.{os.getpid()}.unfinished"
    with open(unfinished, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def too_large(length: int) -> Optional[str]:
    if length <= LARGEST_RESULT:
        return None
    return (
        f"the result has {length >> 20} MiB, and at most {LARGEST_RESULT >> 20} MiB come back: "
        "write it to a file, and return its path"
    )


class Outcome:
    """How a call ended: a value, an exception with its traceback, or why it did not run."""

    def __init__(self, kind: str, value: Any, text: str = "") -> None:
        self.kind = kind
        self.value = value
        self.text = text

    @property
    def succeeded(self) -> bool:
        return self.kind == "value"

    @classmethod
    def of(cls, value: Any) -> Outcome:
        return cls("value", value)

    @classmethod
    def raised(cls, error: BaseException) -> Outcome:
        import traceback

        # The frames of this package say nothing to people.
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        try:
            pickle.loads(_pickle(error))
        except Exception:
            return cls("unpicklable", f"{type(error).__name__}: {error}", text)
        return cls("exception", error, text)

    @classmethod
    def refused(cls, error: str, message: str) -> Outcome:
        """`error` is the name of a class in `cohabit.errors`."""
        return cls("refused", error, message)

    def pickled(self) -> bytes:
        return _pickle((self.kind, self.value, self.text))

    @classmethod
    def read(cls, data: bytes) -> Outcome:
        return cls(*pickle.loads(data))


def _pickle(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:
        # Of a class or function that only the driver's program has.
        import cloudpickle

        return bytes(cloudpickle.dumps(value, protocol=5))
