"""What all ways to run the calls of an executor have in common: calls that wait, their futures, and the jobs' records."""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from concurrent import futures
from typing import Any, Optional, TypeVar

from .. import errors
from .._client.calls import Calls
from .._client.records import JobRecord
from .._job.messages import warn
from ..errors import CohabitError, RemoteCallError, UnreachableError
from .batch import PickledCall
from .envelope import Outcome
from .journal import Journal

T = TypeVar("T")

GATHER_SECONDS = 0.005
"""A submission waits so long for further calls."""
PAUSE_SECONDS = 1.0


class JobFuture(futures.Future[T]):
    """A call. `job` is its job once it has one."""

    def __init__(self, runner: Runner) -> None:
        super().__init__()
        self._runner = runner
        self.job: Optional[str] = None
        self._goes_on: Optional[bool] = None

    def begin(self) -> bool:
        """The call runs, or has ended; false if it was cancelled before. Only the runner asks, with its lock."""
        if self._goes_on is None:
            self._goes_on = self.set_running_or_notify_cancel()
        return self._goes_on

    def cancel(self) -> bool:
        """Ends a call that waits, in the cluster, too. False if it runs or has ended."""
        return self._runner.cancel(self)


class Runner(ABC):
    """Runs the calls of one executor. All that threads share is under the lock of `_changed`.

    Args:
        is_shared: Whether the jobs see the journal's folder.
        python: The interpreter in the jobs. Default: the path of this one.
        options: Of each job.
    """

    def __init__(
        self, calls: Calls, journal: Journal, is_shared: bool, python: Optional[str], options: dict[str, Any]
    ) -> None:
        self._calls = calls
        self._journal = journal
        self._is_shared = is_shared
        self._python = python
        self._options = options
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[tuple[JobFuture[Any], PickledCall]] = deque()
        self._is_finishing = False
        self._is_stopped = False
        self._watcher = calls.watcher()

    def put(self, future: JobFuture[Any], call: PickledCall) -> None:
        """Takes a call."""
        with self._changed:
            self._waiting.append((future, call))
            self._changed.notify_all()

    def cancel(self, future: JobFuture[Any]) -> bool:
        # Functions that wait for the future are called here, so the lock is not held.
        if not futures.Future.cancel(future):
            return False
        with self._changed:
            is_new = future._goes_on is None
            future.begin()
            if is_new:
                self._drop(future)
            self._changed.notify_all()
        return True

    def cancel_all(self) -> None:
        """Cancels all calls that do not run."""
        with self._changed:
            known = [future for future, _ in self._waiting] + self._submitted()
        for future in known:
            future.cancel()

    def stop_all(self) -> None:
        """Cancels all calls, also those that run."""
        with self._changed:
            self._is_stopped = True
        self.cancel_all()
        with self._changed:
            # An array is cancelled as a whole.
            jobs = {job.partition(".")[0] for job in self._running_jobs()}
        if jobs:
            self._cancel_jobs(sorted(jobs))

    def finish(self) -> None:
        """No further call comes."""
        with self._changed:
            self._is_finishing = True
            self._changed.notify_all()

    @abstractmethod
    def join(self) -> None:
        """Waits until all calls have ended."""

    @abstractmethod
    def _drop(self, future: JobFuture[Any]) -> None:
        """Forgets a call that was cancelled. The lock is held."""

    @abstractmethod
    def _submitted(self) -> list[JobFuture[Any]]:
        """The calls that wait no longer. The lock is held."""

    @abstractmethod
    def _running_jobs(self) -> list[str]:
        """The jobs that are in the cluster. The lock is held."""

    @abstractmethod
    def _note(self, record: JobRecord) -> None:
        """Takes note of what a job has become."""

    @abstractmethod
    def _lose(self, error: CohabitError) -> None:
        """The jobs cannot be followed any more."""

    def _follow(self) -> None:
        """Follows all jobs, until the watcher is closed."""
        is_away = False
        while True:
            try:
                changed = self._watcher.changes().wait(None)
            except UnreachableError as error:
                # The jobs go on without the head, and their results stay.
                if not is_away:
                    warn(f"{error}; the calls go on, and are followed again once the head is back")
                is_away = True
                continue
            except CohabitError as error:
                self._lose(error)
                time.sleep(PAUSE_SECONDS)  # What the head refuses once, it may go on to refuse.
                continue
            is_away = False
            if changed is None:
                return
            for document in json.loads(changed)["jobs"]:
                self._note(JobRecord.read(document))

    def _cancel_jobs(self, jobs: list[str]) -> None:
        try:
            self._calls.change("cancel", jobs).wait()
        except CohabitError:
            pass  # They have ended meanwhile, or end by themselves: nobody waits for their results.

    def _begin(self, future: JobFuture[Any]) -> bool:
        with self._changed:
            return future.begin()

    def _fail(self, failed: Iterable[JobFuture[Any]], error: BaseException) -> None:
        for future in failed:
            if self._begin(future):
                future.set_exception(error)
        with self._changed:
            self._changed.notify_all()


class _RemoteTraceback(Exception):
    """The traceback of the job, as the cause of an exception in the driver."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def settle(future: JobFuture[Any], outcome: Outcome) -> None:
    """Completes a call that has run, or was refused."""
    if outcome.kind == "value":
        future.set_result(outcome.value)
        return
    if outcome.kind == "refused":
        future.set_exception(getattr(errors, outcome.value)(outcome.text))
        return
    error = outcome.value if outcome.kind == "exception" else RemoteCallError(outcome.value)
    error.__cause__ = _RemoteTraceback(outcome.text)
    future.set_exception(error)


def left_no_result(calls: Calls, record: JobRecord) -> RemoteCallError:
    """The job of a call ended before the call did."""
    return RemoteCallError(
        f"the call left no result: {record}. 'cohabit logs {record.id}' shows what it printed"
        f"{calls.last_words(record.id)}"
    )
