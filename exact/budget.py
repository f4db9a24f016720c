"""Budgets: hard caps that are reserved before they are spent.

Scopes nest: task > search (what is spent for one committed action) > iteration (one piece of work). What a single call may take is
held back around it, in tokens and money, by what its answer can cost at most. A reservation counts in its own scope and in every
one around it, and BudgetExceeded names the scope and the kind that ran out. Time is not reserved: it passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from exact.errors import BudgetExceeded

Kind = Literal["money", "calls", "tokens", "actions", "transitions", "evaluations", "iterations", "seconds"]
Scope = Literal["task", "search", "iteration"]


class Budget:
    """What may be spent in one scope. Kinds without a limit are counted and never refused."""

    def __init__(self, limits: Mapping[Kind, float | None], *, scope: str = "task", parent: Budget | None = None) -> None:
        self.limits, self.scope, self.parent = {k: v for k, v in limits.items() if v is not None}, scope, parent
        self.spent: dict[Kind, float] = {}
        self.reserved: dict[Kind, float] = {}

    def remaining(self, kind: Kind) -> float | None:
        """What can still be reserved here and in every scope around; None where nothing limits it."""
        here = self.limits[kind] - self.spent.get(kind, 0.0) - self.reserved.get(kind, 0.0) if kind in self.limits else None
        above = self.parent.remaining(kind) if self.parent else None
        return min((left for left in (here, above) if left is not None), default=None)

    def check(self, kind: Kind, amount: float = 1.0) -> None:
        """Raise BudgetExceeded unless `amount` more can be spent. It says whether only what others hold back is in the way."""
        if kind in self.limits:
            limit, used, held = self.limits[kind], self.spent.get(kind, 0.0), self.reserved.get(kind, 0.0)
            if used + held + amount > limit + 1e-9:
                over = used + amount > limit + 1e-9
                raise BudgetExceeded(self.scope, kind, limit, usage=used, wanted=amount, reserved=not over)
        if self.parent:
            self.parent.check(kind, amount)

    def spend(self, kind: Kind, amount: float = 1.0) -> None:
        """Count what was spent. Never raises: a fact is a fact."""
        self.spent[kind] = self.spent.get(kind, 0.0) + amount
        if self.parent:
            self.parent.spend(kind, amount)

    @contextmanager
    def reserve(self, amounts: Mapping[Kind, float]) -> Iterator[Reservation]:
        """Hold amounts back while the work they are for is under way; given back on leaving. Raises BudgetExceeded."""
        held = Reservation(self)
        try:
            held.add(amounts)
            yield held
        finally:
            held.release()

    def hold(self, amounts: Mapping[Kind, float], sign: int) -> None:
        """Add amounts to what is reserved here and in every scope around, or take them off."""
        for kind, amount in amounts.items():
            self.reserved[kind] = self.reserved.get(kind, 0.0) + sign * amount
        if self.parent:
            self.parent.hold(amounts, sign)


class Reservation:
    """What is held back for one piece of work."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._amounts: dict[Kind, float] = {}

    def add(self, amounts: Mapping[Kind, float]) -> None:
        """Hold more back, all of it or nothing. Raises BudgetExceeded."""
        for kind, amount in amounts.items():
            self._budget.check(kind, amount)
        self._budget.hold(amounts, +1)
        for kind, amount in amounts.items():
            self._amounts[kind] = self._amounts.get(kind, 0.0) + amount

    def extend(self, kind: Kind, amount: float) -> bool:
        """Hold more of a kind back, if there is as much."""
        try:
            self.add({kind: amount})
        except BudgetExceeded:
            return False
        return True

    def release(self) -> None:
        """Give all of it back. May be called twice."""
        self._budget.hold(self._amounts, -1)
        self._amounts = {}

    def count(self, kind: Kind, amount: float) -> None:
        """Give back what is now counted as spent."""
        amount = min(amount, self._amounts.get(kind, 0.0))
        self._budget.hold({kind: amount}, -1)
        self._amounts[kind] = self._amounts.get(kind, 0.0) - amount
