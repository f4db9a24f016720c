"""The suite `browsergym`: BrowserGym's tasks, run by BrowserGym in a separate virtual environment."""

from __future__ import annotations

import fnmatch
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from exact.benchmarks.ids import join, split
from exact.benchmarks.miniwob import suite
from exact.config import BrowserConfig
from exact.environments.adapters.gym import browsergym_factory, browsergym_python, family_of
from exact.environments.base import EnvironmentFactory
from exact.errors import unknown
from exact.task import Task

_WEBARENA, _VISUALWEBARENA = 812, 910


class BrowserGymSuite:
    """MiniWoB++'s 125 tasks, WebArena's 812 and VisualWebArena's 910 by number, and WorkArena's by the names in its package."""

    name = "browsergym"

    def ids(self) -> Sequence[str]:
        """Return every id but those of WorkArena, which only its package knows."""
        ids = [f"miniwob.{name}" for name in suite.BROWSERGYM]
        ids += [f"webarena.{number}" for number in range(_WEBARENA)]
        ids += [f"visualwebarena.{number}" for number in range(_VISUALWEBARENA)]
        return tuple(f"browsergym/{name}" for name in ids)

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Return one list for each benchmark: `browsergym/@miniwob`."""
        kinds = ("miniwob", "webarena", "visualwebarena")
        return {kind: tuple(fnmatch.filter(self.ids(), f"browsergym/{kind}.*")) for kind in kinds}

    def task(self, id: str) -> Task:
        name, seed = split(id)
        family_of(name.removeprefix("browsergym/"))
        if name not in self.ids() and not name.startswith("browsergym/workarena."):
            raise unknown("task", name, self.ids())
        return Task(id=join(name, seed), instruction="", seed=seed, metadata={"browsergym": name.removeprefix("browsergym/")})

    def kind(self, task: Task) -> str:
        """Return the benchmark that a task belongs to: each needs a separate package."""
        return str(task.metadata["browsergym"]).partition(".")[0]

    def check(self, task: Task) -> None:
        """Raise UsageError if BrowserGym is missing."""
        browsergym_python()

    @asynccontextmanager
    async def environments_of(self, task: Task, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the environments of a task's benchmark.

        With `config.sandbox` set to `required`, BrowserGym and its browser run in gVisor. Otherwise they run in a process, and states are
        restored by replay. Raises UsageError that names what this machine lacks for the task.
        """
        name, sandbox = str(task.metadata["browsergym"]), config.sandbox == "required"
        async with browsergym_factory(name, screenshots=config.screenshots, sandbox=sandbox, limit=config.snapshots << 20) as environments:
            yield environments

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the environments of MiniWoB++'s tasks."""
        async with self.environments_of(self.task(self.ids()[0]), config) as environments:
            yield environments
