"""OSWorld's task files: read strictly, and passed whole to its `desktop_env`, which executes `config` and the evaluator.

`DesktopEnv.reset(task_config=task.handed())` runs the steps of `config`; after the committed actions `evaluate()` runs `postconfig`, the
getters and the metrics. This module reports errors that would otherwise appear only after an attempt was paid for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from exact.benchmarks.ids import join
from exact.errors import UsageError
from exact.task import Task

_PATH = re.compile(r"(?:~|\$HOME|/home/user)/[^\s\"'`|;&<>()*?\[\]]+")
"""A path in the home folder within a command."""
CODE = "code"
"""Program of Visual Studio Code."""
_USING_CODE = {"vscode", "vs_code"}
INFEASIBLE = "infeasible"
"""Metric of infeasible tasks: solved by the action FAIL alone."""


class _TaskPart(msgspec.Struct, frozen=True, kw_only=True):
    """Base of task file parts. Unknown keys are passed on."""


class SetupStep(_TaskPart, frozen=True, kw_only=True):
    """SetupStep that sets the machine up, or prepares it for the evaluation."""

    type: str
    """Method of the desktop's own controller: `download`, `launch`, `open`, `execute`, `sleep`, ..."""
    parameters: dict[str, Any] = {}


class Getter(_TaskPart, frozen=True, kw_only=True):
    """Object that a metric reads: a file, a setting, the accessibility tree."""

    type: str


class EvaluatorSpec(_TaskPart, frozen=True, kw_only=True):
    """Evaluator of a task."""

    func: str | tuple[str, ...]
    """One metric, or several."""
    result: Getter | tuple[Getter, ...] | None = None
    expected: Getter | tuple[Getter | None, ...] | None = None
    options: dict[str, Any] | tuple[dict[str, Any] | None, ...] = {}
    conj: Literal["and", "or"] = "and"
    """Connective of several metrics."""
    postconfig: tuple[SetupStep, ...] = ()


class OSWorldTask(_TaskPart, frozen=True, kw_only=True):
    """Task file."""

    id: str
    instruction: str
    evaluator: EvaluatorSpec
    config: tuple[SetupStep, ...] | None = ()
    snapshot: str = ""
    """Name of a snapshot, which desktop_env ignores."""
    source: str | tuple[str, ...] = ""
    related_apps: tuple[str, ...] = ()
    raw: dict[str, Any] = {}
    """Content of the file, every key."""

    @property
    def possible(self) -> bool:
        """Feasibility of the task."""
        return self.evaluator.func != INFEASIBLE

    @property
    def uses_code(self) -> bool:
        """Whether the task can be done, in Visual Studio Code."""
        return self.possible and not _USING_CODE.isdisjoint(self.related_apps)

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the machine that the evaluator names: files that it fetches, and paths of the home folder in its commands."""
        evaluator = self.raw.get("evaluator", {})
        texts = list(_texts([evaluator.get("result"), evaluator.get("expected")]))
        named = [each for text in texts for each in _PATH.findall(text)]
        return tuple(dict.fromkeys([*(text for text in texts if text.startswith(("/", "~/")) and "\n" not in text), *named]))

    def handed(self) -> dict[str, Any]:
        """Return the `task_config` for `DesktopEnv.reset`: the file, with an empty `config` in place of null."""
        return {**self.raw, "config": self.raw.get("config") or []}

    def task(self, domain: str = "", seed: int = 0) -> Task:
        """Return it as a Task, with the whole file as JSON in the private `osworld`. Another seed is another attempt at the same task."""
        name = f"osworld/{domain}/{self.id}" if domain else f"osworld/{self.id}"
        return Task(id=join(name, seed), instruction=self.instruction, seed=seed, private={"osworld": json.dumps(self.raw)})


def of(task: Task) -> OSWorldTask:
    """Return the task file that a task carries. Raises UsageError if it carries none."""
    said = task.private.get("osworld")
    if not said:
        raise UsageError(f"task {task.id} is none of OSWorld's: its private part has no `osworld`")
    return parse(json.loads(str(said)), task.id)


def parse(item: object, where: str) -> OSWorldTask:
    """Return a task from plain data. Raises UsageError with `where` it is, its id and the invalid field."""
    name = item.get("id", "without id") if isinstance(item, dict) else "that is no object"
    try:
        found = msgspec.convert(_without_empty(item), OSWorldTask)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: task {name}: {error}") from error
    _check(found.evaluator, f"{where}: task {name}: `evaluator`")
    assert isinstance(item, dict)
    return msgspec.structs.replace(found, raw=item)


def _without_empty(item: object) -> object:
    """Return a file whose evaluator holds None for `{}`, as desktop_env expects."""
    if not isinstance(item, dict) or not isinstance(evaluator := item.get("evaluator"), dict):
        return item
    looks = {name: _absent(evaluator[name]) for name in ("result", "expected") if name in evaluator}
    return {**item, "evaluator": {**evaluator, **looks}}


def _texts(said: object) -> Iterator[str]:
    """Yield the texts in plain data."""
    if isinstance(said, str):
        yield said
    for each in said.values() if isinstance(said, dict) else said if isinstance(said, list) else ():
        yield from _texts(each)


def _absent(said: object) -> object:
    return [each or None for each in said] if isinstance(said, list) else said or None


def _check(evaluator: EvaluatorSpec, where: str) -> None:
    """Raise UsageError if metrics and getters do not fit together."""
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
    """Read a task file. Raises UsageError."""
    return parse(_json(path), str(path))


def index(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the task ids of an index, by domain. Raises UsageError."""
    try:
        return msgspec.convert(_json(path), dict[str, tuple[str, ...]])
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} is no index of task ids by domain: {error}") from error


def collection(folder: Path, name: str = "test_all.json") -> dict[str, tuple[str, ...]]:
    """Return the task ids of a checkout's `evaluation_examples` by domain.

    They are those of an index if there is one, else all. Raises UsageError.
    """
    if (folder / name).is_file():
        return index(folder / name)
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
