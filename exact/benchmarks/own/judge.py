"""Evaluators of one's own tasks: functions in Python, or what forms of installed packages make of a task's declaration.

A form is an entry point of the group `exact.evaluators`: a callable that takes what the task file says under its name, and the task, and
gives an Evaluator; it raises UsageError for what it cannot read.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from exact.environments.browser.environment import Evaluator
from exact.errors import EnvironmentError_, ExactError, UsageError, unknown
from exact.task import Outcome, Score, Task

if TYPE_CHECKING:
    from playwright.async_api import Page

Form = Callable[[Any, Task], Evaluator]


@functools.cache
def forms() -> Mapping[str, Form]:
    """Every form by name."""
    found: dict[str, Form] = {"python": _python}
    for entry in entry_points(group="exact.evaluators"):
        found[entry.name] = entry.load()
    return found


def check_form(given: str | dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a task file says, as `{form: ...}`; empty for nothing. Raises UsageError."""
    if not given:
        return {}
    if isinstance(given, str):
        file, colon, name = given.rpartition(":")
        if not colon or not (folder / file).is_file():
            raise UsageError(f"the evaluator {given!r} names no function of a file: write judge.py:solved")
        return {"python": f"{folder / file}:{name}"}
    if len(given) != 1:
        raise UsageError(f"an evaluator is one form of {', '.join(forms())}, and here are {len(given)}")
    [form] = given
    if form not in forms():
        raise unknown("form of evaluator", form, forms())
    return given


def evaluator_of(task: Task) -> Evaluator | None:
    """That of an own task; None where the agent judges itself. Raises UsageError."""
    text = task.metadata.get("evaluator")
    if not text:
        return None
    [(form, given)] = json.loads(str(text)).items()
    if form not in forms():
        raise unknown("form of evaluator", form, forms())
    return forms()[form](given, task)


def _python(given: Any, task: Task) -> Evaluator:
    file, _, name = str(given).rpartition(":")
    module = _module(Path(file))
    function = getattr(module, name, None)
    if not callable(function):
        raise unknown("evaluator", name, [each for each in vars(module) if not each.startswith("_")], f"in {file}")

    async def evaluate(page: Page, outcome: Outcome) -> Score:
        try:
            found = function(page, outcome)
            found = await found if inspect.isawaitable(found) else found
        except ExactError:
            raise
        except Exception as error:
            raise EnvironmentError_(f"the evaluator {name} of {task.id} failed: {type(error).__name__}: {error}") from error
        return score_of(found, f"the evaluator {name} of {task.id}")

    return evaluate


def score_of(found: object, who: str) -> Score:
    """A verdict as a Score: True and False, a number in [0, 1], or a Score. Raises EnvironmentError_ for anything else."""
    if isinstance(found, Score):
        return found
    if isinstance(found, bool | int | float) and 0 <= found <= 1:
        return Score(value=float(found), success=float(found) == 1.0)
    raise EnvironmentError_(f"{who} gave {found!r}: let it give True, False, or a number from 0 to 1")


def _module(path: Path) -> ModuleType:
    name = f"exact_evaluators_{abs(hash(str(path)))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module
