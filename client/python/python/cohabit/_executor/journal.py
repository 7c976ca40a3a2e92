"""What an executor has submitted, on the driver's disk: another driver collects the results after its death."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
from glob import escape as glob_escape
from glob import glob

from ..errors import InvalidRequestError, WrongStateError
from .batch import Batch
from .envelope import KEY


def root() -> str:
    """Where the executors of this user have their folders: `$COHABIT_EXECUTOR_DIR`, or a cache in the home directory."""
    given = os.environ.get("COHABIT_EXECUTOR_DIR")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return given or os.path.join(cache, "cohabit", "executors")


def names() -> list[str]:
    """The executors that were not shut down, the latest first."""
    try:
        with os.scandir(root()) as folders:
            latest = sorted(folders, key=lambda it: it.stat().st_mtime, reverse=True)
    except OSError:
        return []
    return [folder.name for folder in latest[:20]]


def folder_of(name: str) -> str:
    """The folder of the executor with this name. It is removed with the executor, so no name leads elsewhere.

    Raises:
        InvalidRequestError: It is no name.
    """
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        raise InvalidRequestError(
            f"name={name!r}: use up to 100 letters, digits, '.', '-' and '_', and begin with none of '.' and '-'"
        )
    return os.path.join(root(), name)


class Journal:
    """The folder of one executor, with a line for each batch. It belongs to one process at a time, until that ends."""

    def __init__(self, folder: str, batches: list[Batch]) -> None:
        self.folder = folder
        self.batches = batches
        self._path = os.path.join(folder, "batches")
        # Held until the process ends.
        self._lock = open(os.path.join(folder, "driver"), "a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WrongStateError(
                f"the driver of the executor in {folder} is alive: its calls can be attached to once it has ended"
            ) from None

    @classmethod
    def new(cls, folder: str) -> Journal:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, mode=0o700)
        return cls(folder, [])

    @classmethod
    def remove_lost(cls, folder: str) -> bool:
        """Removes what a driver of warm interpreters has left, for its calls went with it; false if it left calls."""
        if not _was_warm(folder):
            return False
        try:
            cls(folder, [])
        except WrongStateError:
            return False
        shutil.rmtree(folder)
        return True

    @classmethod
    def open(cls, folder: str) -> Journal:
        """The journal of a driver that has ended.

        Raises:
            WrongStateError: The driver is alive, or its calls went with it.
        """
        journal = cls(folder, [])
        if _was_warm(folder):
            raise WrongStateError(
                f"the calls of the executor in {folder} went with its driver, since its interpreters were warm: "
                "remove that folder"
            )
        try:
            with open(journal._path, encoding="utf-8") as file:
                # A line that was not written to its end was not submitted, as far as its driver knew.
                lines = [line for line in file if line.endswith("\n")]
        except FileNotFoundError:
            lines = []
        for line in lines:
            it = json.loads(line)
            journal.batches.append(Batch(it["folder"], it["nonce"], it["job"], it["count"], it["is_shared"]))
        return journal

    def next_folder(self) -> str:
        """A folder for a batch. One that could not be submitted keeps its own."""
        return os.path.join(self.folder, f"batch-{secrets.token_hex(8)}")

    def add(self, batch: Batch) -> None:
        """Notes a batch that was submitted."""
        self.batches.append(batch)
        line = json.dumps(vars(batch)) + "\n"
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def _was_warm(folder: str) -> bool:
    return bool(glob(os.path.join(glob_escape(folder), "batch-*", KEY)))
