"""Several calls at once, of which all are needed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def together(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; the first failure ends the others, and so does being cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failures:
        failure = failures.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise failure


async def all_results(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order, once all calls have ended: one that failed does not end the others, for what they take is paid for and kept.

    Raises the first failure, in order. Being cancelled ends all.
    """
    found = await asyncio.gather(*calls, return_exceptions=True)
    results = list[T]()
    for one in found:
        if isinstance(one, BaseException):
            raise one
        results.append(one)
    return results
