"""A guided agent for bench/sites.py, which knows the reference path: see _known_way.py. Arms differ only in how states are restored.

All its proposals have equal priors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import _common
from _known_way import KnownWay

from exact.action import Action, ActionSpace
from exact.observation import Observation


def references() -> dict[str, list[list[Any]]]:
    """Right sequences by task, without seed: they are kept with the tests alone."""
    path = _common.ROOT / "tests" / "benchmarks" / "sites" / "reference.json"
    return {name: each["right"] for name, each in json.loads(path.read_text("utf-8")).items()}


def meant(step: Sequence[Any], seen: Observation, actions: ActionSpace) -> Action | None:
    """Return a step of a reference as an action in a state; None where its target does not exist there."""
    verb, *rest = step
    if verb in ("goto", "stop"):
        return actions.action(verb, *rest)
    role, name, *texts, number = rest
    found = [each for each in seen.elements if each.role == role and each.name == name]
    return actions.action(verb, found[number].id, *texts) if len(found) > number else None


class SiteWay(KnownWay[Sequence[Any]]):
    """The reference path."""

    def __init__(self) -> None:
        super().__init__()
        self._known = references()

    def steps(self, task: str) -> Sequence[Sequence[Any]]:
        return self._known[task.partition("?")[0]]

    def meant(self, step: Sequence[Any], seen: Observation, actions: ActionSpace) -> Action | None:
        return meant(step, seen, actions)


guided = SiteWay.agent
