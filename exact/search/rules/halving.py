"""Sequential halving: a budget spread over phases that each drop half of the actions (Karnin, Koren and Somekh 2013).

`ceil(log2 n)` phases lead from n actions to one. Each visits its c actions `max(1, floor(budget / (phases c)))` times. With the budget of
the whole search, and the phases counted from its first actions, this is the schedule of Karnin et al. and of mctx. If each phase is planned
anew, from the budget and the phases that are left, a budget that changed on the way is used in full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase at one state. Nothing in it waits for a result except the next visit of the same action."""

    root: int
    """Id of the node whose actions are halved."""
    number: int
    """Index of the phase; 0 for the first."""
    actions: tuple[int, ...]
    """Indices of the edges that may be visited, best first."""
    size: int
    """Number of actions to visit: the first ones, if the budget does not allow one visit each."""
    visits: int
    """Maximum number of visits of each action."""
    before: Mapping[int, int]
    """Visits of each of `actions` when the phase began."""
    budget: int
    """Iterations left when the halving began."""
    first: int
    """Number of actions at the first phase."""

    def due(self, taken: Mapping[int, int], closed: Collection[int], order: Callable[[int], float]) -> list[int]:
        """Return the actions that may be visited now: the least visited first, then the lowest by `order`.

        taken: visits of each of `actions` since the phase began, those in flight included. closed: actions that get no more visits.
        """
        begun = sum(count > 0 for count in taken.values())
        may = [i for i in self.actions if i not in closed and taken[i] < self.visits and (taken[i] > 0 or begun < self.size)]
        return sorted(may, key=lambda i: (taken[i], order(i)))


def phases(actions: int) -> int:
    """Return the number of phases that lead from this many actions to one; at least 1."""
    return max(1, (actions - 1).bit_length())


def visits_each(budget: int, actions: int, left: int) -> int:
    """Return the visits of each of a phase's `actions` if `left` phases share `budget`; at least 1."""
    return max(1, budget // (left * actions))


def considered(budget: int, actions: int, most: int = 16) -> int:
    """Return the number of actions to begin with: at most `most`, and few enough for one visit each in every phase; at least 1.

    With many actions and budgets of 3, 7, 15 and 31: 2, 4, 8 and 16.
    """
    count = max(1, min(actions, most))
    while count > 1 and _cheapest(count) > budget:
        count -= 1
    return count


def _cheapest(actions: int) -> int:
    """Return the number of visits that a halving needs with one visit each in every phase."""
    total = 0
    for _ in range(phases(actions)):
        total, actions = total + actions, max(2, actions // 2)
    return total


def begin(root: int, ranked: Sequence[int], visits: Sequence[int], left: int, first: int, *, late: bool = False) -> Phase:
    """Return the first phase.

    ranked: actions that may be visited, best first. visits: of all edges of the root. left: iterations left. first: number of actions to
    begin with. late: whether actions are chosen when their visit is asked for, not now.
    """
    size = min(first, len(ranked))
    return _phase(root, 0, ranked, size, visits, visits_each(left, size, phases(size)), left, left, size, late)


def following(
    last: Phase, ranked: Sequence[int], visits: Sequence[int], left: int, *, fixed: bool = False, up: bool = False
) -> Phase | None:
    """Return the next phase, with the better half of the actions that the last one visited; None if none of them may be visited.

    Its size is half the last one's, rounded down or, with `up`, up; at least two. fixed: whether its length follows from the first budget
    instead of the iterations left; its actions are then chosen late too. The other parameters are those of `begin`.
    """
    retained = [i for i in ranked if i in last.before and visits[i] > last.before[i]]
    if not retained:
        return None
    size = min(max(2, (last.size + up) // 2), len(retained))
    each = visits_each(last.budget, size, phases(last.first)) if fixed else visits_each(left, size, phases(size))
    return _phase(last.root, last.number + 1, retained, size, visits, each, left, last.budget, last.first, fixed)


def _phase(
    root: int,
    number: int,
    ranked: Sequence[int],
    size: int,
    visits: Sequence[int],
    each: int,
    left: int,
    budget: int,
    first: int,
    late: bool,
) -> Phase:
    """Return a phase of the given size."""
    actions = tuple(ranked if late else ranked[:size])
    before = {i: visits[i] for i in actions}
    return Phase(root=root, number=number, actions=actions, size=min(size, left), visits=each, before=before, budget=budget, first=first)
