"""Files of this machine that guests see empty, and files of an interpreter that they see."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from exact.environments.sandbox import host
from exact.environments.sandbox.host import made_files, private_files
from exact.environments.sandbox.python import inspect_python


@pytest.fixture
def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that guests see, in place of those of this machine."""
    monkeypatch.setattr(host, "_SEARCHED", (str(tmp_path),))
    private_files.cache_clear()
    yield tmp_path
    private_files.cache_clear()


def private(folder: Path) -> set[str]:
    """Return what of a folder is private, relative to it."""
    return {str(Path(path).relative_to(folder)) for path in private_files() if Path(path).is_relative_to(folder)}


def write(path: Path, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("secret")
    path.chmod(mode)


def test_files_that_others_may_not_read_are_private_whoever_runs_exact(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(searched / "cargo" / "credentials.toml", 0o600)
    write(searched / "bin" / "tool", 0o755)
    write(searched / "lib" / "site-packages" / "shop.py", 0o600)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert private(searched) == {"cargo/credentials.toml"}


def test_a_file_that_goes_during_the_search_hides_no_other(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        write(searched / name, 0o600)
    entries = host._entries

    def then_gone(folder: str) -> list[os.DirEntry[str]]:
        found = entries(folder)
        (searched / "b").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(host, "_entries", then_gone)
    assert private(searched) == {"a", "c"}


def test_a_setting_that_is_a_link_hides_the_file_that_it_leads_to(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = next(each for each in Path("/etc").iterdir() if each.is_file() and not each.is_symlink() and str(each) not in made_files())
    (searched / "pip.conf").symlink_to(target)
    monkeypatch.setattr(host, "_SETTINGS", (str(searched / "pip.conf"),))
    assert str(target) in private_files()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a virtual environment and other files."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    for name in (".env", "pip.conf", "login.json", "runs/journal.jsonl"):
        write(tmp_path / name, 0o644)
    return tmp_path


async def test_a_virtual_environment_in_a_project_shows_no_other_file_of_it(project: Path) -> None:
    found = await inspect_python(project / "bin" / "python", {})
    own = {path.relative_to(project).parts[0] for path in found.folders if path.is_relative_to(project)}
    assert {"bin", "lib", "pyvenv.cfg"} <= own <= {"bin", "lib", "lib64", "include", "share", "pyvenv.cfg"}


async def test_a_home_to_import_from_shows_its_modules_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("mine.py", "shop/__init__.py", "notes.txt", ".ssh/key", "pictures/one.png"):
        write(tmp_path / name, 0o644)
    found = await inspect_python(Path(sys.executable), {"PYTHONPATH": str(tmp_path)})
    assert {path.name for path in found.folders if path.is_relative_to(tmp_path)} == {"mine.py", "shop"}
