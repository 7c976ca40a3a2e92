"""Each operation of a client, for threads and for event loops: what is sent, and what the answer becomes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Optional

from .. import _native
from ..errors import CohabitError, InvalidRequestError
from .checks import check_whole_number
from .last_words import LINES, last_words
from .metrics import Metrics
from .operation import Answers, Operation
from .options import Path, arguments
from .records import Explanation, JobRecord, NodeRecord, Progress

LARGEST_FILE = 1 << 30
"""The most bytes of a file that `read` takes, unless told otherwise."""


class Calls:
    """The operations of one client."""

    def __init__(self, head: Optional[str], token_file: Optional[Path], state: Optional[Path]) -> None:
        self.native = _native.Client(head, _text(token_file), _text(state))

    def identity(self) -> Operation[dict[str, Any]]:
        return Operation(self.native.identity(), json.loads)

    def submit(self, command: Sequence[Path] | Path, options: Mapping[str, Any]) -> Operation[dict[str, Any]]:
        return Operation(self.native.submit(arguments(command, options)), json.loads)

    def show(self, references: Sequence[str]) -> Operation[list[JobRecord]]:
        return Operation(self.native.show(list(references)), _records)

    def jobs(
        self,
        states: Sequence[str],
        user: Optional[str],
        name: Optional[str],
        since: Optional[datetime],
        limit: Optional[int],
    ) -> Operation[list[JobRecord]]:
        check_whole_number("limit", limit, 1)
        ended_after = None if since is None else since.timestamp()
        wanted = [states] if isinstance(states, str) else list(states)
        return Operation(self.native.jobs(wanted, user, name, ended_after, limit or 0), _records)

    def members(self, reference: str) -> Operation[list[JobRecord]]:
        return Operation(self.native.members(reference), _records)

    def wait(self, references: Sequence[str]) -> Operation[list[JobRecord]]:
        return Operation(self.native.wait(list(references)), _records)

    def watch(self, reference: str) -> Answers[JobRecord]:
        return Answers(self.native.watch(reference), lambda text: JobRecord.read(json.loads(text)))

    def watcher(self) -> _native.Watcher:
        return self.native.watcher()

    def logs(
        self, reference: str, rank: int, attempt: Optional[int], tail: Optional[int], follow: bool
    ) -> Answers[tuple[str, bytes]]:
        check_whole_number("rank", rank)
        check_whole_number("attempt", attempt, 1)
        check_whole_number("tail", tail)
        return Answers(self.native.logs(reference, rank, attempt, tail, follow), lambda printed: printed)

    def last_printed(self, reference: str) -> Answers[tuple[str, bytes]]:
        """The last lines that a job printed."""
        return self.logs(reference, 0, None, LINES, False)

    def last_words(self, reference: str) -> str:
        """The end of a message about a job that failed; empty if what it printed cannot be had."""
        try:
            return last_words(self.last_printed(reference))
        except CohabitError:
            return ""

    def metrics(self, reference: str) -> Operation[Metrics]:
        return Operation(self.native.metrics(reference), lambda text: Metrics(json.loads(text)))

    def change(self, change: str, references: Sequence[str]) -> Operation[None]:
        return Operation(self.native.change(change, list(references)), lambda _: None)

    def explain(self, reference: str) -> Operation[Explanation]:
        return Operation(self.native.explain(reference), lambda text: Explanation.read(json.loads(text)))

    def nodes(self) -> Operation[list[NodeRecord]]:
        return Operation(self.native.nodes(), lambda text: [NodeRecord.read(it) for it in json.loads(text)])

    def connect(self, job: str, rank: int, attempt: int, port: int) -> Operation[int]:
        return Operation(self.native.connect(job, rank, attempt, port), int)

    def read(self, reference: str, path: Path, rank: int, limit: int) -> Operation[bytes]:
        check_whole_number("rank", rank)
        check_whole_number("limit", limit)
        return Operation(self.native.read_file(reference, _text(path) or "", rank, limit), bytes)


class NewProgress:
    """Finds what is new of a job's progress in its records."""

    def __init__(self) -> None:
        self._last: Optional[Progress] = None

    def of(self, record: JobRecord) -> Optional[Progress]:
        if record.members is not None:
            raise InvalidRequestError(
                f"job {record.id} is an array, whose members report: ask for the progress of one, such as "
                f"job({record.id + '.0'!r}), or look at members() and metrics()"
            )
        if record.progress is None or record.progress == self._last:
            return None
        self._last = record.progress
        return record.progress


def _records(text: str) -> list[JobRecord]:
    return [JobRecord.read(document) for document in json.loads(text)["jobs"]]


def _text(path: Optional[Path]) -> Optional[str]:
    return None if path is None else os.fspath(path)
