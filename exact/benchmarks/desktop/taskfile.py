"""The suite's tasks as task files of OSWorld, which `desktop_env` sets up and judges by its own means."""

from __future__ import annotations

import uuid
from typing import Any

from exact.benchmarks.desktop.problem import Problem
from exact.environments.desktop import Check

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
    """Return a condition as a metric with what it looks at and what it expects."""
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
