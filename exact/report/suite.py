"""Runs side by side: attempts as a table, cost of success, reliability of the agents' values, and first difference of two."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from exact.config import load_recorded
from exact.errors import ExactError
from exact.report.model.reading import Move, Reading
from exact.report.model.text import in_words, one_line
from exact.runs.journal.file import stated_instruction
from exact.runs.journal.store import ResultLine, RunFolder
from exact.task import Task

INSTRUCTION, ANSWER = 300, 200
"""Characters of a task's text and of an answer in the table."""
BINS = 5
"""Number of equal parts of [0, 1] into which own values are sorted."""


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """Attempt in the table."""

    run: str
    agent: str
    task: str
    seed: int
    ending: str
    href: str
    """Link to its report, relative to the page; empty if there is none."""
    score: float | None = None
    value: float | None = None
    """The agent's own evaluation."""
    steps: int | None = None
    transitions: int | None = None
    evaluations: int | None = None
    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    """US dollars; None if a price was unknown or the result is missing."""
    seconds: float | None = None
    drift: int | None = None
    failures: int | None = None
    oracle: bool = False
    trained_with_reward: bool = False
    path: tuple[str, ...] = ()
    """Committed actions in words."""
    instruction: str = ""
    """Text of the task."""
    answer: str | None = None
    """Answer of the attempt; None if it gave none."""
    reason: str = ""
    """Reason of a failure, or the evaluator's reason."""


class FirstDifference(msgspec.Struct, frozen=True, kw_only=True):
    """First point at which two attempts at one task differ."""

    one: int
    other: int
    """Index of the other row."""
    alike: int
    """Number of equal moves before it."""
    iteration: int
    words: tuple[str, str]
    """Move of each attempt."""
    nodes: tuple[int, int]
    """State of each attempt."""
    step: int | None
    """Index of the first committed action that differs; None if all are the same."""


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts whose own values lie in one part of [0, 1]."""

    said: float
    """Mean of the own values."""
    came: float
    """Mean of the scores."""
    count: int


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Data of the page."""

    name: str
    runs: tuple[str, ...]
    rows: tuple[AttemptRow, ...]
    differences: tuple[FirstDifference, ...]
    reliability: dict[str, tuple[Bin, ...]]
    """Reliability by run."""


def suite(runs: Sequence[RunFolder], *, beside: Path | None = None, hrefs: Sequence[str] = ()) -> RunComparison:
    """Return the comparison of runs. `beside`: folder of the page, to which links are relative. `hrefs`: links of one run instead."""
    names = _names(runs)
    rows, readings = list[AttemptRow](), dict[int, Reading]()
    for name, run in zip(names, runs, strict=True):
        lines = {line.task: line for line in run.results()}
        for number, task in enumerate(run.manifest.tasks):
            href = hrefs[number] if hrefs else _href(run, task, beside or run.path)
            reading = _reading(run, task) if len(runs) > 1 else None
            if reading is not None:
                readings[len(rows)] = reading
            rows.append(_row(name, run, task, lines.get(task.id), href, reading))
    return RunComparison(
        name=" against ".join(names),
        runs=tuple(names),
        rows=tuple(rows),
        differences=tuple(_differences(rows, readings)),
        reliability={name: _reliability([row for row in rows if row.run == name]) for name in names},
    )


def _reading(run: RunFolder, task: Task) -> Reading | None:
    journal = run.task_folder(task) / "journal.jsonl"
    try:
        return Reading(journal, load_recorded(run.path), run.blobs) if journal.exists() else None
    except ExactError:
        return None


def _row(name: str, run: RunFolder, task: Task, line: ResultLine | None, href: str, reading: Reading | None) -> AttemptRow:
    journal = run.task_folder(task) / "journal.jsonl"
    started = journal.exists()
    bare = AttemptRow(
        run=name, agent=one_line(run.manifest.agent), task=one_line(task.id.partition("?seed=")[0]), seed=_seed(task, line),
        ending=ending(line, started), href=href, path=_path(reading) if reading is not None else (),
        instruction=one_line(task.instruction or stated_instruction(journal), INSTRUCTION),
    )  # fmt: skip
    if line is None:
        return bare
    return msgspec.structs.replace(
        bare, score=line.score, value=line.value, steps=line.actions, transitions=line.transitions, evaluations=line.evaluations,
        calls=line.calls, tokens=line.tokens, cost=line.cost, seconds=line.seconds, drift=line.drifted, failures=line.failures,
        oracle=line.oracle, trained_with_reward=line.trained_with_reward,
        answer=None if line.answer is None else one_line(line.answer, ANSWER),
        reason=one_line(line.reason if line.status == "failed" else line.score_reason),
    )  # fmt: skip


def _seed(task: Task, line: ResultLine | None) -> int:
    written = task.id.partition("?seed=")[2]
    return int(written) if written.isdecimal() else line.seed if line is not None else 0


def ending(line: ResultLine | None, started: bool) -> str:
    """Return how an attempt ended, in a word."""
    if line is None:
        return "unfinished" if started else "not started"
    if line.status == "scored":
        return "solved" if line.score == 1 else "unsolved"
    return line.status if line.began else "did not begin"


def _href(run: RunFolder, task: Task, beside: Path) -> str:
    path = run.task_folder(task) / "report.html"
    return Path(os.path.relpath(path, beside)).as_posix() if path.exists() else ""


def _names(runs: Iterable[RunFolder]) -> list[str]:
    """Return the names of the folders; with a number if two are the same."""
    found, known = list[str](), dict[str, int]()
    for run in runs:
        name = one_line(run.path.resolve().name)
        known[name] = known.get(name, 0) + 1
        found.append(name if known[name] == 1 else f"{name} ({known[name]})")
    return found


def _path(reading: Reading) -> tuple[str, ...]:
    done = [(decided, root) for decided, committed, root in reading.steps if committed is not None]
    return tuple(in_words(root.edges[decided.decision.edges[0]].action, reading.seen(root)) for decided, root in done)


def _differences(rows: Sequence[AttemptRow], readings: dict[int, Reading]) -> Iterable[FirstDifference]:
    """Yield the differences between every two attempts at the same task and seed."""
    same: dict[tuple[str, int], list[int]] = defaultdict(list)
    for index in readings:
        same[rows[index].task, rows[index].seed].append(index)
    for indices in same.values():
        for one, other in itertools.combinations(indices, 2):
            yield difference(one, other, readings[one].moves, readings[other].moves, rows[one].path, rows[other].path)


def difference(
    one: int, other: int, left: Sequence[Move], right: Sequence[Move], path: Sequence[str], their: Sequence[str]
) -> FirstDifference:
    """Return the first move at which two attempts differ, and the first committed action."""
    pairs = itertools.zip_longest(left, right, fillvalue=("nothing more", -1, -1))
    alike, (a, b) = next(((i, pair) for i, pair in enumerate(pairs) if pair[0][0] != pair[1][0]), (len(left), (("", -1, -1), ("", -1, -1))))
    steps = (i for i, (mine, theirs) in enumerate(itertools.zip_longest(path, their)) if mine != theirs)
    return FirstDifference(
        one=one, other=other, alike=alike, iteration=max(a[2], b[2]), words=(a[0], b[0]), nodes=(a[1], b[1]), step=next(steps, None)
    )  # fmt: skip


def _reliability(rows: Iterable[AttemptRow]) -> tuple[Bin, ...]:
    """Return own values against scores, in parts of equal width; empty parts are left out."""
    parts: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        if row.value is not None and row.score is not None:
            parts[min(BINS - 1, int(row.value * BINS))].append((row.value, row.score))
    return tuple(
        Bin(said=sum(v for v, _ in part) / len(part), came=sum(s for _, s in part) / len(part), count=len(part))
        for _, part in sorted(parts.items())
    )
