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
_CODE_GETTER = "vscode_config"
"""Getter that runs a command of Visual Studio Code."""
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
    def asks_code(self) -> bool:
        """Whether the evaluator asks Visual Studio Code. Tasks that only count it among `related_apps` can be done without it."""
        result = self.evaluator.result
        return any(each.type == _CODE_GETTER for each in (result if isinstance(result, tuple) else (result,)) if each is not None)

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
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}: name the folder evaluation_examples of an OSWorld checkout")
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


OFFLINE: Mapping[str, tuple[str, ...]] = {
    "chrome": (
        "bb5e4c0d-f964-439c-97b6-bdb9747de3f4", "2ad9387a-65d8-4e33-ad5b-7580065a27ca", "2ae9ba84-3a0d-4d4c-8338-3a1478dc5fe3",
        "480bcfea-d68f-4aaa-a0a9-2589ef319381", "3720f614-37fd-4d04-8a6b-76f54f8c222d", "99146c54-4f37-4ab8-9327-5f3291665e1e",
        "12086550-11c0-466b-b367-1d9e75b3910e", "93eabf48-6a27-4cb6-b963-7d5fe1e0d3a9", "ae78f875-5b98-4907-bbb5-9c737fc68c03",
        "9656a811-9b5b-4ddf-99c7-5117bcef0626",
    ),
    "gimp": (
        "7b7617bd-57cc-468e-9c91-40c4ec2bcb3d", "7767eef2-56a3-4cea-8c9f-48c070c7d65b", "e19bd559-633b-4b02-940f-d946248f088e",
        "fbb548ca-c2a6-4601-9204-e39a2efc507b",
    ),
    "libreoffice_calc": (
        "2bd59342-0664-4ccb-ba87-79379096cc08",
    ),
    "libreoffice_impress": (
        "ef9d12bd-bcee-4ba0-a40e-918400f43ddf",
    ),
    "multi_apps": (
        "937087b6-f668-4ba6-9110-60682ee33441", "6d72aad6-187a-4392-a4c4-ed87269c51cf", "69acbb55-d945-4927-a87b-8480e1a5bb7e",
        "48d05431-6cd5-4e76-82eb-12b60d823f7d", "2373b66a-092d-44cb-bfd7-82e86e7a3b4d", "e1fc0df3-c8b9-4ee7-864c-d0b590d3aa56",
        "f8369178-fafe-40c2-adc4-b9b08a125456", "3c8f201a-009d-4bbe-8b65-a6f8b35bb57f",
    ),
    "os": (
        "94d95f96-9699-4208-98ba-3c3119edf9c2", "bedcedc4-4d72-425e-ad62-21960b11fe0d", "ec4e3f68-9ea4-4c18-a5c9-69f89d1178b3",
        "a462a795-fdc7-4b23-b689-e8b6df786b78", "f9be0997-4b7c-45c5-b05c-4612b44a6118", "28cc3b7e-b194-4bc9-8353-d04c0f4d56d2",
        "b6781586-6346-41cd-935a-a6b1487918fc", "b3d4a89c-53f2-4d6b-8b6a-541fb5d205fa", "a4d98375-215b-4a4d-aee9-3d4370fccc41",
        "13584542-872b-42d8-b299-866967b5c3ef", "c288e301-e626-4b98-a1ab-159dcb162af5", "4783cc41-c03c-4e1b-89b4-50658f642bd5",
    ),
    "vlc": (
        "8ba5ae7a-5ae5-4eab-9fcc-5dd4fe3abf89", "9195653c-f4aa-453d-aa95-787f6ccfaae9", "d06f0d4d-2cd5-4ede-8de9-598629438c6e",
        "5ac2891a-eacd-4954-b339-98abba077adb", "f3977615-2b45-4ac5-8bba-80c17dbe2a37", "cb130f0d-d36f-4302-9838-b3baf46139b6",
        "7882ed6e-bece-4bf0-bada-c32dc1ddae72",
    ),
}  # fmt: skip
"""Tasks whose set-up and evaluator ask for nothing outside the machine and whose applications Debian has, by domain."""
