"""`exact report`: build the reports of runs again from their journals and blobs."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exact.cli.run_folder import RunFolderPath, on_storage
from exact.cli.terminal import echo

if TYPE_CHECKING:
    from exact.report.suite import PairedGain
    from exact.runs.journal.store import RunFolder
    from exact.task import Task


@click.command()
@click.argument("runs", type=RunFolderPath(), nargs=-1, required=True, metavar="RUN...")
@click.option("--task", "pattern", metavar="GLOB", help="Select the tasks whose id matches, with or without its seed: 'miniwob/click-*'.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write the report of a single task, or the comparison, to."
)
@click.option("--no-screenshots", is_flag=True, help="Leave out the screenshots, for a smaller file.")
@click.option(
    "--max-size", type=click.FloatRange(min=0.01), metavar="MB", help="Largest size of a file: pictures are shrunk, then texts are cut."
)
@click.option("--share", is_flag=True, help="Write a redacted copy, shared.html, without pictures, keys, addresses and typed texts.")
@click.option("--redact", "words", multiple=True, metavar="TEXT", help="Further text to redact. Requires --share. Repeatable.")
@click.option("--open", "show", is_flag=True, help="Open the report in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of paths.")
@on_storage("runs", write=True)
def report(
    runs: tuple[Path, ...], pattern: str | None, out: Path | None, no_screenshots: bool, max_size: float | None, share: bool,
    words: tuple[str, ...], show: bool, as_json: bool,
) -> None:  # fmt: skip
    """Build the reports of RUN again and print their paths.

    The command writes a page for each started task, and index.html. For several runs it also writes compare.html beside the first run: a
    table of all attempts, and the first difference between two of them. A running, interrupted or torn journal gives a report up to its
    end.
    """
    from exact.errors import UsageError
    from exact.report.build import build_index, build_report, build_suite
    from exact.runs.journal.store import RunFolder

    if words and not share:
        raise UsageError("--redact requires --share: it removes texts from a shared copy")
    folders = [RunFolder.open(run) for run in runs]
    tasks = [(folder, task) for folder in folders for task in started_tasks(folder, pattern)]
    if out is not None and len(folders) == 1 and len(tasks) != 1:
        raise UsageError(f"--out names one file, but {len(tasks)} tasks match: select one with --task")
    alone = out if len(folders) == 1 else None
    paths = [
        build_report(folder, task, out=alone, screenshots=not no_screenshots, most=max_size, share=share, words=words)
        for folder, task in tasks
    ]
    pages = [] if share else [build_index(folder) for folder in folders]
    if len(folders) > 1:
        pages = [*pages, build_suite(folders, out or folders[0].path.resolve().parent / "compare.html", gains=gains(folders))]
    if as_json:
        found = {"reports": {task.id: str(path) for (_, task), path in zip(tasks, paths, strict=True)}}
        echo(json.dumps({"index": str(pages[-1]) if pages else None, **found}))
    else:
        echo("\n".join(map(str, [*paths, *pages])))
    if show:
        click.launch(str(paths[0] if len(paths) == 1 or not pages else pages[-1]))


def gains(runs: Sequence[RunFolder]) -> list[PairedGain]:
    """Return the comparison of each run with the first one, if they share a task with a score."""
    from exact.errors import ExactError
    from exact.evaluation.summary import compare, open_side
    from exact.report.model.text import one_line
    from exact.report.suite import PairedGain

    found = []
    for number, run in enumerate(runs[1:], 1):
        try:
            compared = compare(open_side(run.path), open_side(runs[0].path))
        except ExactError:  # one has no results yet, or they have no task in common
            continue
        plain = compared.versus._asdict()
        estimate = plain.pop("gain")
        gain = f"{'+' if estimate.mean > 0 else ''}{estimate}"
        shares = str(compared.b.success), str(compared.a.success)
        found.append(PairedGain(run=number, shares=shares, gain=gain, warnings=tuple(map(one_line, compared.warnings)), **plain))
    return found


def started_tasks(run: RunFolder, pattern: str | None) -> Sequence[Task]:
    """Return the started tasks that match a pattern. Raises UsageError if none match."""
    from exact.errors import UsageError, unknown

    tasks = run.manifest.tasks
    fitting = [task for task in tasks if pattern is None or fits(task.id, pattern)]
    if not fitting:
        raise unknown("task", pattern or "", [task.id for task in tasks])
    started = [task for task in fitting if (run.task_folder(task) / "journal.jsonl").exists()]
    if not started:
        raise UsageError(f"no started task in {run.path}: {len(fitting)} match, and none was started: `{run.resuming}` starts them")
    return started


def fits(id: str, pattern: str) -> bool:
    """Return whether a task's id, with or without its seed, matches a pattern."""
    return id == pattern or any(fnmatch.fnmatchcase(name, pattern) for name in (id, id.partition("?seed=")[0]))
