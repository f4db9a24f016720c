"""The suite `desktop`.

The tasks of the suite: over a text editor, a calculator, a file manager, a terminal, and viewers of pictures and papers.

The suite's tasks as task files of OSWorld, which `desktop_env` sets up and judges by its own means.
"""

from __future__ import annotations

import json
import random
import shutil
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from exact.benchmarks.desktop.documents import CALCULATOR_TASKS, DOCUMENT_TASKS, EDITOR_TASKS
from exact.benchmarks.desktop.folders import FOLDER_TASKS
from exact.benchmarks.desktop.problem import INFEASIBLE_TASKS, TERMINAL, Draw, Problem
from exact.benchmarks.ids import join, split
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.desktop.factory import absent, desktop_factory
from exact.environments.desktop.setup import Check, declared
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure, UsageError, unknown
from exact.task import Task
from exact.version import FIX, set_up


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
        """Raise UsageError if packages or programs of a desktop are missing, or the task's applications."""
        if lacking := absent():
            raise UsageError(f"no desktop here: {lacking}")
        if missing := [each for each in programs(task) if not _installed(each)]:
            raise UsageError(f"task {task.id} needs {', '.join(missing)}, not installed: {set_up('--desktop', FIX)}")

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the desktops.

        `config.sandbox`: `auto` forks if this machine can, because a desktop does not replay exactly; `never` is reset and replay. Raises
        UsageError if no desktop can be started here, and names what is missing.
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


TASKS: Mapping[str, Draw] = {**EDITOR_TASKS, **CALCULATOR_TASKS, **FOLDER_TASKS, **DOCUMENT_TASKS, **INFEASIBLE_TASKS}
"""Tasks by the name in an id: `desktop/write-note?seed=3`."""


_HOME = "/home/user"
_WRITE = (
    "import pathlib, sys; path = pathlib.Path(sys.argv[1]); path.parent.mkdir(parents=True, exist_ok=True); path.write_text(sys.argv[2])"
)
_READ = "import pathlib, sys; print(pathlib.Path(sys.argv[1]).read_text().strip(), end='')"
_KIND = "import pathlib, sys; at = pathlib.Path(sys.argv[1]); print('folder' if at.is_dir() else 'text' if at.exists() else 'none', end='')"

Json = dict[str, Any]


def task_file(id: str, problem: Problem) -> Json:
    """Return a task as the content of one of OSWorld's task files."""
    setup = problem.setup
    files = [_step("execute", ["python3", "-c", _WRITE, f"{_HOME}/{path}", text]) for path, text in setup.files.items()]
    launched = [_step("launch", [word.replace("~", _HOME, 1) for word in command]) for command in setup.applications]
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, id)),
        "snapshot": "desktop",
        "instruction": problem.instruction,
        "source": id,
        "config": [*files, *launched],
        "related_apps": sorted({command[0] for command in setup.applications}),
        "evaluator": {"func": "infeasible"} if setup.infeasible else _evaluator(setup.checks),
    }


def _step(kind: str, command: list[str]) -> Json:
    return {"type": kind, "parameters": {"command": command}}


def _evaluator(checks: tuple[Check, ...]) -> Json:
    parts = [_metric(check) for check in checks]
    if len(parts) == 1:
        return parts[0]
    return {"conj": "and", **{key: [part[key] for part in parts] for key in ("func", "result", "expected")}}


def _metric(check: Check) -> Json:
    """Return a condition as a metric with its getter and its expected result."""
    if check.element:
        role, _, name = check.element.partition(" ")
        selector = _TAGS.get(role, role) + (f'[name="{name}"]' if name else "")
        rules = [{"selectors": [selector], "text": check.equals, "exact": True}]
        return {"func": "check_accessibility_tree", "result": {"type": "accessibility_tree"}, "expected": _rule(rules)}
    code, expected = (_READ, (check.equals or "").strip()) if check.kind == "text" else (_KIND, check.kind)
    result = {"type": "vm_command_line", "command": ["python3", "-c", code, f"{_HOME}/{check.file}"]}
    return {"func": "exact_match", "result": result, "expected": _rule({"expected": expected})}


_TAGS = {"textbox": "text", "button": "push-button"}
"""Tags of OSWorld's accessibility tree by our roles."""


def _rule(rules: Any) -> Json:
    return {"type": "rule", "rules": rules}
