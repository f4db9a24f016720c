"""No module imports from a higher floor, in functions neither: the contracts of import-linter in pyproject.toml."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from . import house

ROOT = Path(__file__).parents[1]
CHECK = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
BY_NAME = {
    "exact": "the facade imports a public name at its first use",
    "exact.search.package": "`exact.search(...)` is a function of the library, which is a higher floor",
    "exact.environments.process.guest": "a guest of another interpreter imports nothing of exact unless its environment does",
}
"""Modules that import others of exact by a text, which import-linter does not see."""


def lint(cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, '.'); {CHECK}"], cwd=cwd, capture_output=True, text=True)


def test_no_module_imports_from_a_higher_floor() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("wrong", ["import exact.agents.base\n", "def late():\n    from exact.agents import base\n"])
def test_an_import_from_a_higher_floor_is_found_in_a_function_too(wrong: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "exact", tmp_path / "exact", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "exact" / "search" / "wrong.py").write_text(wrong)
    done = lint(tmp_path)
    assert done.returncode == 1
    assert "exact.search is not allowed to import exact.agents" in done.stdout


def test_no_import_is_ignored_by_the_contracts() -> None:
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text()


def test_no_module_imports_the_facade() -> None:
    """Contracts leave the package itself out: it is no layer."""

    def is_facade(node: ast.AST) -> bool:
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        return "exact" in names or (isinstance(node, ast.ImportFrom) and node.module == "exact")

    found = {name for name, path in house.files().items() if any(map(is_facade, ast.walk(house.parsed(path))))}
    assert found == set()


def test_few_modules_import_others_by_a_text() -> None:
    def is_by_name(node: ast.AST) -> bool:
        called = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__"))
        return called and "exact." in ast.unparse(node)

    assert {name for name, path in house.files().items() if any(map(is_by_name, ast.walk(house.parsed(path))))} == set(BY_NAME)
