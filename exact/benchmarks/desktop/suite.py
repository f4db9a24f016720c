"""The suite `desktop`."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from exact.benchmarks.desktop.problem import TERMINAL, Problem
from exact.benchmarks.desktop.taskfile import task_file
from exact.benchmarks.desktop.tasks import TASKS
from exact.benchmarks.ids import join, split
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.desktop import absent, desktop_factory
from exact.environments.desktop.setup import declared
from exact.environments.sandbox import find_runsc
from exact.errors import EnvironmentFailure, UsageError, unknown
from exact.hints import FIX, set_up
from exact.task import Task


class DesktopSuite:
    """Suite of tasks on six applications, with evaluators on files, folders and visible elements."""

    name = "desktop"

    def ids(self) -> Sequence[str]:
        return tuple(f"desktop/{name}" for name in TASKS)

    def lists(self) -> Mapping[str, Sequence[str]]:
        return {}

    def task(self, id: str) -> Task:
        name, seed = split(id)
        if name not in self.ids():
            raise unknown("task", name, self.ids())
        problem = self.problem(id)
        setup, file = msgspec.json.encode(problem.setup).decode(), json.dumps(task_file(id, problem))
        return Task(id=join(name, seed), instruction=problem.instruction, seed=seed, private={"desktop": setup, "osworld": file})

    def problem(self, id: str) -> Problem:
        """Return the content of a task with a reference solution. Raises UsageError."""
        name, seed = split(id)
        if name not in self.ids():
            raise unknown("task", name, self.ids())
        return TASKS[name.removeprefix("desktop/")](random.Random(f"{name} {seed}"))

    def check(self, task: Task) -> None:
        """Raise UsageError where packages or programs of a desktop are missing, or the task's applications."""
        if lacking := absent():
            raise UsageError(f"no desktop here: {lacking}")
        if missing := [each for each in programs(task) if not _installed(each)]:
            raise UsageError(f"task {task.id} needs {', '.join(missing)}, not installed: {set_up('--desktop', FIX)}")

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the desktops.

        `config.sandbox`: `auto` forks where this machine can, because a desktop does not replay exactly; `never` is reset and replay.
        Raises UsageError where no desktop can be started here, with what is missing.
        """
        sandbox = config.sandbox == "required" or (config.sandbox == "auto" and _forks())
        async with desktop_factory(sandbox=sandbox, screenshots=config.screenshots, limit=config.snapshots << 20) as environments:
            yield environments


def programs(task: Task) -> tuple[str, ...]:
    """Return the applications that a task starts."""
    return tuple(dict.fromkeys(command[0] for command in declared(dict(task.private)).applications))


def _installed(program: str) -> bool:
    """Return whether an application is there. The terminal is a program of ours, which needs packages of the system's Python."""
    if program == TERMINAL[0]:
        return all(Path("/usr/lib/python3/dist-packages", name).is_dir() for name in ("gi", "pyte"))
    return shutil.which(program) is not None


def _forks() -> bool:
    try:
        find_runsc()
    except EnvironmentFailure:
        return False
    return True
