"""Runs functions as jobs of the cluster, with the interface of `concurrent.futures`.

    with cohabit.Executor(gpus=0.25, gpu_memory="10G", max_running=8) as pool:
        results = list(pool.map(train, grid))

Each call is a job: a member of an array. Functions and arguments are pickled by cloudpickle.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import os
import secrets
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union

from ._client.options import Path, SharedOptions, Span
from ._executor.batch import PickledCall
from ._executor.dispatcher import Dispatcher
from ._executor.journal import Journal, folder_of, names, root
from ._executor.ordered import results_in_order
from ._executor.pickling import pickled_arguments, pickled_function
from ._executor.runner import JobFuture, Runner
from ._executor.several import run_chunk
from ._job.messages import warn
from ._job.spans import seconds
from .client import Client
from .errors import InvalidRequestError, NotFoundError, WrongStateError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import ParamSpec, Unpack

    P = ParamSpec("P")

__all__ = ["Executor", "JobFuture"]

T = TypeVar("T")

DEFAULT_IDLE_SECONDS = 60.0
"""Warm interpreters end after so long without a call."""
_SET_BY_EXECUTOR = {"array", "at_once", "each_line", "from_json", "workdir", "snapshot", "idempotency_key"}


_open: dict[str, Executor] = {}
"""The executors of this program that were not shut down, by folder."""


class Executor(concurrent.futures.Executor):
    """Runs each call in a job of its own.

    Args:
        client: The cluster. Default: the one that the command line would use.
        max_running: How many calls run at once, at most. Default: as many as the cluster has room for.
        name: The name of the jobs, and by which another driver may `attach`. Default: another one each time.
        python: The interpreter in the jobs. Default: the path of this one.
        shared: Whether all nodes see the driver's home directory, so that calls and results need not be sent. Default:
            only if all nodes are this machine.
        warm: Whether jobs are interpreters that take one call after the other, `max_running` of them, instead of a job
            for each call. They end when there was no call for a minute, or for the span that is given here. Then
            options such as `time` and `retries` are those of an interpreter, and `attach` finds no calls.
        options: Of each job, as of `Client.submit`: `gpus`, `gpu_memory`, `time`, `retries`, …
    """

    futures: Sequence[Future[Any]] = ()
    """Of an executor that was attached: its calls."""

    def __init__(
        self,
        client: Optional[Client] = None,
        *,
        max_running: Optional[int] = None,
        name: Optional[str] = None,
        python: Optional[Path] = None,
        shared: Optional[bool] = None,
        warm: Union[bool, Span] = False,
        **options: Unpack[SharedOptions],
    ) -> None:
        if client is not None and not isinstance(client, Client):
            raise InvalidRequestError(
                f"client={client!r}: expected a Client; how many calls run is max_running=…"
            )
        if max_running is not None and (not isinstance(max_running, int) or max_running < 1):
            raise InvalidRequestError(f"max_running={max_running!r}: expected a whole number, at least 1")
        idle_seconds = _idle_seconds(warm, max_running)
        if "max_workers" in options:
            raise InvalidRequestError("an executor has no option 'max_workers': did you mean max_running?")
        taken = _SET_BY_EXECUTOR & set(options)
        if taken:
            raise InvalidRequestError(f"an executor sets {', '.join(sorted(taken))} itself: leave it out")
        self._is_attached = False
        self.client = client or Client()
        self.name = name or f"executor-{secrets.token_hex(4)}"
        folder = folder_of(self.name)
        if _known(folder) is not None:
            raise InvalidRequestError(
                f"this program has an executor '{self.name}' already: use that one, shut it down, or give another name"
            )
        if os.path.exists(folder) and not Journal.remove_lost(folder):
            raise InvalidRequestError(
                f"there is an executor '{self.name}' already, in {folder}: collect its results with "
                f"Executor.attach({self.name!r}), or give another name"
            )
        is_shared = _is_one_machine(self.client) if shared is None else shared
        interpreter = None if python is None else os.fspath(python)
        journal, all_options = Journal.new(folder), {**options, "name": self.name}
        calls = self.client._calls
        if idle_seconds is None or max_running is None:
            runner: Runner = Dispatcher(calls, journal, is_shared, interpreter, max_running, all_options)
        else:
            from ._executor.interpreters import Interpreters

            runner = Interpreters(
                calls, journal, is_shared, interpreter, max_running, idle_seconds, all_options
            )
        self._start(runner, journal)
        atexit.register(self._at_exit)

    @classmethod
    def attach(cls, name: str, client: Optional[Client] = None) -> Executor:
        """An executor of this name whose driver has gone: its calls are `futures`, in the order of their submission.

        Its results stay until it is shut down: a program that only looks does not wait for the calls when it ends.
        In one program this is the same executor each time, as when the cell of a notebook is run again.

        Raises:
            NotFoundError: This user has no such executor on this machine.
            WrongStateError: Its driver is alive, or its interpreters were warm, so that its calls went with the driver.
        """
        folder = folder_of(name)
        known = _known(folder)
        if known is not None and known._is_attached:
            return known
        if known is not None:
            raise WrongStateError(f"executor '{name}' is one of this program: use that one, or shut it down")
        if not os.path.isdir(folder):
            others = ", ".join(names()) or "none"
            raise NotFoundError(
                f"there is no executor '{name}' in {root()}: it was shut down, or ran elsewhere. There are: {others}"
            )
        self = cls.__new__(cls)
        self.client = client or Client()
        self.name = name
        journal = Journal.open(folder)
        self._is_attached = True
        dispatcher = Dispatcher(self.client._calls, journal, True, None, None, {})
        self._start(dispatcher, journal)
        self.futures = dispatcher.adopt()
        return self

    def _start(self, runner: Runner, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._is_shut_down = False
        self._runner = runner
        self._process = os.getpid()
        self._at_exit = functools.partial(_end, self)
        _open[journal.folder] = self

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> JobFuture[T]:
        """Runs a call, whose job is the future's `job`. What cannot be pickled fails the future with `UnpicklableError`,
        which names the object."""
        if os.getpid() != self._process:
            # Threads do not survive a fork: the call would wait for ever.
            raise RuntimeError(
                "this executor was made before this process was forked, and cannot be used in it: start processes "
                "with multiprocessing.set_start_method('spawn'), or make an executor in the child"
            )
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError("cannot schedule new futures after shutdown")
            future: JobFuture[T] = JobFuture(self._runner)
            try:
                call = PickledCall(pickled_function(fn), pickled_arguments(args, kwargs))
            except Exception as error:
                future.set_running_or_notify_cancel()
                future.set_exception(error)
                return future
            self._runner.put(future, call)
            return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: Optional[float] = None,
        chunksize: int = 1,
        buffersize: Optional[int] = None,
    ) -> Iterator[T]:
        """The results in the order of the arguments.

        Args:
            timeout: Seconds from now after which a result that is not there raises `TimeoutError`.
            chunksize: A job runs so many calls.
            buffersize: So many jobs are submitted ahead of the result that is asked for. Default: all, at once.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or >= 1.")
        calls = zip(*iterables)
        if chunksize == 1:
            return results_in_order((lambda args: self.submit(fn, *args)), calls, timeout, buffersize)
        chunks = iter(lambda: list(islice(calls, chunksize)), [])
        results = results_in_order(
            (lambda chunk: self.submit(run_chunk, fn, chunk)), chunks, timeout, buffersize
        )
        return (result for chunk in results for result in chunk)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls. With `wait`, returns when all have ended."""
        if self._process != os.getpid():
            return  # A forked child ends its own copy of a `with` block.
        with self._lock:
            self._is_shut_down = True
        if cancel_futures:
            self._runner.cancel_all()
        self._runner.finish()
        if wait:
            self._runner.join()
            self._remove()

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Waits for all calls. After Ctrl-C it cancels them, also those that run."""
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._stop()
            return
        try:
            self.shutdown()
        except KeyboardInterrupt:
            self._stop()
            raise

    def _stop(self) -> None:
        """What Ctrl-C does."""
        if self._is_attached or self._process != os.getpid():
            return  # Who only looked leaves all as it is.
        name = self.name
        try:
            warn(
                f"the calls of executor '{name}' are being cancelled. Press Ctrl-C again to leave at once: what runs "
                f"then goes on, for cohabit.Executor.attach({name!r})"
            )
            with self._lock:
                self._is_shut_down = True
            self._runner.stop_all()
            self.shutdown()
        except KeyboardInterrupt:
            atexit.unregister(self._at_exit)
            raise

    def _remove(self) -> None:
        atexit.unregister(self._at_exit)
        _open.pop(self._journal.folder, None)
        shutil.rmtree(self._journal.folder, ignore_errors=True)

    def __repr__(self) -> str:
        return f"Executor(name={self.name!r})"


def _known(folder: str) -> Optional[Executor]:
    """The executor of this program with this folder."""
    known = _open.get(folder)
    return known if known is not None and known._process == os.getpid() else None


def _end(executor: Executor) -> None:
    """At the end of the program, calls that are under way are waited for, as by the standard executors."""
    # In an interactive session, what was interrupted last may have been anything.
    ended_by = None if hasattr(sys, "ps1") else getattr(sys, "last_type", None)
    executor.__exit__(ended_by, None, None)


def _idle_seconds(warm: Union[bool, Span], max_running: Optional[int]) -> Optional[float]:
    """After how long without a call a warm interpreter ends; none if each call has a job of its own."""
    if warm is False:
        return None
    if max_running is None:
        raise InvalidRequestError("warm interpreters are counted: say how many with max_running=…")
    try:
        return DEFAULT_IDLE_SECONDS if warm is True else seconds(warm)
    except ValueError as error:
        raise InvalidRequestError(f"warm={warm!r}: {error}") from None


def _is_one_machine(client: Client) -> bool:
    """Whether all nodes are this machine: then they see its files."""
    import socket

    own = {"127.0.0.1", "::1", "localhost", socket.gethostname()}
    try:
        own |= {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        pass
    nodes = client.nodes()
    return bool(nodes) and all(node.document.get("address") in own for node in nodes)
