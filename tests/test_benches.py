"""Every bench imports, each name that it takes from the package exists, and the quick forms run and print their figures."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "bench"
NAMES = sorted(path.stem for path in BENCH.glob("*.py"))
BENCHES = [name for name in NAMES if not name.startswith("_") and name != "figures"]  # that one writes a page
PROGRAMS = ("_ballast",)
"""Programs that read their arguments when they start."""
IMPORT = """
import importlib, json, sys, traceback
failed = {}
for name in sys.argv[1:]:
    sys.path.insert(0, "bench")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:  # a package that a peer's own virtual environment has
        if error.name.startswith(("exact", "tests", "_")):
            failed[name] = traceback.format_exc(limit=-1)
    except Exception:
        failed[name] = traceback.format_exc(limit=-1)
print(json.dumps(failed))
"""


def test_every_bench_imports() -> None:
    names = [name for name in NAMES if name not in PROGRAMS]
    done = subprocess.run([sys.executable, "-c", IMPORT, *names], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {}


def test_every_name_that_benches_and_examples_take_from_the_package_exists() -> None:
    """Imports in functions too, and those of programs that other virtual environments run."""
    files = [*BENCH.glob("*.py"), *(ROOT / "examples").rglob("*.py")]
    wrong = [
        f"{path.relative_to(ROOT)}: {module}.{name}" for path in sorted(files) for module, name in _taken(path) if not _exists(module, name)
    ]
    assert wrong == []


def _taken(path: Path) -> Iterator[tuple[str, str]]:
    """Return each module of the package and each name that a file imports from it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "exact":
            yield from ((node.module, each.name) for each in node.names)


def _exists(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.import_module(f"{module}.{name}"))
    except ModuleNotFoundError as error:
        return error.name is not None and not error.name.startswith("exact")


@pytest.mark.parametrize("name", BENCHES)
def test_a_quick_form_runs_and_prints_each_figure_that_has_a_goal(name: str, tmp_path: Path) -> None:
    command = [sys.executable, f"bench/{name}.py", "--quick", "--json", str(tmp_path / "result.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)
    if done.returncode == 77:  # a part is not installed
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"(rough: )?\w+: \S+( \(goal .*\))?", done.stdout.splitlines()[-1])
    printed = set(re.findall(r"^(?:rough: |lacks: )?(\w+): ", done.stdout, re.MULTILINE))
    assert [figure for figure in _goals(name) if figure not in printed] == []


def _goals(name: str) -> list[str]:
    """Return the figures with a goal of a bench's last whole run."""
    kept = BENCH / "results" / f"{name}.json"
    found = json.loads(kept.read_text())["figures"] if kept.is_file() else {}
    return [figure for figure, told in found.items() if told["goal"] is not None]
