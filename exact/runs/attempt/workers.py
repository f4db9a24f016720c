"""The workers of an attempt: pieces of work in flight, each an asyncio task that gets all that one selection needs.

With one worker each piece ends before the next is asked for, so the order of events is that of a serial search. With more, results are
told as they come, and the algorithm is asked again after each. A piece may outlive the search that asked for it: its results are told
until its subtree is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from exact.errors import BudgetExceeded
from exact.runs.attempt.attempt_context import AttemptContext, deadline
from exact.runs.journal import events as ev
from exact.search.base import Done, Selection, Wait
from exact.search.intervention import PRUNED
from exact.search.tree import SearchError


class Workers:
    """Runs the pieces of work of an attempt."""

    def __init__(self, attempt: AttemptContext) -> None:
        self._attempt, self._state = attempt, attempt.state
        self._size = attempt.config.search.workers
        self.in_rounds = attempt.config.search.order == "selection"
        """Whether work is asked for and told in rounds: see executor.py."""
        self.exceeded: BudgetExceeded | None = None
        """The budget whose end ends this search."""
        self.stopping = False
        """Whether no new work begins, so that no piece waits for a budget that others have reserved."""
        self._pieces: dict[int, asyncio.Task[None]] = {}
        self._moves_at_wait = -1
        """Number of moves at which the algorithm last had nothing to ask for."""

    @property
    def busy(self) -> bool:
        """A piece of work is in flight."""
        return bool(self._pieces)

    @property
    def full(self) -> bool:
        """Every worker has a piece of work."""
        return len(self._pieces) == self._size

    @property
    def nothing_new(self) -> bool:
        """The algorithm waits and nothing has changed since, or this round has all its work."""
        return self._moves_at_wait == self._attempt.moves or (self.in_rounds and not self._state.search.gathering)

    def begin_search(self) -> None:
        """Forget what ended the search before."""
        self.exceeded, self.stopping, self._moves_at_wait = None, False, -1

    def asked(self, answer: Selection | Wait | Done) -> None:
        """Note an answer of the algorithm."""
        if isinstance(answer, Wait):
            self._moves_at_wait = self._attempt.moves

    def unassigned(self) -> Selection | None:
        """Return an open selection that no worker has: an interrupted run left it."""
        return next((work.selection for id, work in self._state.search.tree.open.items() if id not in self._pieces), None)

    def start(self, id: int, work: Coroutine[Any, Any, None]) -> None:
        """Start a piece of work for a selection."""
        self._pieces[id] = asyncio.create_task(work)

    def end_search(self, exceeded: BudgetExceeded) -> None:
        """Let a budget that is used up end this search."""
        self.exceeded = self.exceeded or exceeded
        self.stopping = True

    def collect(self) -> None:
        """Forget the pieces that have ended. Raises what one of them raised."""
        for id, piece in list(self._pieces.items()):
            if piece.done():
                del self._pieces[id]
                piece.result()

    async def drain(self) -> str:
        """Wait for all work in flight, which is paid for, and begin nothing new. Return why the search ends."""
        self.stopping = True
        while self._pieces:
            await asyncio.wait(self._pieces.values(), return_when=asyncio.FIRST_COMPLETED)
            self.collect()
        return str(self.exceeded)

    async def stop(self) -> None:
        """Cancel all work in flight and release its selections."""
        self.stopping = True
        await self.close()
        self._release(list(self._state.search.tree.open))

    async def close(self) -> None:
        """Cancel all work in flight and journal nothing, as if the process had ended."""
        await self._cancel(list(self._pieces))

    async def wait(self, since: int) -> None:
        """Wait until something has changed since a count of the attempt's signal.

        Raises SearchError where nothing is in flight that could change.
        """
        if self.exceeded is not None:
            return
        if not self._pieces and not self._state.people.paused:
            raise SearchError("the search algorithm waits, but no work is in flight: correct its `ask`")
        await self._attempt.changed.wait(since)

    async def wait_while_paused(self) -> None:
        """Wait until no viewer's pause is in force, or time is used up."""
        self._attempt.take_commands()
        limit = deadline(self._attempt)
        with suppress(TimeoutError):
            async with asyncio.timeout(None if limit is None else limit.remaining):
                while self._state.people.paused:
                    await self._attempt.changed.wait()
                    self._attempt.take_commands()

    async def take_commands(self) -> None:
        """Take viewers' commands, and cancel the work below what they pruned."""
        self._attempt.take_commands()
        pruned = [id for id, work in self._state.search.tree.open.items() if any(edge.closed == PRUNED for _, edge in work.path)]
        await self._cancel(pruned)
        self._release(pruned)

    async def _cancel(self, ids: list[int]) -> None:
        pieces = [self._pieces.pop(id) for id in ids if id in self._pieces]
        for piece in pieces:
            piece.cancel()
        await asyncio.gather(*pieces, return_exceptions=True)

    def _release(self, ids: list[int]) -> None:
        for id in ids:
            if id in self._state.search.tree.open:
                self._attempt.record(ev.Released(selection=id))
