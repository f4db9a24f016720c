"""Registration under Gymnasium's ids, which have one slash: `miniwob/click-test` is `exact/miniwob.click-test`."""

from __future__ import annotations

from collections.abc import Iterable

import gymnasium
from gymnasium.envs.registration import EnvSpec

from exact.benchmarks.registry import suite
from exact.environments.toy.known import WORLDS
from exact.errors import UsageError

SUITES = ("miniwob", "desktop", "trac", "wagtail", "browsergym", "webarena")
"""Suites that are registered by default."""
ENTRY_POINT = "exact.interop.gymnasium.env:GymnasiumEnv"


def register(suites: Iterable[str] = SUITES) -> None:
    """Register the tasks of suites and all toys. May be called again, for instance for a suite that another package adds.

    A suite that lists no tasks on this machine is left out. Raises UsageError for a suite that does not exist.
    """
    for name in suites:
        for id in suite(name).ids():
            _register(id)
    for name in WORLDS:
        _register(f"toy/{name}")


def gymnasium_id(task: str) -> str:
    """Return Gymnasium's id of a task: `exact/miniwob.click-test`. Raises UsageError for an id that Gymnasium does not take."""
    name, slash, rest = task.partition("/")
    if not slash or not rest:
        raise UsageError(f"{task!r} is not the id of a task: expected e.g. miniwob/click-test")
    return f"exact/{name}.{rest.replace('/', '.')}"


def _register(task: str) -> None:
    # into the table itself: `gymnasium.register` compares each id with all others, which takes seconds for thousands
    spec = EnvSpec(gymnasium_id(task), entry_point=ENTRY_POINT, kwargs={"task": task})
    gymnasium.registry[spec.id] = spec


register()
