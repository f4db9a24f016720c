"""The order in which results are told: as they come, or in rounds, in the order in which they were asked for.

In a round the search is asked for as many pieces of work as there are workers. All steps are taken, then told in order; then all
evaluations and proposals are made, then told in order. Only then is it asked again. The outcome of a round depends on the results alone
and not on which came first, so two runs agree, and a resumed run agrees with one that was not interrupted. The price is a wait for the
slowest piece of a round. The phase is read from the search tree, so an interrupted round resumes where it was.
"""

from __future__ import annotations

from exact.runs.attempt.signal import Signal
from exact.runs.journal.state import AttemptState
from exact.search.tree import Open


class TellOrder:
    """Lets pieces of work begin and tell in turn. Outside of rounds, none waits."""

    def __init__(self, state: AttemptState, changed: Signal, *, in_rounds: bool) -> None:
        self._state, self._changed, self._in_rounds = state, changed, in_rounds
        self._ready = set[int]()
        """Selections that have their results."""

    async def begin(self, selection: int) -> None:
        """Wait until all work of earlier phases is told."""
        while self._in_rounds and selection in self._state.tree.open and self._is_ahead(selection):
            await self._changed.wait()

    async def tell(self, selection: int) -> None:
        """Wait until all work of this phase has its results, and the selections asked for before this one are told."""
        if not self._in_rounds:
            return
        self._ready.add(selection)
        self._changed.fire()
        try:
            while selection in self._state.tree.open and not self._is_next(selection):
                await self._changed.wait()
        finally:
            self._ready.discard(selection)

    def _is_ahead(self, selection: int) -> bool:
        """Return True where other work is in an earlier phase."""
        mine = phase(self._state.tree.open[selection])
        return any(phase(work) < mine for work in self._state.tree.open.values())

    def _is_next(self, selection: int) -> bool:
        turns = {id: (phase(work), id) for id, work in self._state.tree.open.items()}
        mine = turns[selection]
        return all(turn >= mine and (turn[0] > mine[0] or id in self._ready) for id, turn in turns.items())


def phase(work: Open) -> int:
    """Return the phase of a piece of work in its round.

    0: its step is still to be taken. Else 1, and one more for each result that has come, where they are asked for one by one.
    """
    if work.left[0] == "step":
        return 0
    selection = work.selection
    told = len(selection.needs) - len(work.left) - (selection.needs[0] == "step")
    return 1 if selection.together else 1 + told
