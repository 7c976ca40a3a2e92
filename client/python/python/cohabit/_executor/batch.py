"""A batch of calls, or of interpreters for calls: the folder that its jobs read, and the array that runs them."""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING, Any, Optional

from ..errors import NotFoundError
from . import run_call
from .envelope import (
    CALLS,
    KEY,
    NONCE,
    RESULT,
    RESULTS,
    SENT,
    Outcome,
    Table,
    header,
    port_file,
    write_durably,
)

if TYPE_CHECKING:
    from .._client.calls import Calls

MOST_CALLS = 2_000
MOST_BYTES = 64 << 20
_LONGEST_PORT = 16


class PickledCall:
    """A call, ready to be written."""

    def __init__(self, function: bytes, arguments: bytes) -> None:
        self.function = function
        self.arguments = arguments

    def __len__(self) -> int:
        return len(self.function) + len(self.arguments)


class Batch:
    """What one array runs, member by member: calls, or interpreters."""

    def __init__(self, folder: str, nonce: str, job: str, count: int, is_shared: bool) -> None:
        self.folder = folder
        self.nonce = nonce
        self.job = job
        self.count = count
        self.is_shared = is_shared

    @classmethod
    def written(cls, folder: str, calls: list[PickledCall], is_shared: bool) -> Batch:
        """Writes the calls into a new folder that only this user can read."""
        nonce = _make_folder(folder)
        with open(os.path.join(folder, CALLS), "wb") as file:
            _write(file, calls)
        return cls(folder, nonce, "", len(calls), is_shared)

    @classmethod
    def of_interpreters(cls, folder: str, count: int, is_shared: bool) -> Batch:
        """Writes what interpreters that wait for calls need into such a folder."""
        nonce = _make_folder(folder)
        write_durably(os.path.join(folder, KEY), secrets.token_bytes(32))
        return cls(folder, nonce, "", count, is_shared)

    def submit(
        self,
        calls: Calls,
        python: Optional[str],
        options: dict[str, Any],
        program: str = run_call.PROGRAM,
        *arguments: str,
    ) -> None:
        """Submits the array. Where nodes do not share the driver's disk, the calls travel with it."""
        travelling: dict[str, Any] = {} if self.is_shared else {"workdir": self.folder, "snapshot": "all"}
        command = [
            python or sys.executable,
            "-c",
            program,
            self.folder if self.is_shared else SENT,
            self.nonce,
            *arguments,
        ]
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
        data = self._read(calls, index, str(index), RESULT, limit)
        return None if data is None else Outcome.read(data)

    def key(self) -> bytes:
        """What driver and interpreters know each other by."""
        with open(os.path.join(self.folder, KEY), "rb") as file:
            return file.read()

    def port(self, calls: Calls, index: int, attempt: int) -> Optional[int]:
        """The port on which an interpreter listens on its node; none if it has not said so yet."""
        name = port_file(attempt)
        data = self._read(calls, index, f"{index}-{name}", name, _LONGEST_PORT)
        return None if data is None else int(data)

    def _read(self, calls: Calls, index: int, shared: str, sent: str, limit: int) -> Optional[bytes]:
        """What a member wrote: into the results of the folder, or into its working directory."""
        try:
            if not self.is_shared:
                return calls.read(self.member(index), sent, 0, limit).wait()
            with open(os.path.join(self.folder, RESULTS, shared), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotFoundError):
            return None


def _make_folder(folder: str) -> str:
    """Makes the folder of a batch. Returns its nonce."""
    os.makedirs(os.path.join(folder, RESULTS), mode=0o700)
    os.chmod(folder, 0o700)
    nonce = secrets.token_hex(16)
    write_durably(os.path.join(folder, NONCE), nonce.encode("ascii"))
    return nonce


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
