"""Costs of model calls by role, node, model, prompt or task of a run. An unknown price stays unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from exact.models.base import Usage
from exact.runs.journal import events as ev

By = Literal["role", "node", "model", "prompt", "task"]
WAYS: tuple[By, ...] = get_args(By)


class CallCost(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and cost of some model calls."""

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the server had in its prefix cache."""
    cache_write_tokens: int = 0
    """Input tokens that the server wrote into its prefix cache."""
    output_tokens: int = 0
    reasoning_tokens: int = 0
    """Output tokens of reasoning, where the server tells."""
    cost: float = 0.0
    """US dollars, of the calls whose price is known."""
    unknown: int = 0
    """Number of calls whose cost is not known. Above 0, more than `cost` was paid."""
    replayed: int = 0
    """Number of answers that came from the cache of answers, at no cost."""
    unaccounted: int = 0
    """Number of requests that were given up on. Their tokens and cost are in no field here."""

    def __add__(self, other: CallCost) -> CallCost:
        mine, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        names = self.__struct_fields__
        return CallCost(**{name: a + b for name, a, b in zip(names, mine, theirs, strict=True)})


def cost_by_group(events: Iterable[ev.AnyEvent], by: By = "role", *, task: str = "") -> dict[str, CallCost]:
    """Return the cost of a journal's calls in groups, which add up to the cost of the attempt. `task` names the group by task."""
    found: dict[str, CallCost] = {}
    for event in events:
        match event:
            case ev.Called():
                spent = _spent(event.usage, calls=1, replayed=event.replayed)
                group = {"role": event.role, "node": str(event.node), "model": event.model, "prompt": event.prompt, "task": task}[by]
            case ev.Unaccounted():
                spent = msgspec.structs.replace(_spent(event.usage), unaccounted=len(event.lost))
                group = {"role": event.role, "node": str(event.node), "model": event.model, "prompt": "", "task": task}[by]
            case _:
                continue
        found[group] = found.get(group, CallCost()) + spent
    return found


def total_cost(groups: Iterable[CallCost]) -> CallCost:
    """Return the sum of some groups."""
    found = CallCost()
    for group in groups:
        found += group
    return found


def _spent(usage: Usage, *, calls: int = 0, replayed: int = 0) -> CallCost:
    return CallCost(
        calls=calls,
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost=usage.cost or 0.0,
        unknown=int(usage.cost is None),
        replayed=replayed,
    )
