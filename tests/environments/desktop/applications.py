"""Tasks on a text editor and a calculator, and what is asked of observations."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from exact.observation import Observation
from exact.task import Task

EDITOR, CALCULATOR = ["mousepad", "--disable-server", "~/note.txt"], ["galculator"]

Do = Callable[[str], Awaitable[Observation]]


def desktop_task(*applications: list[str], **setup: Any) -> Task:
    """`desktop_task(EDITOR, files={...})`"""
    told = {"applications": applications, "files": {"note.txt": "one\ntwo\n"}, **setup}
    return Task(id="desktop/test", instruction="Try it.", private={"desktop": json.dumps(told)})


def id_of(seen: Observation, role: str, name: str | None = None) -> str:
    """Return the id of the first such element."""
    found = [each.id for each in seen.elements if each.role == role and name in (None, each.name)]
    assert found, seen.text
    return found[0]


def value_of(seen: Observation, role: str = "textbox", last: bool = False) -> str | None:
    return [each.value for each in seen.elements if each.role == role][-1 if last else 0]


def needs_gtk() -> None:
    """Skip where Debian's Python has no GTK 3."""
    if not (list(Path("/usr/lib").glob("*/girepository-1.0/Gtk-3.0.typelib")) and Path("/usr/lib/python3/dist-packages/gi").exists()):
        pytest.skip("python3-gi and gir1.2-gtk-3.0 not installed")


def running(pid: int | None, program: str) -> int:
    """Process number of a program that a process has started."""
    waiting = [pid or 0]
    while waiting:
        here = Path(f"/proc/{waiting.pop()}")
        if program in (here / "cmdline").read_text().split("\0")[0]:
            return int(here.name)
        for task in (here / "task").iterdir():
            waiting += map(int, (task / "children").read_text().split())
    raise AssertionError(f"{program} does not run")
