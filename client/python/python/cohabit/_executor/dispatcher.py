"""Runs each call in a job of its own: submits calls in batches, follows their jobs, and completes their futures.

One thread writes and submits, another one follows all jobs with one question to the head.
"""

from __future__ import annotations

import queue
import threading
from concurrent import futures
from typing import Any, Optional

from .._client.calls import Calls
from .._client.records import JobRecord
from ..errors import CohabitError
from .batch import MOST_BYTES, MOST_CALLS, Batch, PickledCall
from .envelope import LARGEST_RESULT
from .journal import Journal
from .runner import GATHER_SECONDS, JobFuture, Runner, left_no_result, settle

Ended = tuple[JobRecord, JobFuture[Any], Batch, int]
"""A call whose job has ended: its record, its future, its batch and its place there."""

FETCHES_AT_ONCE = 4
"""As many copies of one user as a node makes at once."""


class Dispatcher(Runner):
    """The calls of one executor, and their jobs."""

    def __init__(
        self,
        calls: Calls,
        journal: Journal,
        is_shared: bool,
        python: Optional[str],
        max_running: Optional[int],
        options: dict[str, Any],
    ) -> None:
        super().__init__(calls, journal, is_shared, python, options)
        self._max_running = max_running
        self._to_cancel: list[str] = []
        self._live: dict[str, tuple[JobFuture[Any], Batch, int]] = {}
        """The calls that are in the cluster, by job."""
        self._submitting = 0
        # Not a pool of the standard library: that ends before the program does, and then takes nothing more.
        self._ended: queue.SimpleQueue[Optional[Ended]] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=work, name=f"cohabit-{work.__name__.strip('_')}", daemon=True)
            for work in (self._submit_all, self._follow, *[self._fetch_all] * FETCHES_AT_ONCE)
        ]
        for thread in self._threads:
            thread.start()

    def adopt(self) -> list[futures.Future[Any]]:
        """Follows the calls that another driver has submitted."""
        adopted: list[futures.Future[Any]] = []
        for batch in self._journal.batches:
            batch_futures: list[JobFuture[Any]] = [JobFuture(self) for _ in range(batch.count)]
            adopted += batch_futures
            self._enter(batch, batch_futures)
        return adopted

    def join(self) -> None:
        with self._changed:
            self._changed.wait_for(self._is_idle)
        self._watcher.close()
        for _ in range(FETCHES_AT_ONCE):
            self._ended.put(None)
        for thread in self._threads:
            thread.join()

    def _drop(self, future: JobFuture[Any]) -> None:
        if future.job is not None:
            self._to_cancel.append(future.job)

    def _submitted(self) -> list[JobFuture[Any]]:
        return [future for future, _, _ in self._live.values()]

    def _running_jobs(self) -> list[str]:
        return list(self._live)

    def _is_idle(self) -> bool:
        return not (self._waiting or self._submitting or self._live or self._to_cancel)

    # The thread that submits.

    def _submit_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._has_work)
                cancelled, self._to_cancel = self._to_cancel, []
                if self._is_finishing and self._is_idle() and not cancelled:
                    return
                is_ready = self._is_batch_ready()
            if cancelled:
                self._cancel_jobs(cancelled)
            if is_ready:
                self._submit_batch()
            with self._changed:
                # Who waits for the end hears of it also where all that was taken had been cancelled.
                self._submitting = 0
                self._changed.notify_all()

    def _has_work(self) -> bool:
        return bool(self._to_cancel) or self._is_batch_ready() or (self._is_finishing and self._is_idle())

    def _is_batch_ready(self) -> bool:
        return bool(self._waiting) and (self._max_running is None or len(self._live) < self._max_running)

    def _submit_batch(self) -> None:
        taken = self._take_batch()
        if not taken:
            return
        batch_futures, calls = [future for future, _ in taken], [call for _, call in taken]
        options = dict(self._options)
        if self._max_running is not None:
            with self._changed:
                options["at_once"] = max(1, self._max_running - len(self._live))
        try:
            batch = Batch.written(self._journal.next_folder(), calls, self._is_shared)
            batch.submit(self._calls, self._python, options)
            self._journal.add(batch)
        except Exception as error:
            self._fail(batch_futures, error)
        else:
            self._enter(batch, batch_futures)

    def _take_batch(self) -> list[tuple[JobFuture[Any], PickledCall]]:
        """The calls that wait, and those that follow at once; beside others that run, as many as are free to.

        An array begins a fixed number of its members at once: a large one beside others would take their places late.
        """
        taken: list[tuple[JobFuture[Any], PickledCall]] = []
        size = 0
        with self._changed:
            most = MOST_CALLS
            if self._max_running is not None and self._live:
                most = min(most, self._max_running - len(self._live))
            while True:
                while self._waiting and len(taken) < most and size < MOST_BYTES:
                    future, call = self._waiting.popleft()
                    if not future.cancelled():
                        taken.append((future, call))
                        size += len(call)
                        self._submitting = len(taken)
                is_full = len(taken) >= most or size >= MOST_BYTES
                if is_full or not self._changed.wait_for(lambda: bool(self._waiting), GATHER_SECONDS):
                    return taken

    def _enter(self, batch: Batch, batch_futures: list[JobFuture[Any]]) -> None:
        with self._changed:
            for index, future in enumerate(batch_futures):
                future.job = batch.member(index)
                self._live[future.job] = (future, batch, index)
                if future.cancelled() or self._is_stopped:
                    self._to_cancel.append(future.job)
            self._changed.notify_all()
        self._watcher.add([batch.member(index) for index in range(batch.count)])

    # The thread that follows.

    def _lose(self, error: CohabitError) -> None:
        with self._changed:
            lost, self._live = self._submitted(), {}
        self._fail(lost, error)

    def _note(self, record: JobRecord) -> None:
        with self._changed:
            known = self._live.get(record.id)
            if known is None:
                return
            future, batch, index = known
            if record.state == "RUNNING":
                future.begin()
        if record.has_ended and batch.is_shared:
            self._complete(record, future, batch, index)
        elif record.has_ended:
            self._ended.put((record, future, batch, index))

    def _fetch_all(self) -> None:
        """A thread that copies results from nodes."""
        while True:
            ended = self._ended.get()
            if ended is None:
                return
            self._complete(*ended)

    def _complete(self, record: JobRecord, future: JobFuture[Any], batch: Batch, index: int) -> None:
        if self._begin(future):
            try:
                outcome = batch.outcome(self._calls, index, LARGEST_RESULT)
            except Exception as error:
                future.set_exception(error)
            else:
                if outcome is None:
                    future.set_exception(left_no_result(self._calls, record))
                else:
                    settle(future, outcome)
        with self._changed:
            self._live.pop(record.id, None)
            self._changed.notify_all()
