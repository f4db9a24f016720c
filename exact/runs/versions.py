"""What made a journal, a run or a benchmark."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_BELOW = ("playwright", "openai", "miniwob")
"""Packages on which what is seen and answered depends."""


def versions() -> dict[str, str]:
    """Of this package, of Python, of the packages below it that are installed, and the commit where the package is a source tree."""
    found = {"exact": version("exact-agent"), "python": platform.python_version(), "system": platform.system()}
    for package in _BELOW:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    if commit := checked_out(Path(__file__).resolve().parents[2]):
        found["commit"] = commit
    return found


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
