"""The suite `desktop`."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from exact.benchmarks.desktop.tasks import TASKS
from exact.benchmarks.ids import join, split
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.desktop import absent, desktop_factory
from exact.environments.sandbox import find_runsc
from exact.errors import EnvironmentFailure, UsageError, unknown
from exact.task import Task


class DesktopSuite:
    """Suite of tasks on a text editor and a calculator, with evaluators on files and on visible elements."""

    name = "desktop"

    def ids(self) -> Sequence[str]:
        return tuple(f"desktop/{name}" for name in TASKS)

    def lists(self) -> Mapping[str, Sequence[str]]:
        return {}

    def task(self, id: str) -> Task:
        name, seed = split(id)
        if name not in self.ids():
            raise unknown("task", name, self.ids())
        problem = TASKS[name.removeprefix("desktop/")](random.Random(f"{name} {seed}"))
        told = msgspec.json.encode(problem.setup).decode()
        return Task(id=join(name, seed), instruction=problem.instruction, seed=seed, private={"desktop": told})

    def check(self, task: Task) -> None:
        """Raise UsageError where packages or programs of a desktop are missing."""
        if lacking := absent():
            raise UsageError(f"no desktop here: {lacking}")

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the desktops.

        `config.sandbox`: `auto` forks where this machine can, because a desktop does not replay exactly; `never` is reset and replay.
        Raises UsageError where no desktop can be started here, with what is missing.
        """
        sandbox = config.sandbox == "required" or (config.sandbox == "auto" and _forks())
        async with desktop_factory(sandbox=sandbox, screenshots=config.screenshots, limit=config.snapshots << 20) as environments:
            yield environments


def _forks() -> bool:
    try:
        find_runsc()
    except EnvironmentFailure:
        return False
    return True
