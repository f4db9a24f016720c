"""`exact export`: export attempts as Playwright tests, graphs, drawings or animations."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.newfile import NewFile
from exact.cli.terminal import echo

if TYPE_CHECKING:
    from exact.report.model.reading import Reading
    from exact.task import Task

KINDS = {
    "playwright": (".py", "the committed path as a Playwright test"),
    "json": (".json", "every state and action with its statistics"),
    "graphml": (".graphml", "the same as a graph, for networkx, Gephi or yEd"),
    "dot": (".dot", "the tree for Graphviz"),
    "svg": (".svg", "the tree as a drawing (requires Graphviz)"),
    "pdf": (".pdf", "the same as PDF (requires Graphviz)"),
    "png": (".png", "the same as PNG (requires Graphviz)"),
    "path": (".png", "the committed path and its siblings as PNG (requires Graphviz)"),
    "trajectory": (".svg", "the committed path as an SVG animation of screenshots"),
}
"""File name suffix and description of each kind."""

_HELP = "\b\n" + "\n".join(f"{kind:12}{text}" for kind, (_, text) in KINDS.items())


@click.command(epilog=_HELP)
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--task", "pattern", metavar="GLOB", help="Select the tasks whose id matches, with or without its seed: 'miniwob/click-*'.")
@click.option("--out", type=NewFile(), help="File to write the export of a single task to; - for standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each file.")
def export(kind: str, run: Path, pattern: str | None, out: Path | None, as_json: bool) -> None:
    """Export each attempt of RUN as KIND, beside its journal, and print the paths."""
    from exact.cli.report import started_tasks
    from exact.config import load_recorded
    from exact.errors import UsageError
    from exact.report.model.reading import Reading
    from exact.runs.journal.store import RunFolder, write_whole

    folder = RunFolder.open(run)
    config, tasks = load_recorded(folder.path), started_tasks(folder, pattern)
    if out is not None and len(tasks) != 1:
        raise UsageError(f"--out names one file, but {len(tasks)} tasks match: select one with --task")
    for task in tasks:
        reading = Reading(folder.task_folder(task) / "journal.jsonl", config, folder.blobs)
        content = asyncio.run(_content(kind, task, reading))
        if out == Path("-"):
            sys.stdout.buffer.write(content)
            continue
        name = {"trajectory": "trajectory", "playwright": "test_path", "path": "path"}.get(kind, "tree")
        path = out or folder.task_folder(task) / f"{name}{KINDS[kind][0]}"
        write_whole(path, content)
        echo(json.dumps({"task": task.id, "path": str(path)}) if as_json else path)


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
