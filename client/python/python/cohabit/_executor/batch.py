"""A batch of calls: the folder that its jobs read, and the array that runs them."""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING, Any, Optional

from .envelope import CALLS, NONCE, RESULT, RESULTS, Outcome, Table, header, write_durably
from .run_call import PROGRAM

if TYPE_CHECKING:
    from .._client.calls import Calls

MOST_CALLS = 2_000
MOST_BYTES = 64 << 20


class PickledCall:
    """A call, ready to be written."""

    def __init__(self, function: bytes, arguments: bytes) -> None:
        self.function = function
        self.arguments = arguments

    def __len__(self) -> int:
        return len(self.function) + len(self.arguments)


class Batch:
    """Calls that one array runs, member by member."""

    def __init__(self, folder: str, nonce: str, job: str, count: int, is_shared: bool) -> None:
        self.folder = folder
        self.nonce = nonce
        self.job = job
        self.count = count
        self.is_shared = is_shared

    @classmethod
    def written(cls, folder: str, calls: list[PickledCall], is_shared: bool) -> Batch:
        """Writes the calls into a new folder that only this user can read."""
        os.makedirs(os.path.join(folder, RESULTS), mode=0o700)
        os.chmod(folder, 0o700)
        nonce = secrets.token_hex(16)
        with open(os.path.join(folder, CALLS), "wb") as file:
            _write(file, calls)
        write_durably(os.path.join(folder, NONCE), nonce.encode("ascii"))
        return cls(folder, nonce, "", len(calls), is_shared)

    def submit(self, calls: Calls, python: Optional[str], options: dict[str, Any]) -> None:
        """Submits the array. Where nodes do not share the driver's disk, the calls travel with it."""
        travelling: dict[str, Any] = {} if self.is_shared else {"workdir": self.folder, "snapshot": "all"}
        command = [python or sys.executable, "-c", PROGRAM, self.folder, self.nonce]
        # The nonce is the key, too: a submission that is repeated is the same array.
        key = {"idempotency_key": f"executor-{self.nonce}", "array": self.count}
        self.job = calls.submit(command, {**options, **travelling, **key}).wait()["id"]

    def member(self, index: int) -> str:
        """The job of a call."""
        return f"{self.job}.{index}"

    def outcome(self, calls: Calls, index: int, limit: int) -> Optional[Outcome]:
        """How a call ended, once its job has; none if it left no result.

        Raises:
            CohabitError: The result is on a node that cannot be reached now.
        """
        path = os.path.join(self.folder, RESULTS, str(index))
        if os.path.exists(path):
            with open(path, "rb") as file:
                return Outcome.read(file.read())
        if self.is_shared:
            return None
        from ..errors import NotFoundError

        try:
            return Outcome.read(calls.read(self.member(index), RESULT, 0, limit).wait())
        except NotFoundError:
            return None


def _write(file: Any, calls: list[PickledCall]) -> None:
    functions: dict[bytes, int] = {}
    for call in calls:
        functions.setdefault(call.function, len(functions))
    places, at = [], 0
    for blob in [*functions, *(call.arguments for call in calls)]:
        places.append((at, len(blob)))
        at += len(blob)
    count = len(functions)
    entries = [(functions[call.function], places[count + index]) for index, call in enumerate(calls)]
    Table(header(), places[:count], entries).write(file)
    file.writelines([*functions, *(call.arguments for call in calls)])
