"""Model costs of an attempt by role, and the part that was not used."""

from __future__ import annotations

from collections.abc import Iterator

from exact.counted import counted
from exact.report.model import data
from exact.report.model.reading import Reading
from exact.report.model.routes import travel
from exact.report.model.text import LABEL, one_line


def costs(reading: Reading) -> tuple[data.Cost, ...]:
    """Return the cost of each role, most expensive first."""
    found: dict[str, data.Cost] = {}
    for called in (each for calls in reading.calls.values() for each in calls):
        before, used = found.get(called.role), reading.used(called.selection)
        money = called.usage.cost or 0.0
        found[called.role] = data.Cost(
            role=one_line(called.role, LABEL),
            calls=(before.calls if before else 0) + 1,
            input_tokens=(before.input_tokens if before else 0) + called.usage.input_tokens,
            output_tokens=(before.output_tokens if before else 0) + called.usage.output_tokens,
            money=(before.money if before else 0.0) + money,
            known=(before.known if before else True) and called.usage.cost is not None,
            seconds=(before.seconds if before else 0.0) + called.seconds,
            unused=(before.unused if before else 0) + (not used),
            unused_money=(before.unused_money if before else 0.0) + (0.0 if used else money),
        )
    return tuple(sorted(found.values(), key=lambda cost: (-cost.money, -cost.calls, cost.role)))


def waste(reading: Reading) -> Iterator[str]:
    """Yield sentences about results that were paid for and not used."""
    state = reading.state
    edges = [edge for node in state.tree.nodes for edge in node.edges]
    untried = sum(edge.child is None and not edge.closed for edge in edges)
    if untried:
        yield f"{untried} of {len(edges)} proposed actions were never tried."
    if state.late:
        yield f"{counted(state.late, 'answer')} arrived too late to be used."
    if state.unaccounted:
        yield f"No sum includes the cost of {counted(state.unaccounted, 'abandoned model request')}."
    moved = travel(reading)
    if (wasted := moved.prepared - moved.used) > 0:
        yield f"Prepared states that were not requested: {wasted} of {moved.prepared}."
