"""Compare states by what each is worth on its own."""

from __future__ import annotations

from collections.abc import Sequence

from exact.agents.base import ValueFunction, evaluate_all
from exact.context import Context


class ValueComparator:
    """Judges each state, and gives it its share of the sum of values; equal shares where none is worth anything."""

    def __init__(self, value: ValueFunction) -> None:
        self._value = value

    async def compare(self, contexts: Sequence[Context]) -> tuple[float, ...]:
        """One judgement for each state. Raises ModelError."""
        values = [evaluation.value for evaluation in await evaluate_all(self._value, contexts)]
        total = sum(values)
        return tuple(value / total if total else 1 / len(values) for value in values)
