"""What made a journal, a run or a benchmark."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_BELOW = ("playwright", "openai", "miniwob")
"""Packages on which what is seen and answered depends."""


CHANGES = "+changes"
"""What a commit ends with where the code was not that of the commit alone."""
_PATIENCE = 5.0
"""Seconds in which git must say whether there are changes; it takes milliseconds."""


def versions() -> dict[str, str]:
    """Of this package, of Python, of the packages below it that are installed; where the package is a source tree, of its code."""
    found = {"exact": version("exact-agent"), "python": platform.python_version(), "system": platform.system()}
    for package in _BELOW:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    if commit := code(Path(__file__).resolve().parents[2]):
        found["commit"] = commit
    return found


@functools.cache
def code(tree: Path, *, untracked: bool = False, apart: tuple[str, ...] = ()) -> str:
    """The commit of a source tree, with `+changes` where tracked files differ from it; empty where it is none.

    `untracked`: files that git does not know count too; `apart`: folders that do not. Looked at once in a process, which goes on with the
    code that it has loaded. Where git cannot say, the commit stands alone.
    """
    commit = checked_out(tree)
    return commit + CHANGES if commit and _differs(tree, untracked, apart) else commit


def _differs(tree: Path, untracked: bool, apart: tuple[str, ...]) -> bool:
    status = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain"]
    status += [f"--untracked-files={'normal' if untracked else 'no'}", "--", ".", *(f":!{folder}" for folder in apart)]
    others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # in a hook these are of another tree
    others["GIT_CEILING_DIRECTORIES"] = str(tree.parent)
    try:
        done = subprocess.run(status, cwd=tree, env=others, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_PATIENCE)
    except (OSError, subprocess.SubprocessError):
        return False
    return bool(done.stdout.strip())


def checked_out(tree: Path) -> str:
    """The commit of a source tree, a worktree too; empty where it is none. Read from git's files: git itself may not be installed."""
    git = tree / ".git"
    try:
        if git.is_file():
            git = tree / git.read_text().strip().removeprefix("gitdir: ")
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        shared = git / (git / "commondir").read_text().strip() if (git / "commondir").exists() else git
        return _commit_of(head.removeprefix("ref: "), shared)
    except OSError:
        return ""


def _commit_of(ref: str, git: Path) -> str:
    if (git / ref).exists():
        return (git / ref).read_text().strip()
    for line in (git / "packed-refs").read_text().splitlines():
        commit, _, name = line.partition(" ")
        if name == ref:
            return commit
    return ""
