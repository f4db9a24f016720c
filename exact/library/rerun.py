"""Ways of earlier runs as arguments: found in a run folder, with other texts, and with the one yes to their writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from exact.config import load_recorded
from exact.environments.base import PersonQuestion
from exact.errors import JournalError, UsageError
from exact.library.run import Run
from exact.library.tasks import named
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import fold
from exact.runs.journal.store import Blobs, RunFolder
from exact.runs.secrets import known_secrets
from exact.runs.way import Way, Ways, listed, way_of, with_texts
from exact.task import Task

AnyRun = Run | Path | str
"""A run, or its folder."""


def earlier_way(run: AnyRun, task: Task, texts: Mapping[str, str]) -> tuple[Task, Way, Blobs]:
    """Return a task with the way of its attempt in an earlier run, and the blobs of that run.

    Args:
        run: The earlier run. It has the task, or only one task.
        task: The task to carry out. Texts of its goal that are replaced are those of the way.
        texts: Texts to type in place of the earlier ones, by the names of their fields.

    Raises UsageError if there is no such way, or it belongs to another goal.
    """
    folder = RunFolder.open(run.path if isinstance(run, Run) else Path(run))
    tasks, config = folder.manifest.tasks, load_recorded(folder.path)
    folder.protect(known_secrets(tasks, config))
    known = {each.id for each in tasks}
    before = named(tasks, task.id if task.id in known or len(tasks) > 1 else None)
    try:
        state = fold(config, read_journal(folder.journal_of(before)))
    except JournalError as error:
        raise UsageError(f"{folder.path} has no way: {error}") from error
    way = with_texts(way_of(state, str(folder.path), before.answer), folder.blobs, texts)
    if task.instruction and way.replaced(way.instruction) != way.replaced(task.instruction):
        raise UsageError(f"the way in {folder.path} is for another goal: {way.instruction!r}; leave out the goal, or name another run")
    return msgspec.structs.replace(task, instruction=way.replaced(task.instruction)), way, folder.blobs


def listed_writes(ways: Ways) -> list[str]:
    """Return a line for each write of some ways. Raises JournalError."""
    return [line for way, blobs in ways.values() for line in listed(way, blobs)]


def approved(ways: Ways) -> Ways:
    """Return the ways with the yes to their writes."""
    return {id: (msgspec.structs.replace(way, approved=True), blobs) for id, (way, blobs) in ways.items()}


async def approved_ways(
    run: AnyRun | None, task: Task, texts: Mapping[str, str], approve: Callable[[str, PersonQuestion], Awaitable[bool]] | None
) -> tuple[Task, Ways]:
    """Return a task as `earlier_way` does, and the way of the run if there is one, whose writes `approve` has agreed to.

    Raises UsageError also if it did not.
    """
    if run is None:
        if texts:
            raise UsageError("variables are texts of an earlier run: give it as replay")
        return task, {}
    task, way, blobs = earlier_way(run, task, texts)
    ways: Ways = {task.id: (way, blobs)}
    if not (lines := listed_writes(ways)):
        return task, ways
    asked = PersonQuestion(kind="way", text="\n".join(lines))
    if approve is None or not await approve(asked.text, asked):
        raise UsageError(f"the earlier run wrote, and nobody agreed to that again: give approve, which is asked about {'; '.join(lines)}")
    return task, approved(ways)
