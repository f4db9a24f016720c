"""Applications that open a window, by the commands that start them."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Sequence
from pathlib import Path

_ENTRIES = Path("/usr/share/applications")
_OTHERS = frozenset({"google-chrome", "gimp", "gnome-terminal", "soffice", "xterm"})
"""Commands that no desktop entry names."""


@functools.cache
def commands(folder: Path = _ENTRIES) -> frozenset[str]:
    """Return the names of the commands that desktop entries start with a window of their own."""
    found = set(_OTHERS)
    for path in folder.glob("*.desktop"):
        lines = path.read_text("utf-8", "replace").splitlines()
        if "Terminal=true" not in lines:
            found |= {program(line.removeprefix("Exec=")) for line in lines if line.startswith("Exec=")}
    return frozenset(found - {""})


def opens_window(command: str | Sequence[str]) -> bool:
    """Return whether a command starts an application that opens a window."""
    return program(command) in commands()


def program(command: str | Sequence[str]) -> str:
    """Return the name of the program that a command starts. Empty where it cannot be read."""
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError:
        return ""
    first = next((word for word in words if "=" not in word and word not in ("env", "exec", "nohup")), "")
    return Path(first).name
