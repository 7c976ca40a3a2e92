"""A directory of checkpoints: the latest ones are kept, each is replaced by none before it is durable.

A checkpoint is written beside the others, synced, renamed, and the directory is synced: whatever happens meanwhile,
each file with a final name is whole. Their order is that of saving, not of steps, because a training may go back.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets

from ..errors import CheckpointDamaged, CheckpointError
from . import checkpoint_file
from .messages import warn, warn_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from .checkpoint_file import Trailer

_PARTIAL = ".partial"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Saved:
    """The name of a checkpoint: its place in the order of saving, and its step."""

    __slots__ = ("name", "number", "step")

    def __init__(self, name: str, number: int, step: int) -> None:
        self.name = name
        self.number = number
        self.step = step


class CheckpointDirectory:
    """The checkpoints of one series in a directory. The rank is part of the name where every rank saves."""

    def __init__(self, folder: str, keep: int, rank: int | None = None) -> None:
        self.folder = folder
        self._keep = keep
        part = "" if rank is None else f"-rank{rank}"
        self._suffix = f"{part}.ckpt"
        self._pattern = re.compile(rf"checkpoint-(\d+)-step(-?\d+){re.escape(part)}\.ckpt")
        self._last: Saved | None = None
        self._is_clean = False

    def saved(self) -> list[Saved]:
        """The checkpoints, the latest last.

        Raises:
            CheckpointError: The directory cannot be read.
        """
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CheckpointError(
                f"cannot read the checkpoint directory {self.folder}: {error.strerror}"
            ) from error
        matches = [match for match in map(self._pattern.fullmatch, names) if match]
        found = [Saved(match.group(), int(match[1]), int(match[2])) for match in matches]
        return sorted(found, key=lambda it: (it.number, it.step))

    def path(self, saved: Saved) -> str:
        """The path of this checkpoint."""
        return os.path.join(self.folder, saved.name)

    def load_latest(
        self, map_location: Any, among: list[Saved] | None = None
    ) -> tuple[Saved, Trailer, Any] | None:
        """The latest checkpoint that is whole, of these or of all. A warning names each that is not.

        Raises:
            CheckpointError: A checkpoint cannot be read, although it is whole, or may not be read.
        """
        for saved in reversed(self.saved() if among is None else among):
            found = self.load(saved, map_location)
            if found is not None:
                return saved, *found
        return None

    def load(self, saved: Saved, map_location: Any) -> tuple[Trailer, Any] | None:
        """This checkpoint; none, after a warning, if it is damaged.

        Raises:
            CheckpointError: As above.
        """
        path = self.path(saved)
        try:
            return checkpoint_file.read(path, map_location)
        except CheckpointDamaged as error:
            warn(f"ignoring the damaged checkpoint {path}: {error}; the one before is taken, if there is one")
        except FileNotFoundError:
            pass  # Another process has removed it, because there are later ones.
        except PermissionError as error:
            raise CheckpointError(f"may not read the checkpoint {path}: {error.strerror}") from error
        except OSError as error:
            warn(f"ignoring the checkpoint {path}, which cannot be read: {error.strerror}")
        return None

    def save(self, step: int, state: object, world_size: int) -> None:
        """Saves a state, and returns when it is durable. Then removes what is older than the last `keep`.

        Raises:
            CheckpointError: It cannot be saved. Earlier checkpoints stay.
        """
        try:
            os.makedirs(self.folder, exist_ok=True)
            self._remove_partials()
            before = self.saved()
            self._warn_of_others(before)
            self._write(step, state, world_size, before)
        except OSError as error:
            kept = f"that of step {self._last.step} stays" if self._last else "earlier ones stay"
            raise CheckpointError(
                f"cannot save the checkpoint of step {step} in {self.folder}: {error.strerror or error}; {kept}"
            ) from error
        self._remove(self.saved()[: -self._keep])

    def forget_later_than(self, saved: Saved | None) -> None:
        """Removes checkpoints that came after this one: other ranks have none that fit them."""
        number = saved.number if saved else -1
        self._remove([it for it in self.saved() if it.number > number])

    def _write(self, step: int, state: object, world_size: int, before: list[Saved]) -> None:
        number = before[-1].number + 1 if before else 1
        saved = Saved(f"checkpoint-{number:08}-step{step}{self._suffix}", number, step)
        try:
            self._write_durably(saved, state, world_size)
        except OSError as error:
            # Room for the new one is worth more than old ones.
            if error.errno not in _NO_SPACE or len(before) < 2:
                raise
            self._remove(before[:-1])
            warn_once(
                f"the disk of {self.folder} is full: earlier checkpoints were removed to save another one"
            )
            self._write_durably(saved, state, world_size)
        self._last = saved

    def _write_durably(self, saved: Saved, state: object, world_size: int) -> None:
        partial = os.path.join(self.folder, f".{saved.name}.{secrets.token_hex(4)}{_PARTIAL}")
        try:
            with open(partial, "xb") as file:
                if not _lock(file):
                    return self._write_durably(saved, state, world_size)
                checkpoint_file.write(file, saved.step, state, world_size)
                file.flush()
                os.fsync(file.fileno())
                os.replace(partial, self.path(saved))
        except BaseException:
            _unlink(partial)
            raise
        _sync_directory(self.folder)

    def _warn_of_others(self, before: list[Saved]) -> None:
        if self._last is not None and before and before[-1].number > self._last.number:
            warn_once(
                f"another process saves checkpoints to {self.folder}, too: give each job a directory of its own"
            )

    def _remove_partials(self) -> None:
        """Removes what killed processes left; they hold no lock any more."""
        if self._is_clean:
            return
        self._is_clean = True
        for name in os.listdir(self.folder):
            if not (name.startswith(".checkpoint-") and name.endswith(_PARTIAL)):
                continue
            path = os.path.join(self.folder, name)
            try:
                with open(path, "rb") as file:
                    if _try_lock(file):
                        _unlink(path)
            except OSError:
                pass  # Another process has just removed it.

    def _remove(self, old: list[Saved]) -> None:
        for saved in old:
            _unlink(self.path(saved))


def _lock(file: BinaryIO) -> bool:
    """The lock tells others that this file is being written. False if one of them has already removed it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        pass  # A file system without locks; there, nobody removes what another has begun.
    return os.fstat(file.fileno()).st_nlink > 0


def _try_lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False  # Held by a process that lives, or a file system without locks.


def _sync_directory(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
