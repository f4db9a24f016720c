"""Snapshots of the live environment, from which the search goes on where nothing else leads to the root."""

from __future__ import annotations

import asyncio

from exact.environments.restore.snapshots import StatePath
from exact.runs.attempt.attempt_context import AttemptContext
from exact.runs.attempt.observations import waypoints
from exact.runs.attempt.slots import Slots

TRIES = 3
"""Snapshots of one root that are tried. An obstacle such as a request in flight passes; what makes a fork differ does not."""


class LiveSnapshots:
    """Takes snapshots of the live environment, which is at rest while the search runs."""

    def __init__(self, attempt: AttemptContext, slots: Slots) -> None:
        self._attempt, self._slots = attempt, slots
        self._lock = asyncio.Lock()
        self._root, self._tried = -1, 0
        self._beside: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin a snapshot of the root beside other work. Workers that need the root wait for it.

        `settle` comes before the live environment is used again.
        """
        self._beside = asyncio.create_task(self._take_beside(tuple(waypoints(self._attempt.state.search.tree.root))))

    async def _take_beside(self, path: StatePath) -> None:
        with self._slots.coming(path):
            await self.take()

    async def settle(self, *, cancel: bool = False) -> None:
        """Wait for the snapshot that was begun, or cancel it."""
        if self._beside is not None:
            beside, self._beside = self._beside, None
            if cancel:
                beside.cancel()
            await asyncio.gather(beside, return_exceptions=cancel)

    async def take(self) -> bool:
        """Take a snapshot of the root unless there is one. Return whether there is one now."""
        root, store = self._attempt.state.search.tree.root, self._slots.snapshots
        if store.forks is None:
            return False
        async with self._lock:
            if root.id != self._root:
                self._root, self._tried = root.id, 0
            if store.has(tuple(waypoints(root))):
                return True
            if self._tried >= TRIES:
                return False
            self._tried += 1
            began = self._attempt.journal.now
            if (stored := await self._attempt.live.snapshot()) is None:
                return False
            store.add(stored)
            self._attempt.record_snapshot(stored.snapshot, root, since=began)
            return True
