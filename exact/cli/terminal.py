"""Output in a terminal. Nothing that a page, a server or a task file says can move the cursor, hide text or change colours.

Completions for a shell: commands, task ids, the names of shipped configurations. Nothing is fetched or started for it.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import click
from click.shell_completion import CompletionItem

from exact.errors import ExactError
from exact.text import inert

_NAMES: dict[str, str] = {}
"""Names that messages show in place of the paths of local copies."""


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


def columns(rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> str:
    """Return rows in columns that are two spaces apart, figures to the right.

    On a terminal, rows that are too wide become blocks: the first cell, and below it a line for each other cell with its heading. A pipe
    gets a row on each line, however wide it is.
    """
    table = [[inert(" ".join(cell.split())) for cell in row] for row in ([head] if head else []) + list(rows)]
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    right = [index > 0 and all(map(_FIGURE.match, column)) for index, column in enumerate(zip(*table[bool(head) :], strict=True))]
    most = _room()
    if head and most is not None and sum(widths) + 2 * (len(widths) - 1) > most:
        label = max(map(width, table[0][1:]), default=0)
        blocks = (
            [first, *(f"  {padded(name, label)}  {cell}" for name, cell in zip(table[0][1:], others, strict=True))]
            for first, *others in table[1:]
        )
        return "\n".join(line for block in blocks for line in block)
    return "\n".join("  ".join(map(padded, row, widths, right)).rstrip() for row in table)


def plain(markdown: str) -> str:
    """Return a page of Markdown as a terminal shows it: tables in columns, headings and bold words as they are, paragraphs folded."""
    return "\n\n".join(map(_plain, markdown.strip().split("\n\n")))


def width(text: str) -> int:
    """Return the columns of a terminal that a text takes: a wide character takes two."""
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, to: int, right: bool = False) -> str:
    """Return a text with spaces after it, or before it, until it is `to` columns wide."""
    space = " " * (to - width(text))
    return space + text if right else text + space


def _plain(block: str) -> str:
    if block.startswith("| "):
        head, _, *rows = ([cell.strip().replace("\\|", "|") for cell in _CELLS.split(row)[1:-1]] for row in block.splitlines())
        return columns([[_LINK.sub(r"\1 (\2)", cell) for cell in row] for row in rows], head=head)
    text, most = _LINK.sub(r"\1 (\2)", block.lstrip("# ").replace("**", "")), _room()
    if most is None:
        return text
    import textwrap

    return textwrap.fill(text, most, break_long_words=False, break_on_hyphens=False)


def _room() -> int | None:
    """Return the columns of the terminal; None for a pipe or a file."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")
_CELLS = re.compile(r"(?<!\\)\|")
_FIGURE = re.compile(r"[-+–~$]?\d|[-–]?$|unknown")
"""Matches a cell that stands to the right."""


def clean_tracebacks() -> None:
    """Print the tracebacks of this process as `echo` prints texts: they may quote a server."""
    sys.excepthook = _print_traceback
    threading.excepthook = lambda args: _print_traceback(*args[:3])


def clean_warnings() -> None:
    """Print the warnings of logs of this process as `echo` prints texts. The help of `exact` needs no logs, so it does not load them."""
    import logging

    class InertFormatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return inert(super().format(record))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(InertFormatter())


def _print_traceback(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    import traceback

    echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)


_KNOWN_HERE = ("miniwob", "desktop", "trac", "wagtail", "browsergym", "osworld")
"""Suites whose ids are known without fetching a task file."""


def complete_tasks(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the suites, and after a slash the tasks and lists of a suite, that begin so; else file names."""
    from exact.benchmarks import registry

    try:
        known = list(registry.suites())
        suite, slash, _ = incomplete.partition("/")
        if not slash:
            found = _beginning([f"{name}/" for name in known], incomplete)
        elif suite in _KNOWN_HERE:
            tasks = registry.suite(suite)
            found = _beginning([*tasks.ids(), *(f"{suite}/@{name}" for name in tasks.lists())], incomplete)
        else:
            found = []
    except ExactError:
        found = []
    return found or [CompletionItem(incomplete, type="file")]


def complete_configurations(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the shipped configurations that begin so; else file names."""
    from exact.config.reading import shipped

    return _beginning(sorted(shipped()), incomplete) or [CompletionItem(incomplete, type="file")]


def configuration_option(help: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return the option --config, for a file or the name of a shipped configuration, which a command gets as `path`."""
    return click.option("--config", "-c", "path", type=click.Path(path_type=Path), shell_complete=complete_configurations, help=help)


def _beginning(names: Sequence[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
