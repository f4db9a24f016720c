"""When results are handed to the search: as they come, or in rounds, in the order in which they were asked for.

In rounds the search is asked for as many pieces of work as there are workers. All steps are taken, then told in order; then all
judgements and proposals are made, then told in order. Only then is it asked again. What a round leads to hangs on the results alone and
not on which came first, so two runs agree, and a resumed one agrees with one that was not interrupted. Its price is the wait for the
slowest of a round. Everything is told from the search tree, so an interrupted round is gone on with where it was.
"""

from __future__ import annotations

from exact.runs.attempt.signal import Signal
from exact.runs.journal.state import State
from exact.search.tree import Open

Turn = tuple[int, int]
"""Phase of the round, and the selection's number."""


class Turns:
    """Who may begin and who may tell. Without `rounds`, everyone at once."""

    def __init__(self, state: State, stirred: Signal, *, rounds: bool) -> None:
        self._state, self._stirred, self._rounds = state, stirred, rounds
        self._ready = set[int]()

    async def begin(self, selection: int) -> None:
        """Until all work of earlier phases is told."""
        while self._rounds and selection in self._state.tree.open and self._behind(selection):
            await self._stirred.wait()

    async def tell(self, selection: int) -> None:
        """Until all work of this phase has its results, and what was asked for before this is told."""
        if not self._rounds:
            return
        self._ready.add(selection)
        self._stirred.fire()
        try:
            while selection in self._state.tree.open and not self._first(selection):
                await self._stirred.wait()
        finally:
            self._ready.discard(selection)

    def _behind(self, selection: int) -> bool:
        mine = phase(self._state.tree.open[selection])
        return any(phase(work) < mine for work in self._state.tree.open.values())

    def _first(self, selection: int) -> bool:
        turns = {id: (phase(work), id) for id, work in self._state.tree.open.items()}
        mine = turns[selection]
        return all(turn >= mine and (turn[0] > mine[0] or id in self._ready) for id, turn in turns.items())


def phase(work: Open) -> int:
    """0: its step is still to be taken; else 1 and one more for each result that came, where they are asked for one by one."""
    if work.left[0] == "step":
        return 0
    selection = work.selection
    told = len(selection.needs) - len(work.left) - (selection.needs[0] == "step")
    return 1 if selection.together else 1 + told
