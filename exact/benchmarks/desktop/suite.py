"""The suite `desktop`.

The tasks of the suite: over a text editor, a calculator, a file manager, a terminal, and viewers of pictures and papers.

The suite's tasks as task files of OSWorld, which `desktop_env` sets up and judges by its own means.

Tasks on a file manager (pcmanfm) and a terminal.
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
from exact.benchmarks.desktop.problem import EDITOR, FILES, INFEASIBLE_TASKS, NOTE, PLACES, TERMINAL, THINGS, Draw, Problem, lines, write
from exact.benchmarks.ids import join, split
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.desktop.factory import absent, desktop_factory
from exact.environments.desktop.setup import Check, Setup, declared
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure, UsageError, unknown
from exact.task import Task
from exact.version import FIX, set_up


def _folder(draw: random.Random) -> Problem:
    name = draw.choice(PLACES)
    setup = Setup(applications=(FILES,), checks=(Check(file=name, kind="folder"),))
    reference = ('press "Control+Shift+n"', 'press "Control+a"', f'type "{name}"', 'press "Enter"')
    return Problem(f'Make a folder "{name}" in the home folder.', setup, reference)


def _rename(draw: random.Random) -> Problem:
    old, new = (f"{name}.txt" for name in draw.sample(PLACES, 2))
    checks = (Check(file=new, equals="text"), Check(file=old, kind="none"))
    setup = Setup(applications=(FILES,), files={old: "text\n"}, checks=checks)
    return Problem(
        f"Rename the file {old} to {new}.",
        setup,
        (f"click <cell {old}>", 'press "F2"', 'press "Control+a"', f'type "{new}"', 'press "Enter"'),
    )


def _remove(draw: random.Random) -> Problem:
    gone, *others = (f"{name}.txt" for name in draw.sample(PLACES, 3))
    checks = (Check(file=gone, kind="none"), *(Check(file=name, equals=name) for name in others))
    setup = Setup(applications=(FILES,), files={name: f"{name}\n" for name in (gone, *others)}, checks=checks)
    return Problem(
        f"Delete the file {gone} for good. Leave the others alone.",
        setup,
        (f"click <cell {gone}>", 'press "Shift+Delete"', "click <button Yes>"),
    )


def _copy(draw: random.Random) -> Problem:
    name, folder = f"{draw.choice(THINGS)}.txt", draw.choice(PLACES)
    checks = (Check(file=f"{folder}/{name}", equals="text"), Check(file=name, equals="text"))
    setup = Setup(applications=(FILES,), files={name: "text\n", f"{folder}/.keep": ""}, checks=checks)
    reference = (f"click <cell {name}>", 'press "Control+c"', f"double_click <cell {folder}>", 'press "Control+v"', "wait")
    return Problem(f'Copy the file {name} into the folder "{folder}".', setup, reference)


def _move(draw: random.Random) -> Problem:
    name, folder = f"{draw.choice(THINGS)}.txt", draw.choice(PLACES)
    checks = (Check(file=f"{folder}/{name}", equals="text"), Check(file=name, kind="none"))
    setup = Setup(applications=(FILES,), files={name: "text\n", f"{folder}/.keep": ""}, checks=checks)
    reference = (f"click <cell {name}>", 'press "Control+x"', f"double_click <cell {folder}>", 'press "Control+v"', "wait")
    return Problem(f'Move the file {name} into the folder "{folder}".', setup, reference)


def _look_inside(draw: random.Random) -> Problem:
    folder, names = draw.choice(PLACES), draw.sample(THINGS, draw.randint(2, 5))
    files = {f"{folder}/{name}.txt": "text\n" for name in names}
    setup = Setup(applications=(EDITOR, FILES), files={NOTE: "", **files}, checks=(Check(file=NOTE, equals=str(len(names))),))
    instruction = f'How many files does the folder "{folder}" hold? Write the number, and nothing else, into the document and save it.'
    return Problem(instruction, setup, (f"double_click <cell {folder}>", *write(str(len(names)))))


def _shell(instruction: str, files: dict[str, str], checks: tuple[Check, ...], command: str) -> Problem:
    setup = Setup(applications=(TERMINAL,), files=files, checks=checks, sandboxed=True)
    return Problem(instruction, setup, (f"type {_quoted(command)}", 'press "Enter"', "wait"))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _directories(draw: random.Random) -> Problem:
    one, other = draw.sample(PLACES, 2)
    return _shell(
        f'Use the terminal to make a folder "{one}" in the home folder, and in it a folder "{other}".', {},
        (Check(file=f"{one}/{other}", kind="folder"),), f"mkdir -p {one}/{other}",
    )  # fmt: skip


def _lines_of(draw: random.Random) -> Problem:
    count = draw.randint(120, 480)
    text = "".join(f"{draw.choice(THINGS)} {at}\n" for at in range(count))
    return _shell(
        "Use the terminal to find out how many lines log.txt has, and write the number, and nothing else, into count.txt.",
        {"log.txt": text}, (Check(file="count.txt", equals=str(count)),), "wc -l < log.txt > count.txt",
    )  # fmt: skip


def _find(draw: random.Random) -> Problem:
    thing = draw.choice(THINGS)
    rows = [f"{draw.choice([each for each in THINGS if each != thing])} {at}" for at in range(60)]
    for at in draw.sample(range(60), 3):
        rows[at] = f"{thing} {at}"
    return _shell(
        f'Use the terminal to write all lines of log.txt that hold "{thing}" into found.txt.', {"log.txt": lines(*rows)},
        (Check(file="found.txt", equals="\n".join(row for row in rows if thing in row)),), f"grep {thing} log.txt > found.txt",
    )  # fmt: skip


def _largest(draw: random.Random) -> Problem:
    numbers = draw.sample(range(1000, 9999), 80)
    return _shell(
        "Use the terminal to find the largest number in numbers.txt, and write it, and nothing else, into largest.txt.",
        {"numbers.txt": lines(*map(str, numbers))}, (Check(file="largest.txt", equals=str(max(numbers))),),
        "sort -n numbers.txt | tail -n 1 > largest.txt",
    )  # fmt: skip


def _user(draw: random.Random) -> Problem:
    name = f"{draw.choice(PLACES)}.txt"
    return _shell(
        f"Use the terminal to write the name of the present user, and nothing else, into {name}.", {},
        (Check(file=name, equals="user"),), f"whoami > {name}",
    )  # fmt: skip


FOLDER_TASKS: dict[str, Draw] = {
    "make-folder": _folder,
    "rename-file": _rename,
    "delete-file": _remove,
    "copy-file": _copy,
    "move-file": _move,
    "count-files": _look_inside,
    "nested-folders": _directories,
    "count-log": _lines_of,
    "find-lines": _find,
    "largest-number": _largest,
    "user-name": _user,
}


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
        if missing := [each for each in self.requirements(task) if not _installed(each)]:
            raise UsageError(f"task {task.id} needs {', '.join(missing)}, not installed: {set_up('--desktop', FIX)}")

    def requirements(self, task: Task) -> tuple[str, ...]:
        """Return the applications that a task starts."""
        return programs(task)

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
