"""Check whether `desktop_env` has all names in OSWorld's task files: steps of set-ups, getters, metrics, and their arguments."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any


def unresolved(task: dict[str, Any]) -> list[str]:
    """Describe the names in a task that desktop_env lacks. Empty if it has them all."""
    return list(_unresolved(task))


def _unresolved(task: dict[str, Any]) -> Iterator[str]:
    controller = importlib.import_module("desktop_env.controllers.setup").SetupController
    evaluators = importlib.import_module("desktop_env.evaluators")
    evaluator = task["evaluator"]
    for step in [*(task.get("config") or []), *(evaluator.get("postconfig") or [])]:
        method = getattr(controller, f"_{step['type']}_setup", None)
        if method is None:
            yield f"step {step['type']}"
        elif fault := _misfit(method, (None,), step.get("parameters") or {}):
            yield f"step {step['type']}: {fault}"
    for part in ("result", "expected"):
        for getter in _list(evaluator.get(part)):
            if getter and not hasattr(evaluators.getters, f"get_{getter['type']}"):
                yield f"getter {getter['type']}"
    names, options = _list(evaluator["func"]), _list(evaluator.get("options"))
    expected = bool(evaluator.get("expected"))
    for at, name in enumerate(names):
        metric = getattr(evaluators.metrics, name, None)
        if metric is None:
            yield f"metric {name}"
            continue
        given = options[at] if at < len(options) else None
        if name != "infeasible" and (fault := _misfit(metric, (None,) * (1 + expected), given or {})):
            yield f"metric {name}: {fault}"


def _misfit(function: Callable[..., Any], positional: tuple[Any, ...], named: dict[str, Any]) -> str:
    try:
        inspect.signature(function).bind(*positional, **named)
    except TypeError as error:
        return str(error)
    return ""


def _list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list) else [given] if given else []
