"""Filters of attempts and records: outcome, length, backtracking, caps by site, and tasks that a test keeps for itself."""

from __future__ import annotations

import fnmatch
from collections import Counter
from pathlib import Path
from typing import Literal

import msgspec

from exact.errors import UsageError
from exact.learning.attempts import JournaledAttempt
from exact.learning.records import CONVERSATIONS, Kind, TrainingRecord
from exact.untrusted import read_bounded

_MOST_BYTES = 64 << 20
"""Bytes of the largest list of tasks."""


Outcome = Literal["solved", "failed", "any"]


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of the attempts and records to export."""

    outcome: Outcome = "any"
    """Attempts by the benchmark's score. `failed` are scored attempts that did not succeed."""
    min_steps: int = 0
    """Fewest committed actions of an attempt."""
    max_steps: int | None = None
    """Most answers of a conversation."""
    max_tokens: int | None = None
    """Most tokens of a record, by an estimate."""
    max_backtracking: float = 1.0
    """Highest share of answers that step back or start again, in [0, 1]."""
    per_site: int | None = None
    """Most attempts of one site; the first ones stay."""
    excluded: tuple[str, ...] = ()
    """Tasks that are left out: see `test_tasks`."""

    def of_attempt(self, attempt: JournaledAttempt, kind: Kind, sites: Counter[str]) -> str:
        """Return the reason if an attempt is left out; empty if it is not. `sites` counts the exported attempts of each site."""
        score, state = attempt.score, attempt.state
        if not state.live.started:
            return "not begun"
        if self.excluded and is_test_task(attempt, self.excluded):
            return "a test's task"
        if self.outcome == "solved" and not (score and score.success):
            return "not solved" if score else "not scored"
        if self.outcome == "failed" and (score is None or score.success):
            return "solved" if score else "not scored"
        if state.people.touched:
            return "a person took part"
        if kind in CONVERSATIONS and (state.live.ended is None or attempt.damage):
            return "damaged" if attempt.damage else "still running" if attempt.is_running else "not ended"
        if len(state.live.carried_out) < self.min_steps:
            return "too few steps"
        if self.per_site is not None and sites[attempt.site] >= self.per_site:
            return "enough of its site"
        return ""

    def of_record(self, record: TrainingRecord, tokens: int) -> str:
        """Return the reason if a record is left out; empty if it is not."""
        if self.max_steps is not None and record.steps > self.max_steps:
            return "too many steps"
        if self.max_tokens is not None and tokens > self.max_tokens:
            return "too many tokens"
        if record.back > self.max_backtracking * record.steps:
            return "too much backtracking"
        return ""


def test_tasks(path: Path) -> tuple[str, ...]:
    """Return the lines of a list of a test's tasks, without comments and empty lines.

    A line is a task id, with or without a seed; a pattern such as `miniwob/click-*`; or an instruction. Raises UsageError.
    """
    try:
        lines = read_bounded(path, _MOST_BYTES).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the list of test tasks {path} does not read: {error}") from error
    found = tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    if not found:
        raise UsageError(f"the list of test tasks {path} is empty: write one task id, pattern or instruction a line")
    return found


def is_test_task(attempt: JournaledAttempt, excluded: tuple[str, ...]) -> bool:
    """Return whether an attempt is at a task of the list: by its id, with or without its seed, or by its instruction."""
    task = attempt.task
    names = {task.id, task.id.partition("?")[0]}
    said = {_plain(task.instruction), _plain(attempt.state.live.instruction)} - {""}
    return any(any(name == each or fnmatch.fnmatchcase(name, each) for name in names) or _plain(each) in said for each in excluded)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
