"""The client of a cluster, for programs and notebooks.

    client = cohabit.Client()                       # finds the head as the command line does
    job = client.submit(["python", "train.py"], gpus=0.5, gpu_memory="20G")
    for progress in job.progress():
        print(progress.step, progress.total, progress.metrics)
    print(job.logs(tail=20))

`cohabit.AsyncClient` has the same methods for asyncio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union

from ._client.calls import LARGEST_FILE, Calls, NewProgress
from ._client.checks import timeout_seconds
from ._client.metrics import Metrics
from ._client.options import JobOptions, Path, Reference, Span
from ._client.output import Decoder
from ._client.records import Explanation, JobRecord, NodeRecord, Progress
from .errors import JobFailedError

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Client",
    "Explanation",
    "JobHandle",
    "JobOptions",
    "JobRecord",
    "Metrics",
    "NodeRecord",
    "Progress",
]


T = TypeVar("T")


class Client:
    """A client of a cluster. Threads may share it; it survives restarts of the head.

    Args:
        head: `host:port` of the head. Default: as for the command line, `COHABIT_HEAD`, the configuration files, or
            the state directory of a head on this machine.
        token_file: The file with the user's token. Default: the same places.
        state: The state directory of a head on this machine.

    Raises:
        ConfigurationError: There is no usable address or token.
        UnreachableError: No head answers there.
        NotAllowedError: The head does not know the token.
    """

    def __init__(
        self, head: Optional[str] = None, token_file: Optional[Path] = None, state: Optional[Path] = None
    ) -> None:
        self._calls = Calls(head, token_file, state)
        identity = self._calls.identity().wait()
        self.head: str = identity["head"]
        self.user: str = identity["user"]

    def submit(self, command: Union[Sequence[Path], Path], **options: Unpack[JobOptions]) -> JobHandle:
        """Submits a job that runs this program with these arguments, and returns at once.

        The keywords are the flags of `cohabit submit`, but for `gpu_memory` (`--gpu-mem`) and `memory` (`--mem`).
        Sizes are bytes or texts such as "20G", spans are seconds, timedeltas or texts such as "10m".

        Raises:
            InvalidRequestError: A keyword or a value is wrong, or the cluster can never run such a job.
            TryLaterError: A limit of the cluster is reached.
        """
        submitted = self._calls.submit(command, options).wait()
        return JobHandle(self, submitted["id"], submitted["notes"])

    def job(self, reference: Reference) -> JobHandle:
        """A job by its number, by `"12.5"` for a member of an array, or by its name.

        Raises:
            NotFoundError: There is no such job.
            InvalidRequestError: Several jobs have this name.
        """
        (record,) = self._calls.show([text_of(reference)]).wait()
        return JobHandle(self, record.id)

    def jobs(
        self,
        *,
        states: Sequence[str] = (),
        user: Optional[str] = None,
        name: Optional[str] = None,
        since: Optional[datetime] = None,
        limit: Optional[int] = None,
    ) -> list[JobRecord]:
        """The records of jobs, the newest last; arrays as a whole. `since` leaves out what ended before, and a `limit`
        all but the newest."""
        return self._calls.jobs(states, user, name, since, limit).wait()

    def wait(self, *jobs: Reference, timeout: Optional[Span] = None) -> list[JobRecord]:
        """Waits until all of these have ended; their last records.

        Raises:
            TimeoutError: They have not ended within this span. They go on.
        """
        limit = timeout_seconds(timeout)
        with _interruptible(jobs):
            return self._calls.wait([text_of(it) for it in jobs]).wait(limit)

    def nodes(self) -> list[NodeRecord]:
        """The nodes of the cluster."""
        return self._calls.nodes().wait()

    def __repr__(self) -> str:
        return f"Client({self.head!r}, user={self.user!r})"


class JobHandle:
    """A job of the cluster, or an array as a whole. Forgetting it does nothing to the job."""

    def __init__(self, client: Client, id: str, notes: Sequence[str] = ()) -> None:
        self._client = client
        self._calls = client._calls
        self.id = id
        """Its number, or `"12.5"` for a member of an array."""
        self.notes = tuple(notes)
        """What the head had to say about its submission: nothing that stops it."""

    def record(self) -> JobRecord:
        """Its present record."""
        (record,) = self._calls.show([self.id]).wait()
        return record

    @property
    def state(self) -> str:
        """Its present state: asks the head."""
        return self.record().state

    def wait(self, timeout: Optional[Span] = None, check: bool = False) -> JobRecord:
        """Waits until it has ended; its last record. Ctrl-C ends the waiting, and the job goes on.

        Raises:
            TimeoutError: It has not ended within this span. It goes on.
            JobFailedError: With `check`, it did not complete.
        """
        limit = timeout_seconds(timeout)
        with _interruptible([self]):
            (record,) = self._calls.wait([self.id]).wait(limit)
        if check and not record.succeeded:
            raise JobFailedError(f"{record}{self._calls.last_words(record.id)}", record)
        return record

    def watch(self) -> Iterator[JobRecord]:
        """Its record now and after each change, the last when it has ended."""
        return _until_interrupted(self, self._calls.watch(self.id))

    def progress(self) -> Iterator[Progress]:
        """Its progress, each time that it reports some, until it has ended.

        Raises:
            InvalidRequestError: It is an array, whose members report.
        """
        new = NewProgress()
        for record in self.watch():
            progress = new.of(record)
            if progress is not None:
                yield progress

    def logs(
        self,
        *,
        tail: Optional[int] = None,
        stream: Optional[str] = None,
        rank: int = 0,
        attempt: Optional[int] = None,
    ) -> str:
        """What one rank of the latest attempt has printed so far: both streams in their order, or only `"stdout"` or
        `"stderr"`; only the last lines with `tail`."""
        decoder = Decoder(stream)
        pieces = [decoder.text(printed) for printed in self._calls.logs(self.id, rank, attempt, tail, False)]
        return "".join(pieces) + decoder.end()

    def follow_logs(
        self, *, tail: Optional[int] = None, stream: Optional[str] = None, rank: int = 0
    ) -> Iterator[str]:
        """What one rank prints, as it comes, until the job has ended; also of its next attempts."""
        decoder = Decoder(stream)
        for printed in _until_interrupted(self, self._calls.logs(self.id, rank, None, tail, True)):
            text = decoder.text(printed)
            if text:
                yield text
        yield from filter(None, [decoder.end()])

    def metrics(self) -> Metrics:
        """What it has reported over its steps, in all attempts; of an array, what all members have."""
        return self._calls.metrics(self.id).wait()

    def members(self) -> list[JobRecord]:
        """The records of the members of an array."""
        return self._calls.members(self.id).wait()

    def explain(self) -> Explanation:
        """Why it waits, or how it ended, and its history."""
        return self._calls.explain(self.id).wait()

    def read(self, path: Path, *, rank: int = 0, limit: int = LARGEST_FILE) -> bytes:
        """The contents of a file on the node of its latest attempt. Relative paths begin at its working directory.

        Raises:
            NotFoundError: There is no such file.
            InvalidRequestError: It has more than `limit` bytes.
        """
        return self._calls.read(self.id, path, rank, limit).wait()

    def cancel(self) -> None:
        """Ends it, by its stop sequence if it runs."""
        self._change("cancel")

    def kill(self) -> None:
        """Ends it at once."""
        self._change("kill")

    def hold(self) -> None:
        """Keeps it from starting until it is released."""
        self._change("hold")

    def release(self) -> None:
        """Lets it start after a hold."""
        self._change("release")

    def requeue(self) -> None:
        """Stops it if it runs, and queues it again; runs it anew if it has ended."""
        self._change("requeue")

    def _change(self, change: str) -> None:
        self._calls.change(change, [self.id]).wait()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and (self.id, self._client.head) == (other.id, other._client.head)

    def __hash__(self) -> int:
        return hash((self.id, self._client.head))

    def __repr__(self) -> str:
        return f"JobHandle({self.id!r})"

    def _repr_html_(self) -> str:
        return self.record()._repr_html_()

    def _ipython_display_(self, **_: Any) -> None:
        from ._client.display import show_until_end

        show_until_end(self)


def text_of(reference: Reference) -> str:
    """A reference as the command line writes it."""
    return str(getattr(reference, "id", reference))


@contextmanager
def _interruptible(jobs: Sequence[Reference]) -> Iterator[None]:
    """Waiting, which Ctrl-C or a timeout ends: they say what goes on, and Ctrl-C how to come back to it."""
    names = ", ".join(text_of(it) for it in jobs)
    try:
        yield
    except TimeoutError:
        raise TimeoutError(f"the time to wait is over, job {names} goes on") from None
    except KeyboardInterrupt:
        calls = " ".join(f"cohabit.Client().job({text_of(it)!r}).wait()" for it in jobs[:1])
        raise KeyboardInterrupt(f"the waiting ends, job {names} goes on: come back with {calls}") from None


def _until_interrupted(job: JobHandle, answers: Iterator[T]) -> Iterator[T]:
    """What comes bit by bit from a job that goes on if Ctrl-C ends the waiting for it."""
    with _interruptible([job]):
        yield from answers
