"""A journal and its blobs as the data of a report."""

from __future__ import annotations

from collections.abc import Iterable

from exact.config import Config, load_recorded
from exact.observation import Box
from exact.report.model import data
from exact.report.model.head import head, people
from exact.report.model.nodes import nodes, pictures, reflection_record, remembered
from exact.report.model.reading import Reading
from exact.report.model.routes import outside, steps, trouble
from exact.report.model.text import Texts, one_line
from exact.runs.journal.spending import limits
from exact.runs.journal.store import RunFolder
from exact.task import Task

PICTURES, TEXTS = 9_000_000, 3_000_000
"""Bytes of the page that screenshots and long texts may take together, respectively."""
MARKED = 400
"""Maximum number of marked elements of one state."""


def report(
    run: RunFolder, task: Task, *, screenshots: bool = True, room: tuple[int, int] = (PICTURES, TEXTS), config: Config | None = None
) -> data.Report:
    """Return the report of a task's journal, as far as it goes.

    room: bytes of the page that screenshots and long texts may take. Raises UsageError if the run's configuration cannot be read.
    """
    config = config or load_recorded(run.path)
    reading = Reading(run.task_folder(task) / "journal.jsonl", config, run.blobs)
    texts = Texts()
    tree = nodes(reading, texts)
    shots = pictures((node.picture for node in tree), run.blobs, room[0], reading.warnings) if screenshots else {}
    committed = steps(reading)
    oracle = any(line.oracle for line in run.results() if line.task == task.id)
    top = head(reading, task, committed, oracle=oracle)
    return data.Report(
        head=top,
        nodes=tree,
        steps=committed,
        traces=outside(reading, tree),
        people=people(reading),
        trouble=trouble(reading),
        reflections=tuple(reflection_record(reflected.reflection) for reflected in reading.state.live.reflected),
        remembered=remembered(reading, top.headline),
        timeline=reading.growth.timeline(),
        limits=caps(reading),
        marks=marks(reading, tree) if shots else {},
        texts=texts.within(room[1]),
        pictures=shots,
    )


def caps(reading: Reading) -> dict[str, float]:
    """Return the limits of the task by kind."""
    found = {**limits(reading.config.limits), "seconds": reading.config.limits.seconds}
    return {kind: float(limit) for kind, limit in found.items() if limit is not None}


def marks(reading: Reading, tree: Iterable[data.TreeState]) -> dict[int, tuple[data.Mark, ...]]:
    """Return the boxes of all elements, once for each observation."""
    found: dict[int, tuple[data.Mark, ...]] = {}
    for state in tree:
        seen = reading.seen(reading.state.search.tree.nodes[state.id])
        if seen is not None and state.observation is not None and state.observation not in found:
            boxed = [_mark(element.id, element.box) for element in seen.elements[:MARKED] if element.box is not None]
            found[state.observation] = tuple(boxed)
    return {number: each for number, each in found.items() if each}


def _mark(id: str, box: Box) -> data.Mark:
    return one_line(id, 20), round(box.x), round(box.y), round(box.width), round(box.height)
