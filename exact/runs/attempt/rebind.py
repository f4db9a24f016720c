"""Committed actions, rebound to the elements of another environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exact.action import Action, ActionSpace
from exact.observation import Element, Observation
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs


def observations_before_steps(state: AttemptState, blobs: Blobs) -> Iterator[Observation]:
    """Yield the observation before each step that was carried out, as the search saw it. Raises JournalError."""
    nodes, node = [], state.tree.root.parent
    while node is not None:
        nodes.append(node)
        node = node.parent
    for node in reversed(nodes):
        yield blobs.get_observation(node.observation)


def rebind(actions: ActionSpace, text: str, then: Observation, now: Observation | None) -> Action:
    """Return an action taken in one state for another environment, which may number its elements differently. Raises ActionError.

    In an equal state an element is the one at the same position. In another state (a date was written, a notice appeared) it is the one
    with the same role and name, the same of several where there are as many; where there is none, it is the one with the same id.
    """
    action = actions.parse(text)
    if now is None:
        return action
    if now.fingerprint == then.fingerprint and len(now.elements) == len(then.elements):
        return actions.renamed(action, {one.id: other.id for one, other in zip(then.elements, now.elements, strict=True)})
    return actions.renamed(action, _same_name(then.elements, now.elements))


def _same_name(then: Sequence[Element], now: Sequence[Element]) -> dict[str, str]:
    """Return the new ids of elements that have the same role and name, by their old ids."""
    before, after = _ids_by_name(then), _ids_by_name(now)
    found = dict[str, str]()
    for name, ids in before.items():
        if len(ids) == len(after.get(name, ())):
            found |= zip(ids, after[name], strict=True)
    return found


def _ids_by_name(elements: Sequence[Element]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for each in elements:
        found.setdefault((each.role, each.name), []).append(each.id)
    return found
