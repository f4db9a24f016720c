"""Evaluations in a run's journals: those on the committed paths, with the benchmark's score as their outcome."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from exact.agents.roles import value_roles
from exact.calibration.measure import Prediction
from exact.config import Config, ValueConfig, load_recorded
from exact.errors import UsageError
from exact.models.open import model_for
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState, fold
from exact.runs.journal.store import RunFolder
from exact.search.tree import Node
from exact.task import Task


class Source(NamedTuple):
    """One run and its attempts."""

    folder: RunFolder
    config: Config
    judge: str
    """Name of the value function. See `value_function_name`."""
    attempts: tuple[tuple[Task, AttemptState], ...]


def open_source(folder: RunFolder) -> Source:
    """Read a run and all its started attempts. Raises UsageError or JournalError."""
    config = load_recorded(folder.path)
    paths = ((task, folder.task_folder(task) / "journal.jsonl") for task in folder.manifest.tasks)
    return Source(
        folder,
        config,
        value_function_name(config),
        tuple((task, fold(config, read_journal(path))) for task, path in paths if path.exists()),
    )


def value_function_name(config: Config) -> str:
    """Return a value function's name: its kind, its models, and the meaning of its numbers if that is not the default.

    Value functions of one name use one scale, so that their evaluations may be pooled.
    """
    models = dict.fromkeys(model_for(config.models, role).model for role in value_roles(config.value))
    return " ".join([config.value.kind, *models, *dict.fromkeys(_scales(config.value))])


def _scales(settings: ValueConfig) -> Iterator[str]:
    """Yield the settings that change the meaning of a value."""
    if settings.grades != ValueConfig().grades:
        yield f"grades {settings.grades}"
    for member in settings.members:
        yield from _scales(member)
    if settings.calibration:
        yield f"calibrated by {settings.calibration}"


def committed(source: Source) -> list[Prediction]:
    """Return a prediction for every evaluated state on the committed path of every scored attempt.

    The sample is biased: it contains only chosen states.
    """
    return list(_committed(source))


def evaluated_nodes(source: Source) -> list[tuple[Task, AttemptState, Node]]:
    """Return all evaluated states except the starts, in order. Raises UsageError if there is none."""
    found = [
        (task, state, node)
        for task, state in source.attempts
        for node in state.tree.nodes
        if node.parent is not None and node.evaluation is not None and not (node.unseen or node.evaluation.unjudged)
    ]
    if not found:
        raise UsageError(f"{source.folder.path} holds no evaluated state: was it searched with a value function?")
    return found


def _committed(source: Source) -> Iterator[Prediction]:
    for task, state in source.attempts:
        if state.scored is None:
            continue
        for id in state.path:
            node = state.tree.nodes[id]
            if node.evaluation is not None:
                yield Prediction(task.id, id, node.evaluation.value, state.scored.score.success)
