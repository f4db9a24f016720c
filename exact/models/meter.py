"""Exchanges with servers during a call, including those of a failed call."""

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
    """answered: a complete answer arrived. refused: the connection failed, or the server answered with an error status, for which servers
    charge nothing. lost: neither, so that the usage is unknown: the connection broke, the time was up, the answer did not parse, or the
    caller was cancelled."""
    usage: Usage = Usage()
    """Usage of an answered exchange."""
    reason: str = ""
    """Reason of a refused or lost exchange, in one line."""


_METER: ContextVar[list[Exchange] | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[list[Exchange]]:
    """Collect the exchanges inside the context in a list, also those of tasks that are started inside."""
    exchanges: list[Exchange] = []
    token = _METER.set(exchanges)
    try:
        yield exchanges
    finally:
        _METER.reset(token)


def note(exchange: Exchange) -> None:
    """Add an exchange to the running meter, if there is one."""
    meter = _METER.get()
    if meter is not None:
        meter.append(exchange)


def total(usages: Iterator[Usage] | list[Usage]) -> Usage:
    """Return the sum of usages; its cost is unknown if one of them is."""
    found = list(usages)
    costs = [usage.cost for usage in found]
    known = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in found),
        cached_tokens=sum(usage.cached_tokens for usage in found),
        cache_write_tokens=sum(usage.cache_write_tokens for usage in found),
        output_tokens=sum(usage.output_tokens for usage in found),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in found),
        cost=sum(known) if len(known) == len(costs) else None,
    )
