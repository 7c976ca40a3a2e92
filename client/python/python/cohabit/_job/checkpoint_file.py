"""One checkpoint file: the state as `torch.save` or `pickle` writes it, then a line that says what it should be.

What follows the state does not disturb `torch.load` and `pickle.load`, so that a checkpoint can be read without
Cohabit. Layout: state, JSON, length of the JSON (8 bytes, little endian), `MAGIC`.

Like any pickle, a checkpoint runs code when it is loaded: load only those of your own jobs.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import sys

from ..errors import CheckpointDamaged, CheckpointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

MAGIC = b"\nCohabit ckpt 1\n"
_TAIL = 8 + len(MAGIC)
_MAX_TRAILER = 1 << 16
_BLOCK = 1 << 20


class Trailer:
    """What is known about the state of a checkpoint."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.sha256 = str(fields.pop("sha256"))
        self.fields = fields
        self.step = int(fields["step"])
        self.form = str(fields["form"])
        self.size = int(fields["size"])
        self.world_size = int(fields["world_size"])


def write(file: BinaryIO, step: int, state: object, world_size: int) -> None:
    """Writes a checkpoint. It is not durable yet.

    Raises:
        CheckpointError: The state cannot be pickled.
        OSError: It cannot be written.
    """
    hashing = _Hashing(file)
    form = "torch" if has_tensors(state) else "pickle"
    try:
        if form == "torch":
            sys.modules["torch"].save(state, hashing)
        else:
            pickle.dump(state, hashing, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"the state of step {step} cannot be saved: {error}. Save what can be pickled: the state_dict() of a "
            "model and of its optimizer, numbers, lists and dictionaries of such"
        ) from error
    except RuntimeError as error:
        # PyTorch hides why a write failed.
        if hashing.error is not None:
            raise hashing.error from error
        raise
    fields = {"step": step, "form": form, "size": hashing.size, "world_size": world_size}
    trailer = json.dumps({**fields, "sha256": _digest(hashing.checksum, fields)}).encode()
    file.write(trailer + len(trailer).to_bytes(8, "little") + MAGIC)


def read(path: str, map_location: Any = "cpu") -> tuple[Trailer, Any]:
    """The checkpoint in this file.

    Raises:
        CheckpointDamaged: The bytes are not those that were written.
        CheckpointError: The bytes are, but this program cannot make a state of them.
        OSError: The file cannot be read.
    """
    with open(path, "rb") as file:
        trailer = _trailer(file)
        if _sha256(file, trailer) != trailer.sha256:
            raise CheckpointDamaged("its checksum is wrong")
        file.seek(0)
        try:
            return trailer, _state(file, trailer, map_location)
        except OSError:
            raise
        except Exception as error:
            raise CheckpointError(
                f"the checkpoint {path} of step {trailer.step} is whole, but this program cannot read it "
                f"({type(error).__name__}: {error}). Run it with the code and the packages that saved it, or remove "
                "the file to go on from the one before"
            ) from error


def has_tensors(state: object) -> bool:
    """Whether the state contains a tensor or another object of PyTorch. Never imports PyTorch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    seen: set[int] = set()
    waiting = [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (str, bytes, int, float, bool, type(None))) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (torch.Tensor, torch.nn.Module)):
            return True
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting.extend(value)
        else:
            waiting.append(getattr(value, "__dict__", None))
    return False


def _state(file: BinaryIO, trailer: Trailer, map_location: Any) -> Any:
    if trailer.form == "pickle":
        return pickle.load(file)
    # A state with tensors needs PyTorch, wherever it was loaded before.
    import importlib

    torch = importlib.import_module("torch")
    return torch.load(_Section(file, trailer.size), map_location=map_location, weights_only=False)


def _trailer(file: BinaryIO) -> Trailer:
    length = file.seek(0, os.SEEK_END)
    if length == 0:
        raise CheckpointDamaged("it is empty")
    if length < _TAIL:
        raise CheckpointDamaged(f"it has only {length} bytes")
    file.seek(length - _TAIL)
    tail = file.read(_TAIL)
    if tail[8:] != MAGIC:
        raise CheckpointDamaged("its end is missing")
    size = int.from_bytes(tail[:8], "little")
    begin = length - _TAIL - size
    if size > _MAX_TRAILER or begin < 0:
        raise CheckpointDamaged("its description is damaged")
    file.seek(begin)
    try:
        trailer = Trailer(json.loads(file.read(size)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointDamaged("its description is damaged") from error
    if trailer.size != begin or trailer.form not in ("pickle", "torch"):
        raise CheckpointDamaged("its description is damaged")
    return trailer


def _sha256(file: BinaryIO, trailer: Trailer) -> str:
    file.seek(0)
    checksum = hashlib.sha256()
    left = trailer.size
    while left > 0:
        block = file.read(min(_BLOCK, left))
        if not block:
            break
        checksum.update(block)
        left -= len(block)
    return _digest(checksum, trailer.fields)


def _digest(of_state: hashlib._Hash, fields: dict[str, Any]) -> str:
    """The checksum of the state and of what is said about it."""
    checksum = of_state.copy()
    checksum.update(json.dumps(fields, sort_keys=True).encode())
    return checksum.hexdigest()


class _Hashing(io.RawIOBase):
    """Writes through to a file, and knows the checksum of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.checksum = hashlib.sha256()
        self.size = 0
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        try:
            self._file.write(view)
        except OSError as error:
            self.error = error
            raise
        self.checksum.update(view)
        self.size += len(view)
        return len(view)


class _Section(io.RawIOBase):
    """The first bytes of a file as if they were all of it: PyTorch looks for the end of an archive."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = min(max(base + offset, 0), self._size)
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._size - self._position)
        self._file.seek(self._position)
        read = self._file.read(wanted)
        view[: len(read)] = read
        self._position += len(read)
        return len(read)
