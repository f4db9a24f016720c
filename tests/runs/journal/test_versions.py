"""What made a journal: the checked-out commit, in a clone and in a worktree, and whether the code differs from it."""

import os
import subprocess
from pathlib import Path

import pytest

from exact.runs.journal.versions import checked_out, code, versions


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


@pytest.fixture
def tracked(clone: Path) -> Path:
    """Return a file that is committed."""
    file = clone / "a.py"
    file.write_text("one\n")
    git(clone, "add", "a.py")
    git(clone, "commit", "-q", "-m", "two")
    return file


def test_code_that_differs_from_its_commit_is_said_to(clone: Path, tracked: Path) -> None:
    head = git(clone, "rev-parse", "HEAD")
    (clone / "untracked.py").write_text("other\n")
    os.utime(tracked, (0, 0))
    assert code.__wrapped__(clone) == head, "what is not tracked does not count, nor when a file was written"
    tracked.write_text("two\n")
    assert code.__wrapped__(clone) == f"{head}+changes"
    git(clone, "add", "a.py")
    assert code.__wrapped__(clone) == f"{head}+changes", "staged or not"
    tracked.unlink()
    assert code.__wrapped__(clone) == f"{head}+changes"


def test_a_worktree_s_changes_are_its_own(clone: Path, tracked: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "-q", "--detach", str(tmp_path / "side"))
    (tmp_path / "side" / "a.py").write_text("two\n")
    head = git(clone, "rev-parse", "HEAD")
    assert (code.__wrapped__(clone), code.__wrapped__(tmp_path / "side")) == (head, f"{head}+changes")


def test_a_hook_of_another_tree_does_not_mislead(clone: Path, tracked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head, other = git(clone, "rev-parse", "HEAD"), tmp_path / "other"
    tracked.write_text("two\n")
    other.mkdir()
    git(other, "init", "-q")
    for name, value in {"GIT_DIR": other / ".git", "GIT_WORK_TREE": other, "GIT_INDEX_FILE": other / "index"}.items():
        monkeypatch.setenv(name, str(value))
    assert code.__wrapped__(clone) == f"{head}+changes"


@pytest.mark.parametrize(
    "git_s",
    [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 5.0), subprocess.CalledProcessError(128, "git")],
    ids=["missing", "silent", "failing"],
)
def test_the_commit_is_given_alone_where_git_is_not_available(
    git_s: Exception, clone: Path, tracked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = git(clone, "rev-parse", "HEAD")
    tracked.write_text("two\n")

    def run(*arguments: object, timeout: float, **more: object) -> None:
        raise git_s

    monkeypatch.setattr(subprocess, "run", run)
    assert code.__wrapped__(clone) == head


def test_git_is_asked_once_in_a_process_and_only_about_a_source_tree(
    clone: Path, tracked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert code(clone) == git(clone, "rev-parse", "HEAD")
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **more: pytest.fail("git was asked"))
    tracked.write_text("two\n")
    assert "+" not in code(clone), "the code that the process has loaded"
    assert code(tmp_path) == ""


def test_the_version_of_the_sandbox_is_named_where_it_is_installed() -> None:
    assert {"exact", "python", "system", "playwright", "miniwob"} <= versions().keys() and all(versions().values())


def test_a_source_tree_s_versions_hold_its_commit() -> None:
    root = Path(__file__).parents[3]
    if not checked_out(root):
        pytest.skip("this is no clone")
    assert versions()["commit"] == code(root)
