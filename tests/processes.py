"""Processes, found by a setting of the environment that they inherited; and the pipes of this one."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path


def marked(setting: str) -> dict[int, str]:
    """Command lines by process number, of those alive whose environment has `NAME=value`. A command's parts stand apart by a space.

    The browser inherits names that begin with `LC_`, and few others.
    """
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if setting.encode() in (folder / "environ").read_bytes().split(b"\0") and "State:\tZ" not in (folder / "status").read_text():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended meanwhile, or is not ours
            continue
    return found


def left(setting: str, seconds: float) -> list[str]:
    """Command lines of those that are still alive after at most so long."""
    deadline = time.monotonic() + seconds
    while (alive := marked(setting)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return list(alive.values())


def pipes() -> set[str]:
    """Return the pipes that this process has open."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            found.add(str(each.readlink()))
    return {each for each in found if each.startswith("pipe:")}
