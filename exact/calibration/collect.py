"""Judgements in a run's journals: those on the committed paths, with the benchmark's verdict as their outcome."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from exact.agents.roles import model_for, value_roles
from exact.calibration.measure import Prediction
from exact.config import Config, ValueConfig, load_recorded
from exact.errors import UsageError
from exact.runs.journal.file import read
from exact.runs.journal.state import State, fold
from exact.runs.journal.store import RunFolder
from exact.search.tree import Node
from exact.task import Task


class Source(NamedTuple):
    """One run as it was read."""

    folder: RunFolder
    config: Config
    judge: str
    """The value function's name: see `judge`."""
    attempts: tuple[tuple[Task, State], ...]


def open_source(folder: RunFolder) -> Source:
    """A run and all its attempts that were started. Raises UsageError, JournalError."""
    config = load_recorded(folder.path)
    paths = ((task, folder.task_folder(task) / "journal.jsonl") for task in folder.manifest.tasks)
    return Source(
        folder, config, value_function_name(config), tuple((task, fold(config, read(path))) for task, path in paths if path.exists())
    )


def value_function_name(config: Config) -> str:
    """A value function's name: its kind, the models that it asks, and what its numbers mean where that is not as ever.

    Those of one name mean the same by a value, so that their judgements may be pooled.
    """
    models = dict.fromkeys(model_for(config, role).model for role in value_roles(config.value))
    return " ".join([config.value.kind, *models, *dict.fromkeys(_scales(config.value))])


def _scales(settings: ValueConfig) -> Iterator[str]:
    if settings.grades != ValueConfig().grades:
        yield f"grades {settings.grades}"
    for member in settings.members:
        yield from _scales(member)
    if settings.calibration:
        yield f"calibrated by {settings.calibration}"


def committed(source: Source) -> list[Prediction]:
    """A judgement for every judged state on the committed path of every scored attempt. A biased sample: only what was chosen."""
    return list(_committed(source))


def evaluated_nodes(source: Source) -> list[tuple[Task, State, Node]]:
    """All judged states but the starts, in order. Raises UsageError where there is none."""
    found = [
        (task, state, node)
        for task, state in source.attempts
        for node in state.tree.nodes
        if node.parent is not None and node.evaluation is not None and not node.blocked
    ]
    if not found:
        raise UsageError(f"{source.folder.path} holds no judged state: was it searched with a value function?")
    return found


def _committed(source: Source) -> Iterator[Prediction]:
    for task, state in source.attempts:
        if state.scored is None:
            continue
        for id in state.path:
            node = state.tree.nodes[id]
            if node.evaluation is not None:
                yield Prediction(task.id, id, node.evaluation.value, state.scored.score.success)
