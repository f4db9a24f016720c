"""Every example runs as it stands."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from exact.config import SearchConfig
from exact.search.registry import algorithm, names

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("0*.py"))
OWN = FOLDER / "own_algorithm"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return the folder in which `pip install` would put the example's own package."""
    project = tomllib.loads((OWN / "pyproject.toml").read_text())["project"]
    info = tmp_path / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items()) for group, entries in groups]
    (info / "entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "climb.py").write_bytes((OWN / "climb.py").read_bytes())
    return tmp_path


def run(example: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=60, env=env)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, installed: Path) -> None:
    done = run(example, str(installed))
    assert done.returncode == 0, done.stderr
    assert ("end" if example.stem == "01_toy_search" else "score 1.0") in done.stdout


def test_an_algorithm_that_is_not_installed_is_not_found_and_the_example_says_what_to_do() -> None:
    done = run(FOLDER / "04_own_algorithm.py")
    assert done.returncode == 1 and "pip install ./examples/own_algorithm" in done.stderr


def test_an_algorithm_is_named_by_its_entry_point_and_unknown_options_are_its_own(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed)
    monkeypatch.delitem(sys.modules, "climb", raising=False)
    assert "climb" in names()
    found = algorithm(SearchConfig(algorithm="climb", k=3, options={"its": "own"}))
    assert type(found).__name__ == "Climb"
    sys.modules.pop("climb", None)


def test_a_custom_agent_on_a_custom_environment_takes_forty_lines_of_code() -> None:
    """Imports, docstrings, comments and blank lines are not counted."""
    source = (FOLDER / "02_custom_agent.py").read_text()
    plain = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    left_out = {line for node in plain for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    code = [line for line, text in enumerate(source.splitlines(), 1) if text.split("#")[0].strip() and line not in left_out]
    assert len(code) <= 40
