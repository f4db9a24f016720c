"""Budgets: hard caps that are reserved before they are spent.

Scopes nest (task > search): a reservation counts in its own scope and in every one around it, and BudgetExceeded names the
scope and the kind that ran out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from exact.errors import BudgetExceeded

Kind = Literal["money", "calls", "tokens", "actions", "transitions", "evaluations", "iterations", "seconds"]


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
        """Raise BudgetExceeded unless `amount` more can be spent."""
        if kind in self.limits and self.spent.get(kind, 0.0) + self.reserved.get(kind, 0.0) + amount > self.limits[kind] + 1e-9:
            raise BudgetExceeded(self.scope, kind, self.limits[kind])
        if self.parent:
            self.parent.check(kind, amount)

    def spend(self, kind: Kind, amount: float = 1.0) -> None:
        """Count what was spent. Never raises: a fact is a fact."""
        self.spent[kind] = self.spent.get(kind, 0.0) + amount
        if self.parent:
            self.parent.spend(kind, amount)

    @contextmanager
    def reserve(self, amounts: Mapping[Kind, float]) -> Iterator[None]:
        """Hold amounts back while the work they are for is under way; given back on leaving. Raises BudgetExceeded."""
        for kind, amount in amounts.items():
            self.check(kind, amount)
        self._hold(amounts, +1)
        try:
            yield
        finally:
            self._hold(amounts, -1)

    def _hold(self, amounts: Mapping[Kind, float], sign: int) -> None:
        for kind, amount in amounts.items():
            self.reserved[kind] = self.reserved.get(kind, 0.0) + sign * amount
        if self.parent:
            self.parent._hold(amounts, sign)
