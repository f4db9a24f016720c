"""What was exchanged with servers for a call, whatever became of the call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import msgspec

from exact.models.base import Usage


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a server."""

    endpoint: str
    """Address without any credentials."""
    outcome: Literal["answered", "refused", "lost"]
    """answered: an answer came whole. refused: there was no connection, or an error status came, for which servers take no money.
    lost: neither, so what it took is not known: the connection broke, the time was up, the answer did not read, or nobody waited for it
    any more."""
    usage: Usage = Usage()
    """Of an answered one."""
    reason: str = ""
    """Of one that was refused or lost, in one line."""


_METER: ContextVar[list[Exchange] | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[list[Exchange]]:
    """Inside, what is exchanged is added to the list, also by tasks that are started inside."""
    exchanges: list[Exchange] = []
    token = _METER.set(exchanges)
    try:
        yield exchanges
    finally:
        _METER.reset(token)


def note(exchange: Exchange) -> None:
    """Adds an exchange to the meter that is running, if one is."""
    meter = _METER.get()
    if meter is not None:
        meter.append(exchange)


def total(usages: Iterator[Usage] | list[Usage]) -> Usage:
    """All of them together; the cost is unknown where one of them is."""
    found = list(usages)
    costs = [usage.cost for usage in found]
    known = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in found),
        cached_tokens=sum(usage.cached_tokens for usage in found),
        output_tokens=sum(usage.output_tokens for usage in found),
        cost=sum(known) if len(known) == len(costs) else None,
    )
