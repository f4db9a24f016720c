"""Results that other machines send: what no attempt here could have ended with is a failure of that attempt."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec

from exact.errors import InfrastructureError
from exact.evaluation.folder import Replay
from exact.runs.journal.store import ResultLine
from exact.task import Task

T = TypeVar("T")

_STATUSES = {"scored", "judged", "failed", "stopped", "needs_user"}
_SIGNED = {"seed", "raw"}
"""Numbers of a result that may be negative."""
_MATCHES = {"same", "drifted", "refused", "failed"}


def decoded(data: bytes, type: type[T]) -> T:
    """Return what JSON says. Raises InfrastructureError where it says something else."""
    try:
        return msgspec.json.decode(data, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InfrastructureError(f"a process of Ray sent a result that does not read: {error}") from error


def checked_line(data: bytes, task: Task) -> ResultLine:
    """Return the result of an attempt at a task. Raises InfrastructureError where it is none."""
    line = decoded(data, ResultLine)
    counts = [value for name, value in msgspec.structs.asdict(line).items() if name not in _SIGNED and isinstance(value, int | float)]
    if (
        (line.task, line.seed) != (task.id, task.seed)
        or line.status not in _STATUSES
        or not all(0 <= each < math.inf for each in counts)
        or not _is_score(line.score)
        or (line.status == "scored") != (line.score is not None)
    ):
        raise _other(task)
    return line


def checked_replay(data: bytes, task: Task) -> Replay:
    """Return the replay of an attempt at a task. Raises InfrastructureError where it is none."""
    replay = decoded(data, Replay)
    if replay.task != task.id or replay.match not in _MATCHES or not _is_score(replay.score):
        raise _other(task)
    return replay


def _is_score(score: float | None) -> bool:
    return score is None or 0 <= score <= 1


def _other(task: Task) -> InfrastructureError:
    return InfrastructureError(f"a process of Ray sent something else than a result of {task.id}")
