"""`exact export`: an attempt in other forms: a Playwright test, a graph, a drawing, a moving picture."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.newfile import NewFile

if TYPE_CHECKING:
    from exact.report.model.reading import Reading
    from exact.task import Task

KINDS = {
    "playwright": ".py",
    "json": ".json",
    "graphml": ".graphml",
    "dot": ".dot",
    "svg": ".svg",
    "pdf": ".pdf",
    "png": ".png",
    "path": ".png",
    "trajectory": ".svg",
}
"""The ending of each kind's file."""


@click.command()
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--task", "pattern", metavar="GLOB", help="Only tasks whose id fits, with or without its seed: 'miniwob/click-*'.")
@click.option("--out", type=NewFile(), help="Where to write that of a single task; - for the terminal.")
def export(kind: str, run: Path, pattern: str | None, out: Path | None) -> None:
    """Writes each attempt of RUN in another form, beside its journal, and prints the paths.

    \b
    playwright  the committed path as a Playwright test
    json        every state and action with its statistics
    graphml     the same as a graph, for networkx, Gephi or yEd
    dot         the tree for Graphviz
    svg         the tree as a drawing; likewise pdf and png (these need Graphviz)
    path        the decision path and what was one action away from it, as a PNG (needs Graphviz)
    trajectory  the committed path as an SVG that moves from screenshot to screenshot
    """
    from exact.cli.report import started_tasks
    from exact.config import load_recorded
    from exact.errors import UsageError
    from exact.report.model.reading import Reading
    from exact.runs.journal.store import RunFolder, write_whole

    folder = RunFolder.open(run)
    config, tasks = load_recorded(folder.path), started_tasks(folder, pattern)
    if out is not None and len(tasks) != 1:
        raise UsageError(f"--out names one file, but {len(tasks)} tasks were chosen: name one with --task")
    for task in tasks:
        reading = Reading(folder.task_folder(task) / "journal.jsonl", config, folder.blobs)
        content = asyncio.run(_content(kind, task, reading))
        if out == Path("-"):
            sys.stdout.buffer.write(content)
            continue
        name = {"trajectory": "trajectory", "playwright": "test_path", "path": "path"}.get(kind, "tree")
        path = out or folder.task_folder(task) / f"{name}{KINDS[kind]}"
        write_whole(path, content)
        click.echo(path)


async def _content(kind: str, task: Task, reading: Reading) -> bytes:
    from exact.search.inspect.export import to_graphml, to_json

    match kind:
        case "playwright":
            from exact.report.export.playwright import playwright_test

            return playwright_test(task, reading).encode()
        case "json":
            return to_json(reading.state.tree)
        case "graphml":
            return to_graphml(reading.state.tree)
        case "trajectory":
            from exact.report.export.animation import trajectory

            return trajectory(reading).encode()
    from exact.report.export.dot import dot, drawn

    text = dot(reading.state.tree, frozenset(reading.state.path), path=kind == "path")
    return text.encode() if kind == "dot" else await drawn(text, "png" if kind == "path" else kind)  # type: ignore[arg-type]
