"""The first questions of a reader: the writes outside, and the step at which the attempt went wrong."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from exact.environments.base import SideEffect
from exact.report.model import data
from exact.report.model.reading import Reading
from exact.report.model.text import LABEL, in_words, one_line
from exact.search.tree import Node

DROP = 0.1
"""Drop below the expected value from which a step counts as one at which the attempt may have gone wrong."""
_STANDS = "It stands."
_CONTAINED = {"sandbox": "It stayed in the sandbox.", "recording": "It was answered from recorded traffic."}
"""Fate of a write that did not reach a server outside, by the place that answered it."""


class Writes(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of an attempt, by destination."""

    committed: tuple[data.Write, ...]
    simulated: tuple[data.Write, ...]
    contained: tuple[data.Write, ...]
    blocked: tuple[data.Write, ...]
    outside: int
    """Number of writes that are known to have been sent to a server outside."""
    unknown: bool
    """Flag: the destination of a write is unknown. Older journals do not record it."""


_Sent = tuple[SideEffect, data.Write]


def writes(reading: Reading) -> Writes:
    """Return all writes that were sent or blocked."""
    committed, simulated = list(_committed(reading)), list(_simulated(reading))
    every = [*committed, *simulated]
    return Writes(
        committed=tuple(write for effect, write in committed if effect.reach not in _CONTAINED),
        simulated=tuple(write for effect, write in simulated if effect.reach not in _CONTAINED),
        contained=tuple(
            msgspec.structs.replace(write, fate=_CONTAINED[effect.reach], undone=True)
            for effect, write in every
            if effect.reach in _CONTAINED
        ),
        blocked=tuple(_blocked(reading)),
        outside=sum(effect.reach == "outside" for effect, _ in every),
        unknown=any(not effect.reach for effect, _ in every),
    )


def _committed(reading: Reading) -> Iterator[_Sent]:
    """Yield the writes of committed actions in order, then those that were repeated after a crash."""
    if reading.reset is not None:
        yield from _writes(reading.reset.effects, "the task's start", 0, _STANDS, undone=False)
    for decided, committed, root in reading.steps:
        if committed is not None:
            child = reading.child(committed, root)
            words = in_words(root.edges[decided.decision.edges[0]].action, reading.seen(root))
            fate = "The search had sent it in an environment that then became the real one: it stands." if committed.promoted else _STANDS
            yield from _writes(committed.effects, words, child.id if child else root.id, fate, undone=False)
    for rebuilt in reading.rebuilt:
        again = "It was sent again when the environment was built anew after a crash; the reset before it had undone the first."
        yield from _writes(rebuilt.effects, "a committed action", reading.state.tree.root.id, again, undone=False)


def _simulated(reading: Reading) -> Iterator[_Sent]:
    """Yield the writes of the search in order of states: of an action's first execution, and of replays."""
    free = str(reading.config.browser.speculation) == "free"
    fate = (
        "It was NOT undone: the search was allowed to write (browser.speculation is free)."
        if free
        else "It was undone with its environment."
    )
    promoted = {(root.id, committed.edge) for _, committed, root in reading.steps if committed is not None and committed.promoted}
    for (id, edge), acted in reading.state.acted.items():
        node = reading.state.tree.nodes[id]
        if (id, edge) not in promoted:
            yield from _writes(acted.effects, _words(reading, node, edge), reading.foreseen.get((id, edge), id), fate, undone=not free)
    for id, arrivals in reading.arrivals.items():
        for arrival in arrivals:
            yield from _writes(arrival.effects, f"the way to state {id}, gone again", id, fate, undone=not free)


def _blocked(reading: Reading) -> Iterator[data.Write]:
    """Yield the writes of the search that were blocked."""
    for (id, edge), acted in reading.state.acted.items():
        node = reading.state.tree.nodes[id]
        for effect in acted.effects:
            if effect.is_blocked:
                yield _write(effect, _words(reading, node, edge), reading.foreseen.get((id, edge), id), "It was not sent.", undone=True)


def wrong(reading: Reading, steps: tuple[data.CommittedStep, ...], ending: data.Ending) -> data.WrongStep | None:
    """Return the step at which the attempt went wrong; None if there is none.

    It is the first step that the live environment refused or answered differently, else the one with the largest drop.
    """
    if ending == "solved":
        return None
    for step in steps:
        if step.trouble:
            return data.WrongStep(step=step.number, node=step.node, words=step.words, why=f"It was {step.outcome}." if step.outcome else "")
    fell = [step for step in steps if step.value is not None and step.came is not None and step.value - step.came >= DROP]
    if not fell:
        return None
    step = max(fell, key=lambda each: (each.value or 0.0) - (each.came or 0.0))
    why = f"{step.value:.2f} was expected of it, and {step.came:.2f} came: the furthest that any step fell short."
    return data.WrongStep(step=step.number, node=step.node, words=step.words, why=why)


def _writes(effects: tuple[SideEffect, ...], words: str, node: int, fate: str, *, undone: bool) -> Iterator[_Sent]:
    return ((effect, _write(effect, words, node, fate, undone=undone)) for effect in effects if effect.is_write)


def _write(effect: SideEffect, words: str, node: int, fate: str, *, undone: bool) -> data.Write:
    fields = tuple(one_line(name, LABEL) for name in effect.fields)
    return data.Write(request=_request(effect), words=words, node=node, fate=fate, undone=undone, fields=fields)


def _request(effect: SideEffect) -> str:
    status = f" ({effect.status})" if effect.status else ""
    detail = "" if effect.is_blocked else effect.detail
    return one_line(f"{effect.method} {effect.url} {detail}".strip()) + status


def _words(reading: Reading, node: Node, edge: int) -> str:
    return in_words(node.edges[edge].action, reading.seen(node)) if edge < len(node.edges) else "an action"
