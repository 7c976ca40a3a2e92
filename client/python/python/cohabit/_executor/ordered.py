"""The results of many calls in the order of the calls."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import Callable, Optional, TypeVar

A = TypeVar("A")
R = TypeVar("R")


def results_in_order(
    submit: Callable[[A], Future[R]], calls: Iterable[A], timeout: Optional[float], ahead: Optional[int]
) -> Iterator[R]:
    """Submits the calls, or the first ones of them, and gives their results. Those that nobody waits for any more, after
    an error or when the iterator is dropped, are cancelled.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    rest = iter(calls)
    waiting = deque(map(submit, islice(rest, ahead)))

    def results() -> Iterator[R]:
        try:
            while waiting:
                left = None if deadline is None else deadline - time.monotonic()
                result = waiting[0].result(left)
                # Nothing here holds on to it while its consumer does.
                waiting.popleft()
                waiting.extend(map(submit, islice(rest, 1)))
                yield result
                del result
        finally:
            for future in waiting:
                future.cancel()

    return results()
