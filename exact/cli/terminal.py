"""Output in a terminal. Nothing that a page, a server or a task file says can move the cursor, hide text or change colours."""

from __future__ import annotations

import os

import click

from exact.inert import inert


def echo(text: object = "", *, mark: str = "", err: bool = False, nl: bool = True) -> None:
    """Print a text, with control characters written out. `mark`: text of our own before it, coloured unless NO_COLOR is set."""
    plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    color = False if os.environ.get("NO_COLOR") else None
    click.echo(mark + inert(plain), err=err, nl=nl, color=color)
