"""No module imports from a higher floor: the contracts of import-linter in pyproject.toml."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECK = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def lint(cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, '.'); {CHECK}"], cwd=cwd, capture_output=True, text=True)


def test_no_module_imports_from_a_higher_floor() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_import_from_a_higher_floor_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "exact", tmp_path / "exact", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "exact" / "search" / "wrong.py").write_text("import exact.agents.base\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    assert "exact.search is not allowed to import exact.agents" in done.stdout
