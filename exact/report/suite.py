"""Attempts side by side: their rows in tables and lists, cost of success, reliability of values, and the first difference of two."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from PIL import UnidentifiedImageError

from exact.config import load_recorded
from exact.errors import ExactError, JournalError
from exact.report.model.head import broken, cause
from exact.report.model.model import thumb
from exact.report.model.reading import Move, Reading
from exact.report.model.routes import not_let_out
from exact.report.model.text import LINE, by_name, in_words, one_line
from exact.runs.journal import events as ev
from exact.runs.journal.file import stated_instruction
from exact.runs.journal.store import Blobs, ResultLine, RunFolder, lines_of
from exact.task import Task

INSTRUCTION, ANSWER = 300, 200
"""Characters of a task's text and of an answer in the table."""
PICTURES = 4_000_000
"""Bytes of a page that the small pictures of its attempts may take together."""
BINS = 5
"""Number of equal parts of [0, 1] into which own values are sorted."""


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """Attempt in the table."""

    run: str
    agent: str
    task: str
    seed: int
    ending: str
    headline: str
    """The ending in the words of a report."""
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
    """Why it ended, and the reason that the evaluator gave."""
    stopped: str = ""
    """Cause of a failure, as it was recorded."""
    way_on: str = ""
    """Way to continue, as in `Head`."""
    last: str = ""
    """Last committed action."""


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


class PairedGain(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of a run with the first one, on the tasks and seeds that both have a score for."""

    run: int
    shares: tuple[str, str]
    """Shares solved, by the first run and by this one, with their intervals."""
    gain: str
    wins: int
    losses: int
    ties: int
    unpaired: int
    mcnemar: float
    by_task: float
    """p values, as in exact/evaluation/summary.py."""
    warnings: tuple[str, ...] = ()


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Data of the page."""

    name: str
    runs: tuple[str, ...]
    rows: tuple[AttemptRow, ...]
    differences: tuple[FirstDifference, ...]
    reliability: dict[str, tuple[Bin, ...]]
    """Reliability by run."""
    pairs: tuple[tuple[int | None, int | None], ...] = ()
    """Of two runs: the rows of each task and seed, of the first run and of the second."""
    gains: tuple[PairedGain, ...] = ()
    pictures: tuple[str, ...] = ()
    """Last states of the rows, as `data:` URLs; empty if there is none."""


def suite(runs: Sequence[RunFolder], *, beside: Path | None = None, gains: Sequence[PairedGain] = ()) -> RunComparison:
    """Return the comparison of runs. `beside`: folder of the page, to which links are relative. `gains`: over the first run."""
    names = _names(runs)
    rows, readings, pictures, room = list[AttemptRow](), dict[int, Reading](), list[str](), PICTURES
    for name, run in zip(names, runs, strict=True):
        lines = {line.task: line for line in run.results()}
        for task in run.manifest.tasks:
            reading = _reading(run, task) if len(runs) > 1 else None
            if reading is not None:
                readings[len(rows)] = reading
            rows.append(attempt_row(name, run, task, lines.get(task.id), _href(run, task, beside or run.path), reading))
            pictures.append(picture if room > len(picture := last_state(run, task).picture) else "")
            room -= len(pictures[-1])
    return RunComparison(
        name=" against ".join(names),
        runs=tuple(names),
        rows=tuple(rows),
        differences=tuple(_differences(rows, readings)),
        reliability={name: _reliability([row for row in rows if row.run == name]) for name in names},
        pairs=tuple(_pairs(rows, names)) if len(names) == 2 else (),
        gains=tuple(gains),
        pictures=tuple(pictures),
    )


def _pairs(rows: Sequence[AttemptRow], names: Sequence[str]) -> Iterable[tuple[int | None, int | None]]:
    one, other = ({(row.task, row.seed): index for index, row in enumerate(rows) if row.run == name} for name in names)
    return [(one.get(key), other.get(key)) for key in dict.fromkeys([*one, *other])]


def _reading(run: RunFolder, task: Task) -> Reading | None:
    journal = run.task_folder(task) / "journal.jsonl"
    try:
        return Reading(journal, load_recorded(run.path), run.blobs) if journal.exists() else None
    except ExactError:
        return None


def attempt_row(name: str, run: RunFolder, task: Task, line: ResultLine | None, href: str, reading: Reading | None = None) -> AttemptRow:
    """Return the row of an attempt. `line`: its result, if it has one. `reading`: its journal, if the committed path is wanted."""
    journal = run.task_folder(task) / "journal.jsonl"
    row = result_row(name, task, line, href, last_state(run, task), started=journal.exists())
    return msgspec.structs.replace(
        row, agent=one_line(run.manifest.agent), path=_path(reading) if reading is not None else (),
        instruction=one_line(task.instruction or stated_instruction(journal), INSTRUCTION),
    )  # fmt: skip


def result_row(
    name: str, task: Task, line: ResultLine | None, href: str, last: LastState | None = None, *, started: bool = True
) -> AttemptRow:
    """Return the row of a result; None: of an attempt without one, which may have `started`."""
    last = last or LastState()
    bare = AttemptRow(
        run=name, agent=name, task=one_line(task.id.partition("?seed=")[0]), seed=_seed(task, line), ending=ending(line, started),
        headline=_headline(line, started, last), href=href, last=last.action,
    )  # fmt: skip
    if line is None:
        return bare
    failed, blocked = line.status == "failed", bool(last.blocked) and line.score != 1
    return msgspec.structs.replace(
        bare, score=line.score, value=line.value, steps=line.actions, transitions=line.transitions, evaluations=line.evaluations,
        calls=line.calls, tokens=line.tokens, cost=line.cost, seconds=line.seconds, drift=line.drifted, failures=line.failures,
        oracle=line.oracle, trained_with_reward=line.trained_with_reward,
        answer=None if line.answer is None else one_line(line.answer, ANSWER),
        reason=_reason(line, last), stopped=one_line(line.reason, 4 * LINE) if failed else "",
        way_on=("resume" if line.resumable else "new run") if failed else "allow" if blocked else "",
    )  # fmt: skip


def _reason(line: ResultLine, last: LastState) -> str:
    """Return the reason for the end of an attempt, as its report states it."""
    if line.status == "failed":
        return broken(line.missing) if line.began else "The start of the task was not reached."
    if line.status == "needs_user":
        return one_line(line.reason, LINE)
    ended = (last.blocked or f"{cause(line.reason)}.") if line.reason and line.score != 1 else ""
    return " ".join(filter(None, (ended, one_line(line.score_reason))))


_HEADLINES = {
    "solved": "Solved", "unsolved": "Not solved", "failed": "Failed", "did not begin": "Did not begin", "needs_user": "Needs a person",
    "stopped": "Stopped", "unfinished": "Unfinished", "not started": "Not started",
}  # fmt: skip


def _headline(line: ResultLine | None, started: bool, last: LastState) -> str:
    if line is None or line.status != "judged":
        return _HEADLINES.get(came := ending(line, started), came)
    if last.blocked:
        return "Blocked by safety"
    return "Done, unchecked" if line.answer is not None else "Ended" if line.reason == "the episode ended" else "Not finished"


class LastState(NamedTuple):
    """Where an attempt stands in its live environment."""

    action: str = ""
    """Last committed action."""
    blocked: str = ""
    """Why its write was not sent; empty if it was, or if there was none."""
    picture: str = ""
    """Last screenshot, small, as a `data:` URL."""


def last_state(run: RunFolder, task: Task) -> LastState:
    """Return the last committed action and state of an attempt, without folding its journal. A journal that does not read has none."""
    journal = run.task_folder(task) / "journal.jsonl"
    try:
        found = journal.stat()
        return _last_state(journal, run.path / "blobs", (found.st_mtime_ns, found.st_size))
    except (OSError, ExactError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return LastState()


_LIVE = (b'{"event":"reset"', b'{"event":"committed"')
_decoder = msgspec.json.Decoder(ev.Reset | ev.Committed)


@lru_cache(maxsize=4_096)
def _last_state(journal: Path, blobs: Path, _written: tuple[int, int]) -> LastState:
    store, action, blocked, before, seen, shot = Blobs(blobs), "", "", "", "", ""
    for line in lines_of(journal):
        if line.startswith(_LIVE) and line.endswith(b"\n"):
            event = _decoder.decode(line)
            if isinstance(event, ev.Committed):
                action, blocked, before = event.action, not_let_out(event), seen
            seen, shot = event.observation or seen, event.screenshot or shot
    try:
        observed = store.get_observation(before) if before else None
    except JournalError:
        observed = None
    return LastState(action=by_name(action, observed), blocked=blocked, picture=small(store, shot))


def small(blobs: Blobs, name: str) -> str:
    """Return a screenshot as a small picture, as a `data:` URL; empty if it is missing or damaged."""
    try:
        return thumb(blobs.get(name)) if name else ""
    except (JournalError, UnidentifiedImageError, OSError):
        return ""


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
