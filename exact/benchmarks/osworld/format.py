"""OSWorld's task files: read strictly, and handed to its `desktop_env` whole, which carries out `config` and the evaluator.

`DesktopEnv.reset(task_config=task.handed())` runs the steps of `config`; after the committed actions `evaluate()` runs `postconfig`, the
getters and the metrics. What is checked here is what would otherwise be found out only after an attempt was paid for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from exact.benchmarks.ids import join
from exact.errors import UsageError
from exact.task import Task

INFEASIBLE = "infeasible"
"""The metric of tasks that cannot be done: solved by the action FAIL alone."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """Keys that are not known are handed on as they are."""


class Step(_Part, frozen=True, kw_only=True):
    """One step that sets the machine up, or finishes it for the verdict."""

    type: str
    """`download`, `launch`, `open`, `execute`, `sleep`, ...: a method of the desktop's own controller."""
    parameters: dict[str, Any] = {}


class Getter(_Part, frozen=True, kw_only=True):
    """What is looked at: a file, a setting, the accessibility tree."""

    type: str


class Evaluation(_Part, frozen=True, kw_only=True):
    """How an attempt is judged."""

    func: str | tuple[str, ...]
    """One metric or several."""
    result: Getter | tuple[Getter, ...] | None = None
    expected: Getter | tuple[Getter | None, ...] | None = None
    options: dict[str, Any] | tuple[dict[str, Any] | None, ...] = {}
    conj: Literal["and", "or"] = "and"
    """Of several metrics: all, or one."""
    postconfig: tuple[Step, ...] = ()


class OSWorldTask(_Part, frozen=True, kw_only=True):
    """One task file."""

    id: str
    instruction: str
    evaluator: Evaluation
    config: tuple[Step, ...] = ()
    snapshot: str = ""
    """Told, and not used: desktop_env ignores it."""
    source: str | tuple[str, ...] = ""
    related_apps: tuple[str, ...] = ()
    raw: dict[str, Any] = {}
    """The file's content, every key."""

    @property
    def possible(self) -> bool:
        """Whether it can be done at all."""
        return self.evaluator.func != INFEASIBLE

    def handed(self) -> dict[str, Any]:
        """What `DesktopEnv.reset` takes as its `task_config`."""
        return self.raw

    def task(self, domain: str = "", seed: int = 0) -> Task:
        """As a Task; the whole file goes with it, as JSON in the private `osworld`. Another seed is another attempt at the same."""
        name = f"osworld/{domain}/{self.id}" if domain else f"osworld/{self.id}"
        return Task(id=join(name, seed), instruction=self.instruction, seed=seed, private={"osworld": json.dumps(self.raw)})


def of(task: Task) -> OSWorldTask:
    """The task file that goes with a task. Raises UsageError where there is none."""
    said = task.private.get("osworld")
    if not said:
        raise UsageError(f"task {task.id} is none of OSWorld's: its private part has no `osworld`")
    return parse(json.loads(str(said)), task.id)


def parse(item: object, where: str) -> OSWorldTask:
    """One task from plain data. Raises UsageError with `where` it stands, its id and the field that is wrong."""
    name = item.get("id", "without id") if isinstance(item, dict) else "that is no object"
    try:
        found = msgspec.convert(_without_empty(item), OSWorldTask)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: task {name}: {error}") from error
    _check(found.evaluator, f"{where}: task {name}: `evaluator`")
    assert isinstance(item, dict)
    return msgspec.structs.replace(found, raw=item)


def _without_empty(item: object) -> object:
    """A file whose evaluator has None where it says `{}`: desktop_env takes it so."""
    if not isinstance(item, dict) or not isinstance(evaluator := item.get("evaluator"), dict):
        return item
    looks = {name: _absent(evaluator[name]) for name in ("result", "expected") if name in evaluator}
    return {**item, "evaluator": {**evaluator, **looks}}


def _absent(said: object) -> object:
    return [each or None for each in said] if isinstance(said, list) else said or None


def _check(evaluator: Evaluation, where: str) -> None:
    """Raises UsageError where metrics and what they look at do not go together."""
    if evaluator.func == INFEASIBLE:
        return
    if evaluator.result is None:
        raise UsageError(f"{where}.result is missing: {evaluator.func} has nothing to look at")
    if isinstance(evaluator.func, str):
        if isinstance(evaluator.result, tuple):
            raise UsageError(f"{where}.result is a list, and `func` is one metric: write as many metrics")
        return
    parts: Mapping[str, object] = {"result": evaluator.result, "expected": evaluator.expected, "options": evaluator.options}
    for name, part in parts.items():
        if part and (not isinstance(part, tuple) or len(part) != len(evaluator.func)):
            raise UsageError(f"{where}.{name} must be a list of {len(evaluator.func)}, one for each metric of `func`")


def read(path: Path) -> OSWorldTask:
    """One task file. Raises UsageError."""
    return parse(_json(path), str(path))


def collection(folder: Path, index: str = "test_all.json") -> dict[str, tuple[str, ...]]:
    """The task ids of a checkout's `evaluation_examples` by domain: those of an index, where there is one, else all. Raises UsageError."""
    if (folder / index).is_file():
        try:
            return msgspec.convert(_json(folder / index), dict[str, tuple[str, ...]])
        except msgspec.ValidationError as error:
            raise UsageError(f"{folder / index} is no index of task ids by domain: {error}") from error
    found: dict[str, list[str]] = {}
    for path in sorted((folder / "examples").glob("*/*.json")):
        found.setdefault(path.parent.name, []).append(path.stem)
    if not found:
        raise UsageError(f"{folder} holds no tasks: name the folder evaluation_examples of an OSWorld checkout")
    return {domain: tuple(ids) for domain, ids in found.items()}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
