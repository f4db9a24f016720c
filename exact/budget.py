"""Budgets: hard caps that are reserved before they are spent.

Scopes nest: session (several goals) > task > search (for one committed action) > iteration (one piece of work). The most that a single
call can cost, in tokens and money, is reserved around it. A reservation counts in its own scope and in every scope around it.
BudgetExceeded names the scope and the kind that ran out. Time is not reserved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from exact.errors import BudgetExceeded

Kind = Literal["money", "calls", "tokens", "actions", "transitions", "evaluations", "iterations", "seconds"]
Scope = Literal["task", "search", "iteration"]


class Budget:
    """The budget of one scope. Kinds without a limit are counted and never refused."""

    def __init__(self, limits: Mapping[Kind, float | None], *, scope: str = "task", parent: Budget | None = None) -> None:
        self.limits, self.scope, self.parent = {k: v for k, v in limits.items() if v is not None}, scope, parent
        self.spent: dict[Kind, float] = {}
        self.reserved: dict[Kind, float] = {}

    def remaining(self, kind: Kind) -> float | None:
        """Return the amount that can still be reserved here and in every scope around; None without a limit."""
        here = self.limits[kind] - self.spent.get(kind, 0.0) - self.reserved.get(kind, 0.0) if kind in self.limits else None
        above = self.parent.remaining(kind) if self.parent else None
        return min((left for left in (here, above) if left is not None), default=None)

    def check(self, kind: Kind, amount: float = 1.0) -> None:
        """Raise BudgetExceeded unless `amount` more can be spent. The error says whether only reservations of other work are in the way."""
        if kind in self.limits:
            limit, used, reserved = self.limits[kind], self.spent.get(kind, 0.0), self.reserved.get(kind, 0.0)
            if used + reserved + amount > limit + 1e-9:
                over = used + amount > limit + 1e-9
                raise BudgetExceeded(self.scope, kind, limit, usage=used, wanted=amount, reserved=not over)
        if self.parent:
            self.parent.check(kind, amount)

    def spend(self, kind: Kind, amount: float = 1.0) -> None:
        """Count the amount spent. Never raises, because the spending has already happened."""
        self.spent[kind] = self.spent.get(kind, 0.0) + amount
        if self.parent:
            self.parent.spend(kind, amount)

    @contextmanager
    def reserve(self, amounts: Mapping[Kind, float]) -> Iterator[Reservation]:
        """Reserve amounts while the work they are for is under way, and release them on leaving. Raises BudgetExceeded."""
        reservation = Reservation(self)
        try:
            reservation.add(amounts)
            yield reservation
        finally:
            reservation.release()

    def hold(self, amounts: Mapping[Kind, float], sign: int) -> None:
        """Add amounts to the reservations here and in every scope around (sign +1), or remove them (-1)."""
        for kind, amount in amounts.items():
            self.reserved[kind] = self.reserved.get(kind, 0.0) + sign * amount
        if self.parent:
            self.parent.hold(amounts, sign)


class Reservation:
    """The amounts reserved for one piece of work."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._amounts: dict[Kind, float] = {}

    def add(self, amounts: Mapping[Kind, float]) -> None:
        """Reserve more, all of it or nothing. Raises BudgetExceeded."""
        for kind, amount in amounts.items():
            self._budget.check(kind, amount)
        self._budget.hold(amounts, +1)
        for kind, amount in amounts.items():
            self._amounts[kind] = self._amounts.get(kind, 0.0) + amount

    def extend(self, kind: Kind, amount: float) -> bool:
        """Reserve more of one kind if it is available. Return whether it was."""
        try:
            self.add({kind: amount})
        except BudgetExceeded:
            return False
        return True

    def release(self) -> None:
        """Release everything. May be called twice."""
        self._budget.hold(self._amounts, -1)
        self._amounts = {}

    def count(self, kind: Kind, amount: float) -> None:
        """Release an amount that is now counted as spent."""
        amount = min(amount, self._amounts.get(kind, 0.0))
        self._budget.hold({kind: amount}, -1)
        self._amounts[kind] = self._amounts.get(kind, 0.0) - amount
