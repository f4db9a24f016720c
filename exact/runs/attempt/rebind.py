"""Committed actions, taken once more in another environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exact.action import Action, ActionSpace
from exact.observation import Element, Observation
from exact.runs.journal.state import State
from exact.runs.journal.store import Blobs


def known(state: State, blobs: Blobs) -> Iterator[Observation]:
    """What was seen before each step that was carried out, as the search saw it. Raises JournalError."""
    nodes, node = [], state.tree.root.parent
    while node is not None:
        nodes.append(node)
        node = node.parent
    for node in reversed(nodes):
        yield blobs.get_observation(node.observation)


def again(actions: ActionSpace, text: str, then: Observation, now: Observation | None) -> Action:
    """An action that was taken in a state, for an environment that may count its elements otherwise. Raises ActionError.

    In the same state an element is the one that stands where it stood. In another one (a date was written, a notice has come) it is the one
    with its role and name, the same of several if there are as many; where there is none such, it is what bears its id.
    """
    action = actions.parse(text)
    if now is None:
        return action
    if now.fingerprint == then.fingerprint and len(now.elements) == len(then.elements):
        return actions.renamed(action, {one.id: other.id for one, other in zip(then.elements, now.elements, strict=True)})
    return actions.renamed(action, _alike(then.elements, now.elements))


def _alike(then: Sequence[Element], now: Sequence[Element]) -> dict[str, str]:
    """The ids of elements that are known again by role and name, by the ids they had."""
    before, after = _named(then), _named(now)
    found = dict[str, str]()
    for name, ids in before.items():
        if len(ids) == len(after.get(name, ())):
            found |= zip(ids, after[name], strict=True)
    return found


def _named(elements: Sequence[Element]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for each in elements:
        found.setdefault((each.role, each.name), []).append(each.id)
    return found
