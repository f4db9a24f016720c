"""A journal and its blobs as the data of a report."""

from __future__ import annotations

from exact.config import load
from exact.report import data
from exact.report.head import head
from exact.report.nodes import lesson, nodes, remembered
from exact.report.pictures import pictures
from exact.report.reading import Reading
from exact.report.steps import outside, steps, trouble
from exact.report.text import Texts
from exact.runs.store import RunFolder
from exact.task import Task

PICTURES, TEXTS = 9_000_000, 3_000_000
"""Bytes of the page that screenshots and long texts may take together."""


def report(run: RunFolder, task: Task, *, screenshots: bool = True) -> data.Report:
    """What the journal of a task says, as far as it goes. Raises UsageError where the run's configuration does not read."""
    reading = Reading(run.task_folder(task) / "journal.jsonl", load(run.path / "config.yaml"), run.blobs)
    texts = Texts()
    tree = nodes(reading, texts)
    committed = steps(reading)
    shots = pictures((node.picture for node in tree), run.blobs, PICTURES, reading.warnings) if screenshots else {}
    oracle = any(line.oracle for line in run.results() if line.task == task.id)
    top = head(reading, task, oracle=oracle)
    return data.Report(
        head=top,
        nodes=tree,
        steps=committed,
        traces=outside(reading, tree),
        trouble=trouble(reading),
        lessons=tuple(lesson(reflected.reflection) for reflected in reading.state.reflected),
        remembered=remembered(reading, top.headline),
        texts=texts.within(TEXTS),
        pictures=shots,
    )
