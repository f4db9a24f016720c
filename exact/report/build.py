"""Reports on disk: one page a task, and one of the run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from exact.errors import JournalError
from exact.report.model import report
from exact.report.page import index, page
from exact.report.text import one_line
from exact.runs.store import Line, RunFolder, write_whole
from exact.task import Task


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One task on the page of a run."""

    task: str
    href: str
    """Of its report, relative to the run; empty where there is none."""
    ending: str
    line: Line | None
    """None where the attempt has not ended."""


def build_report(run: RunFolder, task: Task, *, out: Path | None = None, screenshots: bool = True) -> Path:
    """Write a task's report (default: `report.html` beside its journal) from the journal and its blobs alone.

    A torn or unfinished journal gives a report of what it holds. Raises JournalError where there is none, or no room for the page.
    """
    folder = run.task_folder(task)
    if not (folder / "journal.jsonl").exists():
        raise JournalError(f"no journal of {task.id} in {run.path}: it was not started")
    path = out or folder / "report.html"
    _write(path, page(report(run, task, screenshots=screenshots)))
    return path


def build_index(run: RunFolder) -> Path:
    """Write `index.html` of a run, one row a task, with links to the reports that exist."""
    manifest, lines = run.manifest, {line.task: line for line in run.results()}
    rows = [_row(run, task, lines.get(task.id)) for task in manifest.tasks]
    path = run.path / "index.html"
    solved = sum(row.ending == "solved" for row in rows)
    _write(path, index(rows=rows, name=one_line(run.path.name), agent=one_line(manifest.agent), solved=solved))
    return path


def _row(run: RunFolder, task: Task, line: Line | None) -> Row:
    folder = run.task_folder(task)
    there = (folder / "report.html").exists()
    href = (folder / "report.html").relative_to(run.path).as_posix() if there else ""
    return Row(task=one_line(task.id), href=href, ending=_ending(line, (folder / "journal.jsonl").exists()), line=line)


def _ending(line: Line | None, started: bool) -> str:
    if line is None:
        return "unfinished" if started else "not started"
    if line.status == "scored":
        return "solved" if line.score == 1 else "unsolved"
    return line.status


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}: choose another --out") from error
