"""Versions of the code that made a journal, a run or a benchmark."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_BELOW = ("playwright", "openai", "miniwob")
"""Packages on which observations and answers depend."""


CHANGES = "+changes"
"""Suffix of a commit where the code differed from that commit."""
_TIMEOUT = 5.0
"""Seconds in which git must report whether there are changes. It takes milliseconds."""


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python and of installed dependencies by name; in a source tree also its commit."""
    found = {"exact": version("exact-agent"), "python": platform.python_version(), "system": platform.system()}
    for package in _BELOW:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    if commit := code(Path(__file__).resolve().parents[3]):
        found["commit"] = commit
    return found


@functools.cache
def code(tree: Path, *, untracked: bool = False, apart: tuple[str, ...] = ()) -> str:
    """Return the commit of a source tree, with `+changes` where tracked files differ from it; empty where the tree has none.

    `untracked`: untracked files count too. `apart`: folders that do not count. Computed once in a process, whose code stays as it was
    loaded. Where git does not report changes in time, the commit is returned alone.
    """
    commit = checked_out(tree)
    return commit + CHANGES if commit and _differs(tree, untracked, apart) else commit


def _differs(tree: Path, untracked: bool, apart: tuple[str, ...]) -> bool:
    status = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain"]
    status += [f"--untracked-files={'normal' if untracked else 'no'}", "--", ".", *(f":!{folder}" for folder in apart)]
    others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # in a hook these are of another tree
    others["GIT_CEILING_DIRECTORIES"] = str(tree.parent)
    try:
        done = subprocess.run(status, cwd=tree, env=others, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_TIMEOUT)
    except (OSError, subprocess.SubprocessError):
        return False
    return bool(done.stdout.strip())


def checked_out(tree: Path) -> str:
    """Return the commit of a source tree or worktree; empty where it has none. Reads git's files, since git may not be installed."""
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
