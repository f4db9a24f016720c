"""`exact report`: writes the pages of a run anew, from its journals and blobs."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from exact.runs.store import RunFolder
    from exact.task import Task


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--task", "pattern", metavar="GLOB", help="Only tasks whose id fits, with or without its seed: 'miniwob/click-*'.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the report of a single task.")
@click.option("--no-screenshots", is_flag=True, help="Leaves the pictures out: a smaller file.")
@click.option("--open", "show", is_flag=True, help="Opens it in a browser.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of paths, one a line.")
def report(run: Path, pattern: str | None, out: Path | None, no_screenshots: bool, show: bool, as_json: bool) -> None:
    """Writes a page for each task of RUN that was started, and index.html; prints their paths.

    A running, interrupted or torn journal gives a report of what it holds.
    """
    from exact.errors import UsageError
    from exact.report import build_index, build_report
    from exact.runs.store import RunFolder

    folder = RunFolder.open(run)
    tasks = chosen(folder, pattern)
    if out is not None and len(tasks) != 1:
        raise UsageError(f"--out names one file, but {len(tasks)} tasks were chosen: name one with --task")
    reports = {task.id: build_report(folder, task, out=out, screenshots=not no_screenshots) for task in tasks}
    index = build_index(folder)
    if as_json:
        click.echo(json.dumps({"index": str(index), "reports": {id: str(path) for id, path in reports.items()}}))
    else:
        click.echo("\n".join(map(str, [*reports.values(), index])))
    if show:
        click.launch(str(next(iter(reports.values())) if len(reports) == 1 else index))


def chosen(run: RunFolder, pattern: str | None) -> Sequence[Task]:
    """The started tasks that fit. Raises UsageError where none does."""
    from exact.errors import UsageError, unknown

    tasks = run.manifest.tasks
    fitting = [task for task in tasks if pattern is None or _fits(task.id, pattern)]
    if not fitting:
        raise unknown("task", pattern or "", [task.id for task in tasks])
    started = [task for task in fitting if (run.task_folder(task) / "journal.jsonl").exists()]
    if not started:
        raise UsageError(f"nothing to report in {run.path}: none of its {len(fitting)} chosen tasks was started")
    return started


def _fits(id: str, pattern: str) -> bool:
    return id == pattern or any(fnmatch.fnmatchcase(name, pattern) for name in (id, id.partition("?seed=")[0]))
