"""Committed actions, taken once more in another world."""

from __future__ import annotations

from collections.abc import Iterator

from exact.action import Action, ActionSpace
from exact.observation import Observation
from exact.runs.fold import State
from exact.runs.store import Blobs


def known(state: State, blobs: Blobs) -> Iterator[Observation]:
    """What was seen before each step that was carried out, as the search saw it. Raises JournalError."""
    nodes, node = [], state.tree.root.parent
    while node is not None:
        nodes.append(node)
        node = node.parent
    for node in reversed(nodes):
        yield blobs.get_observation(node.observation)


def again(actions: ActionSpace, text: str, then: Observation, now: Observation | None) -> Action:
    """An action that was taken in a state, for a world in that state that may count its elements otherwise. Raises ActionError."""
    action = actions.parse(text)
    if now is None or now.fingerprint != then.fingerprint or len(now.elements) != len(then.elements):
        return action
    return actions.renamed(action, {one.id: other.id for one, other in zip(then.elements, now.elements, strict=True)})
