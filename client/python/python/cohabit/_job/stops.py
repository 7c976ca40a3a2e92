"""Stops of a job: what its process was told, what its ranks agreed on, and whether the script was told in time.

Decisions are taken at the boundary between two steps: the iteration of `Job.track`, or without it each question
(`Job.should_checkpoint`, `Job.should_stop`).
"""

from __future__ import annotations

import os
import time

from ..errors import CohabitError, Preempted
from . import signals
from .agreement import Gang, Votes
from .messages import warn_of_exception, warn_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, TypeVar

    F = TypeVar("F", bound=Callable[[], object])

# How long before its time limit a job is told to save.
SECONDS_BEFORE_LIMIT = 60.0
NEVER = float("inf")

_monotonic = time.monotonic


class Stops:
    """The stops of one job.

    Attributes:
        is_gang: Whether ranks decide together.
        gang: The ranks.
        agreed: What they have agreed on.
        is_told: Whether the script was told of the stop, in the body of a loop that it may now leave.
        asks_to_save: Whether it asks `should_checkpoint`.
        loops: How many loops of `track` run, one in another.
        saves: How many checkpoints are being saved.
    """

    def __init__(self, gang: Gang, *, is_gang: bool, is_active: bool, has_folder: bool) -> None:
        self._is_active = is_active
        self._has_folder = has_folder
        self._pid = os.getpid()
        self._opened_at = _monotonic()
        self._deadline = NEVER
        self._answered = 0
        self._asks = False
        self.asks_to_save = False
        self._listens = False
        self._functions: list[Callable[[], object]] = []
        self.agreed = Votes()
        self.is_told = False
        self.loops = 0
        self.saves = 0
        self.join(gang, is_gang)

    def join(self, gang: Gang, is_gang: bool) -> None:
        """From now on, these ranks decide together."""
        self.gang, self.is_gang = gang, is_gang
        self._saved_at = 0.0 if is_gang else _monotonic()

    def listen(self, stop_at: float | None) -> None:
        """Notes signals from now on, and the time limit, in seconds since 1970."""
        signals.at_stop = self.leave_if_unnoticed
        self._listens = signals.listen()
        if not self._listens:
            warn_once("cohabit.job() was not called in the main thread: stops and warnings are not noticed")
        if stop_at is not None:
            left = stop_at - time.time()
            self._deadline = _monotonic() + left - min(SECONDS_BEFORE_LIMIT, max(left, 0.0) / 10)

    def close(self) -> None:
        """Leaves the other ranks, and gives the signals back."""
        self.gang.close()
        if self._listens:
            signals.at_stop = None
            signals.stop_listening()

    def call_at_stop(self, function: F) -> F:
        """Has a function called at a stop."""
        if not callable(function):
            raise CohabitError(f"on_stop takes a function without arguments, not {function!r}")
        self._functions.append(function)
        return function

    def is_first_question(self) -> bool:
        """Whether the script begins to ask outside of a loop: a stop is noticed from now on."""
        is_first = self.loops == 0 and not self._asks
        self._asks |= is_first
        return is_first

    def should_stop(self) -> bool:
        """Whether the job is being stopped."""
        self._ask()
        # A script that asks both saves where it asks for that.
        self.is_told |= self.agreed.stop and not self.asks_to_save
        return self.agreed.stop

    def should_checkpoint(self, span: float) -> bool:
        """Whether to save now: so many seconds have passed since the last save, or the job may soon end."""
        self.asks_to_save = True
        self._ask()
        if not self._has_folder and not self._is_active:
            return False
        now = self._now()
        if now >= self._deadline and not self.is_gang:
            self.agreed.deadline = True
        events = self.agreed.events()
        if events > self._answered or now - self._saved_at >= span:
            self._answered = events
            self._saved_at = now
            self.is_told |= self.agreed.stop
            return True
        return False

    def note_save(self) -> None:
        """A checkpoint is being saved: the next one is due later."""
        self._saved_at = self._now()

    def may_leave(self, has_had_time: bool) -> bool:
        """Whether a loop is left: the job is being stopped, and the script could save since it was told."""
        return self.agreed.stop and (has_had_time or self.is_told)

    def pass_boundary(self) -> None:
        """Takes over what was received, or agreed on with the other ranks; calls what waits for a stop."""
        if self.is_gang:
            self._pass_boundary_together()
        elif self._is_active:
            self.agreed.stop, self.agreed.warnings = signals.received.stop, signals.received.warnings
        if self.agreed.stop and self._functions:
            self._call_functions()

    def leave_if_unnoticed(self) -> None:
        """Ends the script in the handler of SIGTERM, if no loop would notice the stop: there is nothing to save."""
        is_noticed = self._asks or self.loops > 0 or self.saves > 0
        if is_noticed or not signals.received.stop or not self._is_active or os.getpid() != self._pid:
            return
        self._call_functions()
        raise Preempted

    def _ask(self) -> None:
        """A question outside of `track` is a boundary between steps. Within, all ranks may not ask the same."""
        if self.loops == 0 or not self.is_gang:
            self.pass_boundary()

    def _now(self) -> float:
        """Seconds of the clock that measures the time between checkpoints."""
        return self.agreed.clock if self.is_gang else _monotonic()

    def _pass_boundary_together(self) -> None:
        schedule = self.gang.schedule
        if not schedule.is_due():
            return
        now = _monotonic()
        is_clock = self.gang.rank == 0 or self.gang.is_alone
        own = Votes(
            stop=self._is_active and signals.received.stop,
            warnings=signals.received.warnings if self._is_active else 0,
            deadline=now >= self._deadline,
            clock=now - self._opened_at if is_clock else 0.0,
        )
        numbers = [own.stop, own.warnings, own.deadline, own.clock, schedule.seconds_per_step()]
        stop, warnings, deadline, clock, length = self.gang.largest(numbers)
        self.agreed = Votes(stop > 0, int(warnings), deadline > 0, clock)
        schedule.plan(length)

    def _call_functions(self) -> None:
        """An exception must not cost the checkpoint that is saved after this."""
        functions, self._functions = self._functions, []
        for function in functions:
            try:
                function()
            except Exception as error:
                warn_of_exception("a function of job.on_stop failed, and the stop goes on", error)
