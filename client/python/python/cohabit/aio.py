"""The client for asyncio: the methods of `cohabit.client`, awaited.

async with cohabit.AsyncClient() as client:
    job = await client.submit(["python", "train.py"], gpus=0.5)
    async for progress in job.progress():
        print(progress.step)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Optional, Union

from ._client.calls import LARGEST_FILE, Calls, NewProgress
from ._client.checks import timeout_seconds
from ._client.last_words import last_words
from ._client.metrics import Metrics
from ._client.operation import Operation, T
from ._client.options import JobOptions, Path, Span
from ._client.output import Decoder
from ._client.records import Explanation, JobRecord, NodeRecord, Progress
from .errors import CohabitError, JobFailedError

if TYPE_CHECKING:
    from typing_extensions import Unpack

LEAST_WAIT = 0.05
"""Seconds."""

AsyncReference = Union[int, str, "AsyncJobHandle", JobRecord]


class AsyncClient:
    """A client of a cluster for asyncio; `Client` has the arguments. It connects with its first call."""

    def __init__(
        self, head: Optional[str] = None, token_file: Optional[Path] = None, state: Optional[Path] = None
    ) -> None:
        self._calls = Calls(head, token_file, state)

    async def __aenter__(self) -> AsyncClient:
        await self._calls.identity()
        return self

    async def __aexit__(self, *_: object) -> None:
        """The link is shared by all clones and closed with the last: nothing is left to do."""

    async def submit(
        self, command: Union[Sequence[Path], Path], **options: Unpack[JobOptions]
    ) -> AsyncJobHandle:
        """Submits a job: see `Client.submit`."""
        submitted = await self._calls.submit(command, options)
        return AsyncJobHandle(self, submitted["id"], submitted["notes"])

    async def job(self, reference: AsyncReference) -> AsyncJobHandle:
        """A job by number or name: see `Client.job`."""
        (record,) = await self._calls.show([_text_of(reference)])
        return AsyncJobHandle(self, record.id)

    async def jobs(
        self,
        *,
        states: Sequence[str] = (),
        user: Optional[str] = None,
        name: Optional[str] = None,
        since: Optional[datetime] = None,
        limit: Optional[int] = None,
    ) -> list[JobRecord]:
        """The records of jobs: see `Client.jobs`."""
        return await self._calls.jobs(states, user, name, since, limit)

    async def wait(self, *jobs: AsyncReference, timeout: Optional[Span] = None) -> list[JobRecord]:
        """Waits until all of these have ended: see `Client.wait`."""
        return await _within(self._calls.wait([_text_of(it) for it in jobs]), timeout_seconds(timeout))

    async def nodes(self) -> list[NodeRecord]:
        """The nodes of the cluster."""
        return await self._calls.nodes()


class AsyncJobHandle:
    """A job of the cluster for asyncio: see `JobHandle`."""

    def __init__(self, client: AsyncClient, id: str, notes: Sequence[str] = ()) -> None:
        self._calls = client._calls
        self.id = id
        self.notes = tuple(notes)

    async def record(self) -> JobRecord:
        """Its present record."""
        (record,) = await self._calls.show([self.id])
        return record

    async def state(self) -> str:
        """Its present state: asks the head."""
        return (await self.record()).state

    async def wait(self, timeout: Optional[Span] = None, check: bool = False) -> JobRecord:
        """Waits until it has ended: see `JobHandle.wait`."""
        (record,) = await _within(self._calls.wait([self.id]), timeout_seconds(timeout))
        if check and not record.succeeded:
            raise JobFailedError(f"{record}{await self._last_words(record.id)}", record)
        return record

    async def _last_words(self, job: str) -> str:
        try:
            return last_words([piece async for piece in self._calls.last_printed(job)])
        except CohabitError:
            return ""

    def watch(self) -> AsyncIterator[JobRecord]:
        """Its record now and after each change, the last when it has ended."""
        return self._calls.watch(self.id)

    async def progress(self) -> AsyncIterator[Progress]:
        """Its progress, each time that it reports some, until it has ended."""
        new = NewProgress()
        async for record in self.watch():
            progress = new.of(record)
            if progress is not None:
                yield progress

    async def logs(
        self,
        *,
        tail: Optional[int] = None,
        stream: Optional[str] = None,
        rank: int = 0,
        attempt: Optional[int] = None,
    ) -> str:
        """What one rank has printed so far: see `JobHandle.logs`."""
        decoder = Decoder(stream)
        pieces = [decoder.text(it) async for it in self._calls.logs(self.id, rank, attempt, tail, False)]
        return "".join(pieces) + decoder.end()

    async def follow_logs(
        self, *, tail: Optional[int] = None, stream: Optional[str] = None, rank: int = 0
    ) -> AsyncIterator[str]:
        """What one rank prints, as it comes, until the job has ended."""
        decoder = Decoder(stream)
        async for printed in self._calls.logs(self.id, rank, None, tail, True):
            text = decoder.text(printed)
            if text:
                yield text
        for text in filter(None, [decoder.end()]):
            yield text

    async def metrics(self) -> Metrics:
        """What it has reported over its steps: see `JobHandle.metrics`."""
        return await self._calls.metrics(self.id)

    async def members(self) -> list[JobRecord]:
        """The records of the members of an array."""
        return await self._calls.members(self.id)

    async def explain(self) -> Explanation:
        """Why it waits, or how it ended, and its history."""
        return await self._calls.explain(self.id)

    async def read(self, path: Path, *, rank: int = 0, limit: int = LARGEST_FILE) -> bytes:
        """The contents of a file: see `JobHandle.read`."""
        return await self._calls.read(self.id, path, rank, limit)

    async def cancel(self) -> None:
        """Ends it, by its stop sequence if it runs."""
        await self._calls.change("cancel", [self.id])

    async def kill(self) -> None:
        """Ends it at once."""
        await self._calls.change("kill", [self.id])

    async def hold(self) -> None:
        """Keeps it from starting until it is released."""
        await self._calls.change("hold", [self.id])

    async def release(self) -> None:
        """Lets it start after a hold."""
        await self._calls.change("release", [self.id])

    async def requeue(self) -> None:
        """Stops it if it runs, and queues it again; runs it anew if it has ended."""
        await self._calls.change("requeue", [self.id])

    def __repr__(self) -> str:
        return f"AsyncJobHandle({self.id!r})"


def _text_of(reference: AsyncReference) -> str:
    return str(getattr(reference, "id", reference))


async def _within(operation: Operation[T], timeout: Optional[float]) -> T:
    async def answer() -> T:
        return await operation

    try:
        # Who only looks gets what the head answers at once, as from the other client.
        return await asyncio.wait_for(answer(), None if timeout is None else max(timeout, LEAST_WAIT))
    except asyncio.TimeoutError:
        # Before Python 3.11 that is another class than TimeoutError.
        raise TimeoutError("the time to wait is over") from None
