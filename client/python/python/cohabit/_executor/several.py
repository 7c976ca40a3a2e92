"""Several calls in one process, one after the other: each is a job of its own for `cohabit.job()`.

Otherwise the second call would find the last checkpoint of the first, and have nothing left to do.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable

    T = Any

DIRECTORY = "COHABIT_CHECKPOINT_DIR"


class OwnCheckpoints:
    """While a call runs, its checkpoint directory is this part of that of the job."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._directory = os.environ.get(DIRECTORY)

    def __enter__(self) -> None:
        if self._directory:
            os.environ[DIRECTORY] = os.path.join(self._directory, self._part)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        helper = sys.modules.get("cohabit._job.job")
        if helper is not None:
            helper.close_present()
        if self._directory:
            os.environ[DIRECTORY] = self._directory


def run_chunk(function: Callable[..., T], chunk: list[tuple[Any, ...]]) -> list[T]:
    """The results of a function for each of these arguments."""
    results = []
    for index, args in enumerate(chunk):
        with OwnCheckpoints(f"part-{index}"):
            results.append(function(*args))
    return results
