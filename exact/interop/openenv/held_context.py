"""Context managers that are entered and left in a separate task, so that any task may end them."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

T = TypeVar("T")


class HeldContext(Generic[T]):
    """The value of a context manager, until `close`."""

    def __init__(self, manager: AbstractAsyncContextManager[T]) -> None:
        self._manager, self._end = manager, asyncio.Event()
        self._value: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold())

    async def value(self) -> T:
        """Return the value of the context manager. Raises the exception of entering."""
        return await asyncio.shield(self._value)

    async def close(self) -> None:
        """Leave the context manager. Raises the exception of leaving; may be called twice."""
        self._end.set()
        await self._task

    async def _hold(self) -> None:
        try:
            async with self._manager as value:
                self._value.set_result(value)
                await self._end.wait()
        except Exception as error:
            if self._value.done():
                raise
            self._value.set_exception(error)
            self._value.exception()  # `value` raises it
