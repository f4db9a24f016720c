"""Reports on disk: one page a task, and an index of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from exact.config import load_recorded
from exact.errors import JournalError, UsageError, no_space
from exact.report.model.data import Report
from exact.report.model.model import PICTURES, TEXTS, report
from exact.report.page import page, suite_page
from exact.report.redact import redacted
from exact.report.suite import suite
from exact.runs.journal.store import RunFolder, scrubbed, write_whole
from exact.runs.secrets import known_secrets
from exact.secrecy import Scrubber
from exact.task import Task

MEGABYTE = 1_000_000


def build_report(
    run: RunFolder,
    task: Task,
    *,
    out: Path | None = None,
    screenshots: bool = True,
    most: float | None = None,
    share: bool = False,
    words: Iterable[str] = (),
) -> Path:
    """Write a task's report (default: `report.html` beside its journal) from the journal and its blobs alone.

    A torn or unfinished journal gives a report of its contents. most: megabytes that the file may take; pictures shrink first, then long
    texts are cut. share: leave out screenshots and raw answers, and redact; `words` are removed too (default: `shared.html`). Raises
    JournalError if the journal is missing or the page cannot be written; UsageError if `most` is too small.
    """
    folder = run.task_folder(task)
    if not (folder / "journal.jsonl").exists():
        raise JournalError(f"no journal of {task.id} in {run.path}: it was not started")
    path = out or folder / ("shared.html" if share else "report.html")
    clean = _shareable(run, tuple(words)) if share else None
    write(path, fitted(run, task, screenshots=screenshots and not share, most=most, clean=clean))
    return path


def _shareable(run: RunFolder, words: tuple[str, ...]) -> Callable[[Report], Report]:
    """Return the function that makes a report fit to be shared. Known secrets, which runs of earlier versions may hold, are removed."""
    scrubber = Scrubber(known_secrets(run.manifest.tasks, load_recorded(run.path)))
    return lambda report: redacted(scrubbed(report, scrubber), words)


def fitted(
    run: RunFolder, task: Task, *, screenshots: bool = True, most: float | None = None, clean: Callable[[Report], Report] | None = None
) -> str:
    """Return a report's page that fits into `most` megabytes, if a limit is given.

    Raises UsageError if even a page without pictures is larger.
    """

    def built(pictures: int, texts: int) -> str:
        found = report(run, task, screenshots=screenshots and pictures > 0, room=(pictures, texts))
        return page(clean(found) if clean is not None else found)

    if most is None:
        return built(PICTURES, TEXTS)
    room = int(most * MEGABYTE)
    bare = len(built(0, 1).encode())
    left = room - bare
    if left < 0:
        raise UsageError(
            f"--max-size {most:g}: the report of {task.id} takes {bare / MEGABYTE:.2f} MB even without pictures and long texts"
        )
    texts = min(TEXTS, left // 4 if screenshots else left)
    text = built(min(PICTURES, (left - texts) * 9 // 10), texts * 9 // 10)
    return text if len(text.encode()) <= room else built(0, texts // 2)


def build_index(run: RunFolder) -> Path:
    """Write `index.html` of a run: one row a task, with links to the reports that exist."""
    path = run.path / "index.html"
    write(path, index_page(run))
    return path


def index_page(run: RunFolder, *, live: bool = False) -> str:
    """Return the text of a run's index page. `live`: links lead to the pages of the live view."""
    hrefs = [f"{number}/" for number in range(len(run.manifest.tasks))] if live else ()
    return suite_page(suite([run], hrefs=hrefs), live=live)


def build_suite(runs: Sequence[RunFolder], out: Path) -> Path:
    """Write the page of several runs. Raises UsageError for fewer than two."""
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs: name another one")
    write(out, suite_page(suite(runs, beside=out.parent)))
    return out


def write(path: Path, text: str) -> None:
    """Write a page as a whole. Raises JournalError if the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        way_out = "free some space, then `exact resume`" if no_space(error, path.parent) else "choose another output folder"
        raise JournalError(f"cannot write {path}: {error.strerror}: {way_out}") from error
