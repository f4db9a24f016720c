"""Concurrent calls whose results are all needed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def together(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results in order. The first failure, or a cancellation, cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failures:
        failure = failures.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise failure


async def all_results(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results in order, once all calls have ended.

    A failure does not cancel the others, because their results are paid for and recorded. Raises the first failure, in order. A
    cancellation cancels all.
    """
    found = await asyncio.gather(*calls, return_exceptions=True)
    results = list[T]()
    for one in found:
        if isinstance(one, BaseException):
            raise one
        results.append(one)
    return results
