"""Operations of the native client, for which a thread or an event loop waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, Callable, Generic, Optional, TypeVar

from .. import _native

T = TypeVar("T")


class Operation(Generic[T]):
    """An operation, and what its answer becomes."""

    def __init__(self, call: _native.Call, read: Callable[[Any], T]) -> None:
        self._call = call
        self._read = read

    def wait(self, timeout: Optional[float] = None) -> T:
        """The answer. Other threads run meanwhile.

        Raises:
            TimeoutError: It took longer than so many seconds.
        """
        return self._read(self._call.wait(timeout))

    def __await__(self) -> Generator[Any, None, T]:
        answer = yield from self._call.__await__()
        return self._read(answer)


class Answers(Generic[T], Iterator[T], AsyncIterator[T]):
    """Answers that come bit by bit, for a loop of either kind."""

    def __init__(self, stream: _native.Stream, read: Callable[[Any], T]) -> None:
        self._stream = stream
        self._read = read

    def __iter__(self) -> Answers[T]:
        return self

    def __aiter__(self) -> Answers[T]:
        return self

    def __next__(self) -> T:
        answer = self._stream.next().wait(None)
        if answer is None:
            raise StopIteration
        return self._read(answer)

    async def __anext__(self) -> T:
        answer = await self._stream.next()
        if answer is None:
            raise StopAsyncIteration
        return self._read(answer)
