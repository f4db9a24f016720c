"""Location of the package `webarena-verified`: its data set, and the interpreter that runs its evaluators.

The data set of WebArena-Verified: the parts of a task that exact reads. Its evaluators read the rest in their own package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from exact.benchmarks.webarena.wheel import Wheel, task_file
from exact.environments.browser.network.har import Kept
from exact.errors import UsageError
from exact.version import environment_for, set_up

VARIABLE = "EXACT_WEBARENA_VERIFIED"
"""Environment variable with a virtual environment that has the package, or its Python."""
_OURS = Path(__file__).parents[3] / ".bench" / "venvs" / "webarena-verified"
"""Virtual environment of a source tree: shells/setup.sh --webarena-verified."""
_MODULE = "webarena_verified"
TASKS, HARD = "assets/dataset/webarena-verified.json", "assets/dataset/subsets/webarena-verified-hard.json"
"""The data set in the package, and the numbers of its hard tasks."""
_WHEEL = Wheel("webarena-verified", "1.2.3", _MODULE, TASKS, "EXACT_WEBARENA_VERIFIED_TASKS", (HARD,))


def interpreter() -> Path:
    """Return the Python that has the evaluators: the one of EXACT_WEBARENA_VERIFIED, else the source tree's.

    Raises UsageError with the ways to get it.
    """
    said = os.environ.get(VARIABLE)
    place = Path(said).expanduser().absolute() if said else _OURS
    python = place if place.is_file() else place / "bin" / "python"
    if _package(python):
        return python
    if said:
        raise UsageError(f"{VARIABLE} is {said}, which has no webarena-verified: run `pip install webarena-verified` there, or unset it")
    raise UsageError(
        "the evaluators of webarena_verified are not installed: "
        + set_up(
            f"--webarena-verified, or run `pip install webarena-verified` in a virtual environment and set {VARIABLE} to it",
            environment_for("webarena-verified", VARIABLE),
        )
    )


def data_set() -> Path:
    """Return the folder of the package that has the data set: beside the evaluators, else unpacked from its wheel. Raises UsageError."""
    try:
        python = interpreter()
    except UsageError:
        if os.environ.get(VARIABLE):
            raise
        return task_file(_WHEEL).parents[TASKS.count("/")]
    folder = _package(python)
    assert folder is not None
    return folder


def _package(python: Path) -> Path | None:
    """Return the folder of the package in the virtual environment of a Python; None if there is none."""
    found = python.parents[1].glob(f"lib/python3*/site-packages/{_MODULE}/{TASKS}") if os.access(python, os.X_OK) else ()
    return next((path.parents[TASKS.count("/")] for path in found), None)


T = TypeVar("T")


class Expected(msgspec.Struct, frozen=True):
    """The expected values of an evaluator, as far as they decide which things are recorded."""

    task_type: str = ""
    headers: dict[str, Any] | None = None
    response_cookies: dict[str, Any] | None = None
    response_content: dict[str, Any] | None = None


class TaskEvaluator(msgspec.Struct, frozen=True):
    """One evaluator of a task: of the answer, or of the traffic."""

    evaluator: Literal["AgentResponseEvaluator", "NetworkEventEvaluator"]
    expected: Expected


class VerifiedTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task."""

    task_id: int
    sites: tuple[str, ...]
    start_urls: tuple[str, ...]
    intent: str
    intent_template_id: int
    eval: tuple[TaskEvaluator, ...]

    @property
    def kind(self) -> str:
        """The type of the task: `retrieve`, `mutate` or `navigate`."""
        return next((each.expected.task_type for each in self.eval if each.expected.task_type), "").lower()

    @property
    def kept(self) -> Kept:
        """The parts of the traffic that its evaluators read beyond addresses, forms and headers."""
        wanted = [each.expected for each in self.eval]
        cookies = {name for each in wanted for name in each.response_cookies or ()}
        sent = [str(value) for each in wanted for name, value in (each.headers or {}).items() if name.lower() == "cookie"]

        def is_named(name: str) -> bool:
            return any(re.search(rf"(?<![\w-]){re.escape(name)}=", text) for text in sent)

        return Kept(
            cookies=cookies.__contains__, sent_cookies=is_named if sent else None, json=any(each.response_content for each in wanted)
        )


class _Subset(msgspec.Struct, frozen=True):
    """Named part of the data set."""

    task_ids: tuple[int, ...]


class DataSet:
    """The data set, read when it is needed. Each property may raise UsageError."""

    @cached_property
    def tasks(self) -> Mapping[str, VerifiedTask]:
        """The tasks by number."""
        return {str(each.task_id): each for each in _read(self.path, tuple[VerifiedTask, ...])}

    @cached_property
    def hard(self) -> tuple[str, ...]:
        """The numbers of the hard tasks."""
        return tuple(map(str, _read(self._folder / HARD, _Subset).task_ids))

    @property
    def path(self) -> Path:
        """The path of the data set."""
        return self._folder / TASKS

    @cached_property
    def _folder(self) -> Path:
        return data_set()


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} is no data set of webarena-verified: {error}: install it again") from error
