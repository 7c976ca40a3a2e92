"""The signals of a stop: SIGUSR1 or SIGUSR2 warn that it may come, SIGTERM says that it has.

Handlers only count. They call the handlers that were there before, and stay in the main process: a forked child
gets SIGTERM's earlier handler back, and warnings do not end it.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident

from ..errors import Preempted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Iterator
    from types import FrameType
    from typing import Any, Callable, TypeVar, Union

    T = TypeVar("T")
    Handler = Union[Callable[[int, "FrameType | None"], object], int, None]

else:
    # The module `signal` is this one with enums, whose import takes longer than everything else here.
    try:
        import _signal as signal
    except ImportError:  # Another Python than CPython.
        import signal

WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
STOP = signal.SIGTERM


class Received:
    """What has been received since the start of the process."""

    __slots__ = ("stop", "warnings")

    def __init__(self) -> None:
        self.warnings = 0
        self.stop = False


received = Received()

# Called in the handler of SIGTERM, after it was noted.
at_stop: Callable[[], None] | None = None

_earlier: dict[int, Handler] = {}
# The blocked signals of a thread that is forking, by its id.
_masks: dict[int, set[int]] = {}
_forks_are_watched = False


def survive_warnings() -> None:
    """From now on a warning is noted and does not end the process. Where a program has a handler, it stays alone."""
    try:
        for number in WARNINGS:
            if signal.getsignal(number) == signal.SIG_DFL:
                _install(number)
    except ValueError:
        pass  # Another thread than the main one imports Cohabit, and only that one may install handlers.


def listen() -> bool:
    """Notes warnings and stops, beside the handlers that are there. False outside of the main thread, which alone
    may install handlers."""
    if not _is_main_thread():
        return False
    for number in (*WARNINGS, STOP):
        _install(number)
    return True


def stop_listening() -> None:
    """Gives SIGTERM back to its earlier handler, unless somebody has installed another one since."""
    if _is_main_thread() and signal.getsignal(STOP) is _handle:
        signal.signal(STOP, _restorable(_earlier.pop(STOP, signal.SIG_DFL)))


def iterate(items: Iterable[T]) -> Iterator[T]:
    """`iter`, where processes that load data for PyTorch, and the helpers of `multiprocessing` that they need, are born
    deaf to the signals of a stop. Forked ones are so anyway; others inherit which signals are blocked."""
    is_loader = any(base.__module__.startswith("torch.utils.data.") for base in type(items).__mro__)
    if not is_loader or not getattr(items, "num_workers", 0) or not _is_main_thread():
        return iter(items)
    import multiprocessing
    from multiprocessing import resource_tracker

    context: Any = getattr(items, "multiprocessing_context", None) or multiprocessing
    if context.get_start_method() == "fork":
        return iter(items)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*WARNINGS, STOP))
    try:
        resource_tracker.ensure_running()
        # That has unblocked SIGTERM.
        signal.pthread_sigmask(signal.SIG_BLOCK, (*WARNINGS, STOP))
        return iter(items)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_to_parent() -> None:
    """Makes this process deaf to the signals of a stop, which reach the whole process group: its parent decides."""
    # A mask would only be that of this thread, and packages have started others.
    if _is_main_thread():
        for number in (*WARNINGS, STOP):
            signal.signal(number, signal.SIG_IGN)


def _install(number: int) -> None:
    global _forks_are_watched
    present = signal.getsignal(number)
    # None: a handler that was not installed from Python, such as faulthandler's. It could not be called.
    if present is _handle or present is None:
        return
    _earlier[number] = present
    signal.signal(number, _handle)
    if not _forks_are_watched:
        _forks_are_watched = True
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
        )


def _handle(number: int, frame: FrameType | None) -> None:
    if number == STOP:
        received.stop = True
    else:
        received.warnings += 1
    earlier = _earlier.get(number)
    if callable(earlier):
        earlier(number, frame)
    if number == STOP and at_stop is not None:
        at_stop()
    elif number == STOP and earlier == signal.SIG_DFL:
        # The job is closed, but somebody has put this handler back.
        raise Preempted


def _before_fork() -> None:
    """Between the fork and the return of SIGTERM's earlier handler, a child would lose the signal."""
    _masks[get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, [STOP])


def _after_fork_in_parent() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop(get_ident(), ()))


def _after_fork_in_child() -> None:
    """A child that nobody told to save must end when it is told to: `Process.terminate()` sends SIGTERM.

    Except for processes that load data for PyTorch. SIGTERM reaches the whole group, and a training whose loaders die
    fails before it can save. They end when their parent closes their queue, or dies.
    """
    global at_stop
    at_stop = None
    if signal.getsignal(STOP) is _handle:
        signal.signal(STOP, _restorable(_earlier.get(STOP, signal.SIG_DFL)))
    mask = _masks.pop(get_ident(), set())
    _masks.clear()
    if not _is_forked_by("torch.utils.data."):
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _is_forked_by(package: str) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(package):
            return True
        frame = frame.f_back
    return False


def _restorable(handler: Handler) -> Handler:
    return signal.SIG_DFL if handler is None else handler


def _is_main_thread() -> bool:
    # Not needed by a program that only imports Cohabit.
    import threading

    return threading.current_thread() is threading.main_thread()
