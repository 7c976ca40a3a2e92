"""How the ranks of a job come to the same decision at the same step.

Every so many steps, all ranks exchange a few numbers and take the largest of each. How many steps it takes follows
from their length, and is agreed on as well: about one exchange a second, however short the steps.

Ranks exchange through torch.distributed where it is initialized, else through files in a directory that they share.
A wait for others is bounded. Where it ends in vain, or nothing is shared, each rank goes on by itself, after a warning.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time

from .messages import warn_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    class Exchange(Protocol):
        """A way to the other ranks."""

        def largest(self, numbers: Sequence[float]) -> list[float]:
            """The largest of all ranks, at each place. Every rank must call it. Raises `NoAnswer`."""
            ...

        def close(self) -> None:
            """Tells the others not to wait for this rank any more."""
            ...


# How long a rank waits for the others at a step. Ranks may load data, compile or save for minutes.
TIMEOUT_SECONDS = 300.0
SECONDS_BETWEEN_EXCHANGES = 1.0
_MOST_STEPS = 100_000


class NoAnswer(Exception):
    """Other ranks did not take part in an exchange."""


class Votes:
    """What a rank knows, and what all have agreed on. Each number only grows."""

    __slots__ = ("clock", "deadline", "stop", "warnings")

    def __init__(
        self, stop: bool = False, warnings: int = 0, deadline: bool = False, clock: float = 0.0
    ) -> None:
        self.stop = stop
        self.warnings = warnings
        self.deadline = deadline
        # Seconds of the first rank, which alone measures the time between checkpoints.
        self.clock = clock

    def events(self) -> int:
        """How many reasons for a checkpoint there have been."""
        return self.stop + self.warnings + self.deadline


class Schedule:
    """At which steps the ranks exchange: the same on all of them, because it is computed from agreed numbers."""

    def __init__(self) -> None:
        self._left = 1
        self._steps = 1
        self._exchanged_at = time.monotonic()

    def is_due(self) -> bool:
        """Counts a step."""
        self._left -= 1
        return self._left <= 0

    def seconds_per_step(self) -> float:
        """The length of a step since the last exchange."""
        return (time.monotonic() - self._exchanged_at) / self._steps

    def plan(self, seconds_per_step: float) -> None:
        """Plans the next exchange. A few short steps at the beginning must not promise that all are short."""
        wanted = SECONDS_BETWEEN_EXCHANGES / max(seconds_per_step, 1e-9)
        self._steps = self._left = int(max(1, min(wanted, self._steps * 8, _MOST_STEPS)))
        self._exchanged_at = time.monotonic()


class TorchExchange:
    """Through torch.distributed, over gloo: NCCL would wait for the GPU."""

    def __init__(self, distributed: Any) -> None:
        from datetime import timedelta

        self._distributed = distributed
        self._torch = sys.modules["torch"]
        self.group = distributed.new_group(backend="gloo", timeout=timedelta(seconds=TIMEOUT_SECONDS))

    def largest(self, numbers: Sequence[float]) -> list[float]:
        tensor = self._torch.tensor(list(numbers), dtype=self._torch.float64)
        try:
            self._distributed.all_reduce(tensor, self._distributed.ReduceOp.MAX, group=self.group)
        except RuntimeError as error:
            raise NoAnswer(str(error).splitlines()[0]) from error
        return [float(number) for number in tensor.tolist()]

    def close(self) -> None:
        """Ends the group: its threads must not outlive the interpreter. Others miss this rank by the timeout."""
        if self._distributed.is_initialized():
            self._distributed.destroy_process_group(self.group)


class FileExchange:
    """Through a file for each rank, which has its last two answers: a slower rank may still have to read the older.

    A file may be that of an earlier process with this rank. So every process has a token, and only a file that
    repeats the reader's own token counts: its writer has seen the reader.
    """

    def __init__(self, folder: str, rank: int, world_size: int) -> None:
        self._folder = folder
        self._rank = rank
        self._others = [other for other in range(world_size) if other != rank]
        self._token = secrets.token_hex(8)
        self._seen: dict[str, str] = {}
        self._round = 0
        self._answers: dict[str, list[float]] = {}
        self._has_left = False
        os.makedirs(folder, exist_ok=True)

    def largest(self, numbers: Sequence[float]) -> list[float]:
        last = str(self._round)
        self._round += 1
        kept = {last: self._answers[last]} if last in self._answers else {}
        self._answers = {**kept, str(self._round): list(numbers)}
        self._write()
        deadline = time.monotonic() + TIMEOUT_SECONDS
        answers = [self._wait_for(other, deadline) for other in self._others]
        return [max(column) for column in zip(numbers, *[answer for answer in answers if answer is not None])]

    def close(self) -> None:
        self._has_left = True
        self._write()

    def _write(self) -> None:
        path = self._path(self._rank)
        fields = {
            "token": self._token,
            "seen": self._seen,
            "answers": self._answers,
            "has_left": self._has_left,
        }
        try:
            with open(f"{path}.new", "w", encoding="ascii") as file:
                json.dump(fields, file)
            os.replace(f"{path}.new", path)
        except OSError as error:
            raise NoAnswer(f"cannot write to {self._folder}: {error.strerror}") from error

    def _wait_for(self, other: int, deadline: float) -> list[float] | None:
        """The answer of another rank; none if it has left."""
        pause = 0.001
        while True:
            fields = self._read(other)
            if fields and fields["token"] != self._seen.get(str(other)):
                self._seen[str(other)] = fields["token"]
                self._write()
            if fields.get("seen", {}).get(str(self._rank)) == self._token:
                answer: list[float] | None = fields["answers"].get(str(self._round))
                if answer is not None or fields["has_left"]:
                    return answer
            if time.monotonic() > deadline:
                raise NoAnswer(f"rank {other} did not come to this step within {TIMEOUT_SECONDS:.0f} s")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)

    def _read(self, other: int) -> dict[str, Any]:
        try:
            with open(self._path(other), encoding="ascii") as file:
                fields: dict[str, Any] = json.load(file)
                return fields
        except (OSError, ValueError):
            return {}

    def _path(self, rank: int) -> str:
        return os.path.join(self._folder, f"rank{rank}.json")


class Alone:
    """For a single rank, and for one that has lost the others."""

    def largest(self, numbers: Sequence[float]) -> list[float]:
        return list(numbers)

    def close(self) -> None:
        pass


class Gang:
    """The ranks of this job, and the way to agree with them. With one rank nothing is exchanged."""

    def __init__(self, rank: int, world_size: int, shared_folder: str | None) -> None:
        self.rank = rank
        self.world_size = world_size
        self._shared_folder = shared_folder
        self._exchange: Exchange | None = None
        self.schedule = Schedule()

    @property
    def is_alone(self) -> bool:
        """Whether this rank decides by itself."""
        return self.world_size == 1 or isinstance(self._exchange, Alone)

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """The largest numbers of all ranks. Every rank must call it at the same point of the program."""
        self._choose()
        assert self._exchange is not None
        try:
            return self._exchange.largest(numbers)
        except NoAnswer as error:
            warn_once(f"the ranks do not agree on stops and checkpoints any more: {error}")
            self._exchange = Alone()
            return list(numbers)

    def broadcast(self, value: object) -> object:
        """What the first rank has, on all ranks; what this rank has, where torch.distributed is not initialized."""
        self._choose()
        if not isinstance(self._exchange, TorchExchange):
            return value
        distributed = _initialized_distributed()
        if distributed is None:
            return value
        values = [value]
        distributed.broadcast_object_list(values, src=0, group=self._exchange.group)
        return values[0]

    def close(self) -> None:
        """Leaves the others."""
        if self._exchange is None:
            return
        try:
            self._exchange.close()
        except NoAnswer:
            pass
        self._exchange = None

    def _choose(self) -> None:
        """torch.distributed may be initialized after the job was opened, on all ranks."""
        if isinstance(self._exchange, (TorchExchange, Alone)):
            return
        distributed = _initialized_distributed()
        if self.world_size == 1:
            self._exchange = Alone()
        elif distributed is not None:
            self._exchange = TorchExchange(distributed)
        elif self._exchange is None and self._shared_folder is not None:
            try:
                self._exchange = FileExchange(self._shared_folder, self.rank, self.world_size)
            except OSError as error:
                self._be_alone(f"cannot make the directory {self._shared_folder}: {error.strerror}")
        elif self._exchange is None:
            self._be_alone(
                "torch.distributed is not initialized, and they run on several nodes or have no directory for "
                "checkpoints. load finds only what the own node has"
            )

    def _be_alone(self, why: str) -> None:
        self._exchange = Alone()
        if self.rank == 0:
            warn_once(f"each rank decides by itself on stops and checkpoints: {why}")


def _initialized_distributed() -> Any:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed
    return None
