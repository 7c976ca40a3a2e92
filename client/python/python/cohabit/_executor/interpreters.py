"""Runs calls in interpreters that stay: each is a job that takes one call after the other.

One thread submits interpreters, one follows their jobs, and each interpreter has one that gives it calls.
"""

from __future__ import annotations

import pickle
import socket
import threading
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, Optional

from .._client.calls import Calls
from .._client.records import JobRecord
from ..errors import CohabitError, NotAllowedError, RemoteCallError, VersionMismatchError
from .batch import Batch, PickledCall
from .envelope import Outcome, header
from .journal import Journal
from .runner import GATHER_SECONDS, JobFuture, Runner, left_no_result, settle
from .serve_calls import PROGRAM

RETRY_SECONDS = 0.05
"""The pause before an interpreter that does not listen yet is tried again."""
MOST_REFUSALS = 100
"""So often a port that is not the job's is tried again: a process that has just died still has its port."""


class Interpreter:
    """One job that runs calls."""

    def __init__(self, batch: Batch, index: int) -> None:
        self.batch = batch
        self.index = index
        self.job = batch.member(index)
        self.record: Optional[JobRecord] = None
        self.call: Optional[tuple[int, JobFuture[Any], PickledCall]] = None
        """What it runs, under a number: after a broken connection it is asked again."""
        self.socket: Optional[socket.socket] = None
        self.has_served = False
        self.refusals = 0
        self.error: Optional[BaseException] = None
        """Why it takes no more calls, if it is not that its job has ended."""

    @property
    def has_ended(self) -> bool:
        return self.error is not None or (self.record is not None and self.record.has_ended)

    def end(self, calls: Calls) -> BaseException:
        """Why a call had no result."""
        if self.error is not None or self.record is None:
            return self.error or RemoteCallError(f"job {self.job} cannot be followed")
        return left_no_result(calls, self.record)

    def hang_up(self) -> None:
        """Whoever waits for an answer hears that none comes."""
        if self.socket is not None:
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It is closed.


class Interpreters(Runner):
    """The calls of one executor, and the interpreters that run them."""

    def __init__(
        self,
        calls: Calls,
        journal: Journal,
        is_shared: bool,
        python: Optional[str],
        most: int,
        idle_seconds: float,
        options: dict[str, Any],
    ) -> None:
        super().__init__(calls, journal, is_shared, python, options)
        self._most = most
        self._idle_seconds = idle_seconds
        self._header = header()
        self._live: dict[str, Interpreter] = {}
        self._last_number = 0
        self._follower = threading.Thread(target=self._follow, name="cohabit-follow", daemon=True)
        self._starter = threading.Thread(target=self._start_all, name="cohabit-start", daemon=True)
        self._follower.start()
        self._starter.start()

    def join(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not (self._has_calls() or self._live))
        self._starter.join()
        self._watcher.close()
        self._follower.join()

    def _drop(self, future: JobFuture[Any]) -> None:
        pass  # It is passed over when its turn comes.

    def _submitted(self) -> list[JobFuture[Any]]:
        return []  # What an interpreter has, it runs.

    def _running_jobs(self) -> list[str]:
        return list(self._live)

    # The thread that submits interpreters.

    def _missing(self) -> int:
        """How many more interpreters the calls could use."""
        if not self._has_calls():
            return 0
        busy = sum(1 for interpreter in self._live.values() if interpreter.call is not None)
        return min(self._most, busy + len(self._waiting)) - len(self._live)

    def _start_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._missing() > 0 or self._is_over())
                if self._is_over():
                    return
                # Further calls come with the first one, as a rule.
                self._changed.wait_for(lambda: self._missing() >= self._most, GATHER_SECONDS)
                count = self._missing()
            if count > 0:
                self._start(count)

    def _is_over(self) -> bool:
        return self._is_finishing and not self._has_calls()

    def _has_calls(self) -> bool:
        while self._waiting and self._waiting[0][0].cancelled():
            self._waiting.popleft()
        return bool(self._waiting)

    def _start(self, count: int) -> None:
        try:
            batch = Batch.of_interpreters(self._journal.next_folder(), count, self._is_shared)
            batch.submit(self._calls, self._python, self._options, PROGRAM, str(self._idle_seconds))
        except Exception as error:
            with self._changed:
                failed = [future for future, _ in self._waiting]
                self._waiting.clear()
            self._fail(failed, error)
            return
        started = [Interpreter(batch, index) for index in range(count)]
        with self._changed:
            self._live.update((interpreter.job, interpreter) for interpreter in started)
        for interpreter in started:
            threading.Thread(
                target=self._drive, args=(interpreter,), name=f"cohabit-{interpreter.job}", daemon=True
            ).start()
        self._watcher.add([interpreter.job for interpreter in started])

    # The thread that follows.

    def _note(self, record: JobRecord) -> None:
        with self._changed:
            interpreter = self._live.get(record.id)
            if interpreter is not None:
                interpreter.record = record
                if interpreter.has_ended:
                    interpreter.hang_up()
                self._changed.notify_all()

    def _lose(self, error: CohabitError) -> None:
        with self._changed:
            for interpreter in self._live.values():
                interpreter.error = error
                interpreter.hang_up()
            self._changed.notify_all()

    # The threads of the interpreters.

    def _drive(self, interpreter: Interpreter) -> None:
        try:
            while self._is_wanted(interpreter):
                connection = self._connect(interpreter)
                if connection is not None and self._serve(interpreter, connection):
                    break
        except Exception as error:
            interpreter.error = error
            self._cancel_jobs([interpreter.job])
        self._remove(interpreter)

    def _is_wanted(self, interpreter: Interpreter) -> bool:
        """Waits until an interpreter may listen. False once it has ended, or has nothing to do any more."""

        def needs_nothing() -> bool:
            return interpreter.call is None and self._is_over()

        with self._changed:
            self._changed.wait_for(
                lambda: interpreter.has_ended or needs_nothing() or _runs(interpreter.record)
            )
            if interpreter.has_ended:
                return False
            is_needed = not needs_nothing()
        if not is_needed:
            self._cancel_jobs([interpreter.job])
        return is_needed

    def _connect(self, interpreter: Interpreter) -> Optional[Connection]:
        """A connection over which calls can be sent; none if there is none yet.

        Raises:
            CohabitError: It cannot serve this driver.
        """
        assert interpreter.record is not None
        attempt = interpreter.record.attempt
        try:
            port = interpreter.batch.port(self._calls, interpreter.index, attempt)
            if port is not None:
                descriptor = self._calls.connect(interpreter.job, 0, attempt, port).wait()
                return self._introduced(interpreter, socket.socket(fileno=descriptor))
        except VersionMismatchError:
            raise
        except NotAllowedError:
            # The port of a process that has just ended is nobody's.
            interpreter.refusals += 1
            if interpreter.refusals >= MOST_REFUSALS:
                raise
        except (CohabitError, OSError, EOFError):
            pass  # It does not listen yet, or has ended: its record will say so.
        with self._changed:
            self._changed.wait_for(lambda: interpreter.has_ended, RETRY_SECONDS)
        return None

    def _introduced(self, interpreter: Interpreter, connected: socket.socket) -> Connection:
        with self._changed:
            interpreter.socket = connected
        connection = Connection(connected.fileno())
        try:
            key = interpreter.batch.key()
            answer_challenge(connection, key)
            deliver_challenge(connection, key)
            connection.send_bytes(pickle.dumps(self._header))
            problem = pickle.loads(connection.recv_bytes())
        except BaseException:
            self._disconnect(interpreter, connection)
            raise
        interpreter.refusals = 0
        if problem is not None:
            self._disconnect(interpreter, connection)
            raise VersionMismatchError(problem)
        return connection

    def _serve(self, interpreter: Interpreter, connection: Connection) -> bool:
        """Gives it calls. False if the connection was lost."""
        try:
            while True:
                call = interpreter.call or self._next(interpreter)
                if call is None:
                    self._dismiss(connection)
                    return True
                number, future, pickled = call
                connection.send_bytes(pickle.dumps((number, pickled.function, pickled.arguments)))
                answer = connection.recv_bytes()
                with self._changed:
                    interpreter.call = None
                    interpreter.has_served = True
                try:
                    outcome = Outcome.read(answer)
                except Exception as error:
                    future.set_exception(error)
                else:
                    settle(future, outcome)
        except (OSError, EOFError):
            return False
        finally:
            self._disconnect(interpreter, connection)

    def _next(self, interpreter: Interpreter) -> Optional[tuple[int, JobFuture[Any], PickledCall]]:
        """The next call; none if the interpreter is to end."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._has_calls() or self._is_finishing or interpreter.has_ended, self._idle_seconds
            )
            if interpreter.has_ended:
                raise EOFError
            while self._waiting:
                future, call = self._waiting.popleft()
                if future.begin():
                    self._last_number += 1
                    future.job = interpreter.job
                    interpreter.call = self._last_number, future, call
                    return interpreter.call
            # Nothing is given to it between this moment and its end.
            self._live.pop(interpreter.job)
            self._changed.notify_all()
            return None

    def _dismiss(self, connection: Connection) -> None:
        """Tells an interpreter that no more calls come."""
        try:
            connection.send_bytes(pickle.dumps(None))
        except OSError:
            pass  # It has ended, or ends when nobody connects again.

    def _disconnect(self, interpreter: Interpreter, connection: Connection) -> None:
        with self._changed:
            if interpreter.socket is not None:
                interpreter.socket.detach()
            interpreter.socket = None
            connection.close()

    def _remove(self, interpreter: Interpreter) -> None:
        """The call of an interpreter that has ended fails; and one that waits, if it never came to run any: else
        interpreters that cannot start would be started for ever.
        """
        failed = []
        with self._changed:
            self._live.pop(interpreter.job, None)
            if interpreter.call is not None:
                failed.append(interpreter.call[1])
            elif interpreter.has_ended and not interpreter.has_served and self._has_calls():
                failed.append(self._waiting.popleft()[0])
        if failed:
            self._fail(failed, interpreter.end(self._calls))


def _runs(record: Optional[JobRecord]) -> bool:
    return record is not None and record.state == "RUNNING"
