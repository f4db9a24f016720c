"""Work of asyncio under task groups of anyio."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from anyio import CancelScope

T = TypeVar("T")


async def apart(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work that cleans up when it is cancelled.

    Task groups of anyio cancel a task again at each of its awaits, so the work is a separate task, which is cancelled once.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with CancelScope(shield=True):
            await asyncio.wait([task])
        raise
