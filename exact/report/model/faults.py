"""The first questions of a reader: what was written outside, and where the attempt went wrong."""

from __future__ import annotations

from exact.environments.base import SideEffect
from exact.report.model import data
from exact.report.model.reading import Reading
from exact.report.model.text import in_words, one_line
from exact.search.tree import Node

DROP = 0.1
"""Drop below the expected value from which a step counts as one at which the attempt may have gone wrong."""


def committed_writes(reading: Reading) -> tuple[data.Write, ...]:
    """Return the writes of committed actions in order, then those that were repeated after a crash."""
    found = list[data.Write]()
    if reading.reset is not None:
        found += _writes(reading.reset.effects, "the task's start", 0, "It stands.", undone=False)
    for decided, committed, root in reading.steps:
        if committed is not None:
            child = reading.child(committed, root)
            words = in_words(root.edges[decided.decision.edges[0]].action, reading.seen(root))
            fate = (
                "The search had sent it in an environment that then became the real one: it stands." if committed.promoted else "It stands."
            )
            found += _writes(committed.effects, words, child.id if child else root.id, fate, undone=False)
    for rebuilt in reading.rebuilt:
        again = "It was sent again when the environment was built anew after a crash; the reset before it had undone the first."
        found += _writes(rebuilt.effects, "a committed action", reading.state.tree.root.id, again, undone=False)
    return tuple(found)


def simulated_writes(reading: Reading) -> tuple[data.Write, ...]:
    """Return the writes of the search in order of states: of an action's first execution, and of replays."""
    free = str(reading.config.browser.speculation) == "free"
    fate = (
        "It was NOT undone: the search was allowed to write (browser.speculation is free)."
        if free
        else "It was undone with its environment."
    )
    promoted = {(root.id, committed.edge) for _, committed, root in reading.steps if committed is not None and committed.promoted}
    found = list[data.Write]()
    for (id, edge), acted in reading.state.acted.items():
        node = reading.state.tree.nodes[id]
        if (id, edge) not in promoted:
            found += _writes(acted.effects, _words(reading, node, edge), reading.foreseen.get((id, edge), id), fate, undone=not free)
    for id, arrivals in reading.arrivals.items():
        for arrival in arrivals:
            found += _writes(arrival.effects, f"the way to state {id}, gone again", id, fate, undone=not free)
    return tuple(found)


def blocked_writes(reading: Reading) -> int:
    """Return the number of writes of the search that were blocked."""
    return sum(effect.is_blocked for acted in reading.state.acted.values() for effect in acted.effects)


def wrong(reading: Reading, steps: tuple[data.CommittedStep, ...], ending: data.Ending) -> data.WrongStep | None:
    """Return the step at which the attempt went wrong; None where there is none.

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


def _writes(effects: tuple[SideEffect, ...], words: str, node: int, fate: str, *, undone: bool) -> list[data.Write]:
    return [data.Write(request=_request(effect), words=words, node=node, fate=fate, undone=undone) for effect in effects if effect.is_write]


def _request(effect: SideEffect) -> str:
    status = f" ({effect.status})" if effect.status else ""
    return one_line(f"{effect.method} {effect.url} {effect.detail}".strip()) + status


def _words(reading: Reading, node: Node, edge: int) -> str:
    return in_words(node.edges[edge].action, reading.seen(node)) if edge < len(node.edges) else "an action"
