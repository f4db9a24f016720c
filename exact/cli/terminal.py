"""Output in a terminal. Nothing that a page, a server or a task file says can move the cursor, hide text or change colours."""

from __future__ import annotations

import os
from pathlib import Path

import click

from exact.inert import inert

_NAMES: dict[str, str] = {}
"""What stands in messages in place of the path of a local copy."""


def name_as(path: Path, name: str) -> None:
    """Print a name in place of a path from now on."""
    _NAMES[str(path)] = name.rstrip("/")


def echo(text: object = "", *, mark: str = "", err: bool = False, nl: bool = True) -> None:
    """Print a text, with control characters written out. `mark`: text of our own before it, coloured unless NO_COLOR is set."""
    plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    for path, name in _NAMES.items():
        plain = plain.replace(path, name)
    color = False if os.environ.get("NO_COLOR") else None
    click.echo(mark + inert(plain), err=err, nl=nl, color=color)
