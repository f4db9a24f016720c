"""One search: as many pieces of work under way as there are workers, asked for one by one.

A piece of work is a task that gets all that one selection needs. With one worker each piece ends before the next is asked for, so the
order of events is that of a serial search. With more, results are told as they come, and the algorithm is asked again after each.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from exact.errors import BudgetExceeded
from exact.runs.attempt.context import Setting
from exact.runs.attempt.executor import Fulfil
from exact.runs.attempt.slots import Places
from exact.runs.journal import events as ev
from exact.runs.journal.ledger import SELECTION
from exact.search.base import Done, Selection, Wait
from exact.search.intervention import PRUNED
from exact.search.tree import SearchError

LOOK = 0.2
"""Seconds between two looks at what people say, while nothing else happens."""
STOPPED = "stopped by a viewer"


class Search:
    """Drives one tree. Pieces of work may outlive the search that asked for them: until their subtree is dropped they are told."""

    def __init__(self, setting: Setting, places: Places) -> None:
        self._setting, self._state = setting, setting.state
        self._workers, self._rounds = setting.config.search.workers, setting.config.search.order == "selection"
        self._fulfil = Fulfil(setting, places)
        self._pieces: dict[int, asyncio.Task[None]] = {}
        self._exceeded: BudgetExceeded | None = None
        self._waits = -1
        """The number of moves at which the algorithm had nothing more to ask for."""

    async def run(self) -> str:
        """Until the algorithm is done or a budget is used up; why. Raises what broke beyond repair."""
        self._exceeded, self._fulfil.stopping, self._waits = None, False, -1
        self._setting.obey()
        if self._state.stopped:
            return STOPPED
        late = self.out_of_time()
        try:
            async with asyncio.timeout(None if late is None else late.remaining) as clock:
                return await self._until_done()
        except TimeoutError:
            if late is None or not clock.expired():
                raise
            await self.stop()
            return str(BudgetExceeded(late.scope, late.kind, late.limit))

    def out_of_time(self) -> BudgetExceeded | None:
        """The scope whose time runs out first; its `remaining` may be 0. None where time is not limited."""
        now, config = self._setting.journal.now, self._setting.config
        scopes = (("task", config.limits.seconds, now), ("search", config.search.limits.seconds, now - self._state.search_began))
        ends = [BudgetExceeded(scope, "seconds", limit, usage=used) for scope, limit, used in scopes if limit is not None]
        return min(ends, key=lambda each: each.remaining, default=None)

    def _late(self) -> bool:
        late = self.out_of_time()
        return late is not None and late.remaining <= 0

    async def stop(self) -> None:
        """Cancel all work under way and give its reservations back."""
        self._fulfil.stopping = True
        await self.close()
        for id in list(self._state.tree.open):
            self._setting.record(ev.Released(selection=id))

    async def close(self) -> None:
        """Cancel all work under way, as if the process had ended."""
        pieces, self._pieces = list(self._pieces.values()), {}
        for piece in pieces:
            piece.cancel()
        await asyncio.gather(*pieces, return_exceptions=True)

    async def _until_done(self) -> str:
        while True:
            self._collect()
            await self._obey()
            if self._state.stopped:
                await self.stop()
                return STOPPED
            if self._exceeded is not None:
                return await self._drain(self._exceeded)
            asked = self._next()
            if isinstance(asked, Selection):
                self._pieces[asked.id] = asyncio.create_task(self._piece(asked))
            elif isinstance(asked, Done) and not (self._rounds and self._pieces):
                return asked.reason
            elif self._exceeded is None:
                if not self._pieces and not self._state.paused:
                    raise SearchError("the search algorithm waits, but nothing is under way: mend its `ask`")
                await self._stirred()

    async def going(self) -> None:
        """Until the attempt is not paused."""
        self._setting.obey()
        while self._state.paused and not self._late():
            await self._stirred()
            self._setting.obey()

    async def _stirred(self) -> None:
        """Until something happens, or it is time to look at what people say."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await self._setting.stirred.wait()

    async def _obey(self) -> None:
        """Take in what people say, and drop the work under way below what they pruned."""
        self._setting.obey()
        dropped = [id for id, work in self._state.tree.open.items() if any(edge.closed == PRUNED for _, edge in work.path)]
        pieces = [self._pieces.pop(id) for id in dropped if id in self._pieces]
        for piece in pieces:
            piece.cancel()
        await asyncio.gather(*pieces, return_exceptions=True)
        for id in dropped:
            if id in self._state.tree.open:
                self._setting.record(ev.Released(selection=id))

    def _next(self) -> Selection | Wait | Done:
        """What to work on: what an interrupted run left open, then what the algorithm asks for, as long as a worker is free."""
        if len(self._pieces) == self._workers or self._state.paused:
            return Wait()
        for id, work in self._state.tree.open.items():
            if id not in self._pieces:
                return work.selection
        if self._state.done is not None:
            return Done(self._state.done)
        if self._waits == self._setting.moves or (self._rounds and not self._state.gathering):
            return Wait()
        if self._late():
            self._exceeded = self.out_of_time()
            return Wait()
        asked = self._state.ask()
        self._setting.journal.write(asked)
        if isinstance(asked.answer, Wait):
            self._waits = self._setting.moves
        return asked.answer

    async def _piece(self, selection: Selection) -> None:
        """One piece of work; a budget that it would pass ends the search."""
        SELECTION.set(selection.id)
        counts = not set(selection.needs) <= {"proposals", "sample"}
        try:
            with self._state.search.reserve({"iterations": int(counts)}):
                await self._fulfil(selection)
        except BudgetExceeded as exceeded:
            self._exceeded = self._exceeded or exceeded
            self._fulfil.stopping = True
            if selection.id in self._state.tree.open:
                self._setting.record(ev.Released(selection=selection.id))
        finally:
            self._setting.stirred.fire()

    async def _drain(self, exceeded: BudgetExceeded) -> str:
        """Nothing new is begun; what is under way is paid for, so its results are taken in."""
        self._fulfil.stopping = True
        while self._pieces:
            await asyncio.wait(self._pieces.values(), return_when=asyncio.FIRST_COMPLETED)
            self._collect()
        return str(exceeded)

    def _collect(self) -> None:
        """Forget the pieces that ended. Raises what one of them raised."""
        for id, piece in list(self._pieces.items()):
            if piece.done():
                del self._pieces[id]
                piece.result()
