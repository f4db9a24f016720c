"""What made a journal: the checked-out commit, in a clone and in a worktree."""

import subprocess
from pathlib import Path

import pytest

from exact.runs.versions import checked_out, versions


def git(folder: Path, *command: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", "-C", str(folder), *who, *command], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


def test_a_clone_says_its_commit_on_a_branch_and_off_it(clone: Path) -> None:
    head = git(clone, "rev-parse", "HEAD")
    assert checked_out(clone) == head
    git(clone, "checkout", "-q", "--detach")
    assert checked_out(clone) == head


def test_a_worktree_says_its_own_commit(clone: Path, tmp_path: Path) -> None:
    for name, branch in (("detached", ["--detach"]), ("branch", ["-b", "side"])):
        git(clone, "worktree", "add", "-q", *branch, str(tmp_path / name))
        git(tmp_path / name, "commit", "-q", "--allow-empty", "-m", name)
        assert checked_out(tmp_path / name) == git(tmp_path / name, "rev-parse", "HEAD") != checked_out(clone)


def test_a_branch_whose_commit_was_packed_says_it_too(clone: Path) -> None:
    head = git(clone, "rev-parse", "HEAD")
    git(clone, "pack-refs", "--all")
    assert checked_out(clone) == head


def test_an_installed_package_says_none(tmp_path: Path) -> None:
    assert checked_out(tmp_path) == ""
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert checked_out(tmp_path) == ""


def test_what_is_below_is_named_where_it_is_installed() -> None:
    assert {"exact", "python", "system", "playwright", "miniwob"} <= versions().keys() and all(versions().values())
