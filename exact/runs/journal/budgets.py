"""Budgets of an attempt: those of the task, of the present search, and of each piece of work.

Numbers of evaluations in the results of a search.
"""

from __future__ import annotations

from exact.budget import Budget, Kind
from exact.config import Config, Limits, ScopeLimits
from exact.search.base import Batched, Compared, Result, Rolled, Valued
from exact.search.rules.afford import affordable
from exact.search.tree import Tree

_PAID: tuple[Kind, ...] = ("money", "calls", "tokens", "transitions", "evaluations")
"""Kinds that an iteration costs, beside time."""


class AttemptBudgets:
    """Nested budgets of an attempt.

    The present search ends with the next commit. Work that is still in flight then counts in the budget that it began with.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._search_limits, self._iteration_limits = limits(config.search.limits), limits(config.search.iteration)
        self.task = Budget(limits(config.limits))
        self.search = self._new_search()
        self.search_began = 0.0
        """Start of the present search, in seconds since the journal was opened."""
        self._scopes: dict[int, Budget] = {}
        """Budgets of open selections, by id."""
        self._first = 0
        """Id of the first selection of the present search."""
        self._iterations = 0
        """Iterations of the tree that are counted in the search's budget."""

    def scope(self, selection: int) -> Budget:
        """Return the budget of a selection's work; -1: the task's. Work of an earlier search counts in the task's."""
        return self._scopes.get(selection) or (self.search if selection >= self._first else self.task)

    def open(self, selection: int) -> None:
        """Begin the budget of a selection's work, inside that of the present search."""
        self._scopes[selection] = Budget(self._iteration_limits, scope="iteration", parent=self.search)

    def close(self, selection: int) -> None:
        """End the budget of a selection's work. A selection without one has no effect."""
        self._scopes.pop(selection, None)

    def renew(self, tree: Tree, now: float) -> list[int]:
        """Begin the budget of a new search, and return the selections that ended with the old one."""
        self.count_iterations(tree)
        self.search, self.search_began, self._first = self._new_search(), now, tree.selections
        return [id for id in self._scopes if id not in tree.open]

    def count_iterations(self, tree: Tree) -> None:
        """Count the tree's new iterations in the search's budget."""
        done, self._iterations = tree.iterations - self._iterations, tree.iterations
        if done:
            self.search.spend("iterations", done)

    def affordable_iterations(self, tree: Tree, elapsed: float) -> int | None:
        """Return how many more iterations the caps of search and task pay for, at the mean cost of one in this search.

        `elapsed`: seconds since the journal was opened. None: no cap limits them.
        """
        scopes = ((self._config.search.limits, self.search, self.search_began), (self._config.limits, self.task, 0.0))
        spent: dict[str, float] = {kind: self.search.spent.get(kind, 0.0) for kind in _PAID}
        spent["seconds"] = elapsed - self.search_began
        left: dict[str, float | None] = {}
        for caps, budget, began in scopes:
            used = {**{kind: budget.spent.get(kind, 0.0) for kind in _PAID}, "seconds": elapsed - began}
            for kind, amount in used.items():
                cap, before = getattr(caps, kind), left.get(kind)
                if cap is not None:
                    left[kind] = cap - amount if before is None else min(before, cap - amount)
        return affordable(spent, left, tree.iterations - tree.search_began)

    def _new_search(self) -> Budget:
        return Budget(self._search_limits, scope="search", parent=self.task)


def limits(caps: Limits | ScopeLimits) -> dict[Kind, float | None]:
    """Return the caps of a scope by kind. Time is not among them, since it passes by the journal's clock."""
    kinds: tuple[Kind, ...] = ("money", "calls", "tokens", "actions", "transitions", "evaluations", "iterations")
    return {kind: getattr(caps, kind, None) for kind in kinds}


def evaluations_in(result: Result) -> int:
    """Return the number of evaluations that the value function made for a result."""
    match result:
        case Valued() | Rolled():
            return 1
        case Compared():
            return len(result.scores)
        case Batched():
            return len(result.evaluations)
    return 0


def benchmark_scores_in(result: Result) -> int:
    """Return the number of evaluations in a result that hold the benchmark's own score."""
    match result:
        case Valued() | Rolled():
            return int(result.evaluation.informed)
        case Batched():
            return sum(each.informed for each in result.evaluations)
    return 0
