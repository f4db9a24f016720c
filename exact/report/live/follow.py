"""A journal's report that grows: a whole page for a new viewer, and patches for present ones."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from PIL import UnidentifiedImageError

from exact.config import load_recorded
from exact.errors import ExactError, JournalError
from exact.report.model import data
from exact.report.model.head import head, people, standing
from exact.report.model.model import caps, coded, marks, page_of
from exact.report.model.nodes import reflection_record, remembered, state
from exact.report.model.reading import Reading
from exact.report.model.routes import steps, trouble
from exact.report.model.text import Texts, in_words, one_line
from exact.report.page import fragments, listed
from exact.report.suite import ANSWER, INSTRUCTION, AttemptRow, attempt_row, last_state, result_row, small
from exact.runs.folder_check import check_folder
from exact.runs.journal.file import is_being_written
from exact.runs.journal.store import ResultLine, RunFolder
from exact.runs.storage import is_written_elsewhere
from exact.task import Task

LONGEST = 200_000
"""Maximum length of one text in the live view, in characters."""
MOST_CANDIDATES = 20
"""Maximum number of actions that a person is offered."""
QUIET = 15.0
"""Seconds without data after which a connection gets a keep-alive comment."""
LISTED_EVERY = 0.5
"""Seconds between two looks at all attempts while somebody sees the list."""
MOST_LISTED = 100
"""Maximum number of attempts in the live list."""


def is_worked_on(run: RunFolder, journal: Path) -> bool:
    """Return whether a process works on an attempt, on this machine or on the one that a folder on storage is copied from."""
    return is_being_written(journal) or any(is_written_elsewhere(each) for each in (run.path, *run.path.parents[:2]))


class Follower:
    """Follower of one attempt. Not thread-safe.

    Each look that finds a change makes a new version; a patch leads from any earlier version to the present one.
    """

    def __init__(self, run: RunFolder, task: Task) -> None:
        self.run, self.task = run, task
        self.epoch = secrets.token_hex(4)
        """Identifier that separates this follower's versions from those of an earlier follower."""
        self.version = 0
        self.journal = run.task_folder(task) / "journal.jsonl"
        self._reading = Reading(self.journal, load_recorded(run.path), run.blobs)
        self._texts = Texts()
        self._states: dict[int, data.TreeState] = {}
        self._changed: dict[int, int] = {}
        """Version at which each state changed last, by id; includes states that are gone."""
        self._known: dict[int, tuple[int, int]] = {0: (0, 0)}
        """By version: the number of texts, and the last iteration."""
        self._pictures: dict[str, data.Picture] = {}
        self._fragments: dict[str, str] = {}
        self.running = is_worked_on(run, self.journal)
        """Whether a process worked on the attempt at the last look."""
        self._renew()

    def look(self) -> bool:
        """Read the new events since the last look. Return whether there were any, or the process that worked on it is gone or back."""
        running = is_worked_on(self.run, self.journal)
        if not self._reading.more() and running == self.running:
            return False
        self.running = running
        self._renew()
        return True

    def report(self) -> data.Report:
        """Return the whole report, for a new page."""
        reading, tree = self._reading, tuple(self._states[id] for id in sorted(self._states))
        committed = steps(reading)
        top = head(reading, self.task, committed, running=self.running)
        return data.Report(
            head=top,
            remembered=remembered(reading, top.headline),
            nodes=tree,
            steps=committed,
            people=people(reading),
            trouble=trouble(reading),
            reflections=tuple(reflection_record(reflected.reflection) for reflected in reading.state.live.reflected),
            timeline=reading.growth.timeline(),
            limits=caps(reading),
            marks=marks(reading, tree),
            texts=self._texts.since(0, LONGEST),
            pictures=self._pictures,
        )

    def patch(self, since: int) -> dict[str, Any]:
        """Return the changes after a version, as JSON data. An unknown version gets everything."""
        texts, iteration = self._known.get(since, (0, 0))
        fresh = [id for id, version in self._changed.items() if version > since]
        here = tuple(self._states[id] for id in sorted(fresh) if id in self._states)
        now = {
            "version": self.version,
            "nodes": here,
            "gone": [id for id in fresh if id not in self._states],
            "first_text": texts,
            "texts": self._texts.since(texts, LONGEST),
            "pictures": {each.picture: self._pictures[each.picture] for each in here if each.picture in self._pictures},
            "marks": marks(self._reading, here),
            "moments": [moment for moment in self._reading.growth.moments if moment.iteration >= iteration],
            "html": self._fragments,
            **self.gauges(),
        }
        found: dict[str, Any] = msgspec.to_builtins(now, str_keys=True)
        return found

    def gauges(self) -> dict[str, Any]:
        """Return the present figures of the attempt."""
        now, said = self._reading.state, [each for sent in self._reading.commands.values() for each in sent]
        return {
            "gauges": {
                "iterations": now.search.tree.iterations,
                "states": len(now.search.tree.nodes),
                "queue": len(now.search.tree.open),
                "workers": self._reading.config.search.workers,
                "environments": max((each[-1].environments for each in self._reading.arrivals.values()), default=0),
                "money": round(now.spending.task.spent.get("money", 0.0), 6),
                "calls": int(now.spending.task.spent.get("calls", 0)),
                "seconds": round(now.spending.elapsed, 1),
            },
            "standing": standing(self._reading.state),
            "questions": [{"id": each.id, **msgspec.to_builtins(each.question)} for each in now.people.questions.values()],
            "patience": self._reading.config.browser.person_seconds,
            "candidates": self._candidates(),
            "commands": [{"id": each.id, "name": each.command, "node": each.node, "refused": each.refused} for each in said[-20:]],
        }

    def row(self, name: str, href: str) -> AttemptRow:
        """Return the attempt's row in the live list."""
        reading, spending = self._reading, self._reading.state.spending
        committed = [step for step, (_, done, _) in zip(steps(reading), reading.steps, strict=True) if done is not None]
        top, now = head(reading, self.task, running=self.running), spending.task.spent
        bare, scored = result_row(name, self.task, None, href), reading.state.live.scored
        state = standing(reading.state)
        known = self.running or state == "ended"
        ending = top.ending if state == "ended" else state.partition(" ")[0] if self.running else "unfinished"
        return msgspec.structs.replace(
            bare, agent=top.agent, ending=ending, headline=top.headline if known else "Interrupted",
            instruction=one_line(top.instruction, INSTRUCTION),
            reason=top.sentence, stopped=top.stopped, way_on=top.way_on, answer=top.answer and one_line(top.answer, ANSWER),
            last=committed[-1].name if committed else "", score=scored.score.value if scored else None, seconds=spending.elapsed,
            steps=int(now.get("actions", 0)), calls=int(now.get("calls", 0)), cost=now.get("money", 0.0) if spending.cost_known else None,
        )  # fmt: skip

    @property
    def newest(self) -> str:
        """Screenshot of the state that the search reached last; of the live environment, once the attempt has ended."""
        tree = self._reading.state.search.tree
        nodes = reversed(tree.nodes) if self.running else [tree.nodes[id] for id in reversed(self._reading.state.live.path)]
        return next((node.screenshot for node in nodes if node.screenshot), "")

    def picture(self, name: str) -> tuple[bytes, str] | None:
        """Return a screenshot of this attempt as a page shows it, with its media type; None if no screenshot has that name."""
        if name not in self._pictures:
            return None
        try:
            return coded(self.run.blobs.get(name))
        except (JournalError, UnidentifiedImageError, OSError):
            return None

    def _candidates(self) -> list[dict[str, str]]:
        """Return the actions that the search considers at the present root, in the agent's notation and in words; the best one first."""
        root = self._reading.state.search.tree.root
        seen = self._reading.seen(root)
        found = sorted((edge for edge in root.edges if not edge.closed), key=lambda edge: (-edge.visits, -edge.prior))
        return [{"action": edge.action.key, "words": in_words(edge.action, seen)} for edge in found[:MOST_CANDIDATES]]

    def _renew(self) -> None:
        """Rebuild the states that changed."""
        self.version += 1
        reading = self._reading
        for id in sorted(reading.growth.touched):
            node = reading.state.search.tree.nodes[id]
            whole = reading.merged(node) is node
            if whole:
                self._states[id] = state(reading, node, self._texts)
                self._see(node.screenshot)
            elif self._states.pop(id, None) is None:
                continue
            self._changed[id] = self.version
        reading.growth.touched.clear()
        moments = reading.growth.moments
        self._known[self.version] = len(self._texts), moments[-1].iteration if moments else 0
        self._fragments = fragments(self._outline())

    def _outline(self) -> data.Report:
        """Return the data of the page's written parts."""
        reading, committed = self._reading, steps(self._reading)
        top = head(reading, self.task, committed, running=self.running)
        return data.Report(
            head=top, remembered=remembered(reading, top.headline), nodes=(), steps=committed,
            people=people(reading), trouble=trouble(reading),
            reflections=tuple(reflection_record(reflected.reflection) for reflected in reading.state.live.reflected),
            timeline=(), limits={}, marks={}, texts=(), pictures={},
        )  # fmt: skip

    def _see(self, name: str) -> None:
        """Record a screenshot's size. Browsers fetch the picture when they show it."""
        if not name or name in self._pictures:
            return
        try:
            shown = page_of(self.run.blobs.get(name))
            self._pictures[name] = data.Picture(src=f"picture/{name}", width=shown.width, height=shown.height)
        except (JournalError, UnidentifiedImageError, OSError):
            return


class Listed(NamedTuple):
    """One attempt in the live list."""

    rank: tuple[int, int, int]
    """Place in the list: those that ask a person first, then the other running ones, the ended ones, and the interrupted ones."""
    words: str
    """State, for the sum above the list."""
    html: str
    steered: str
    """The row with the parts by which a person steers the attempt; the same if it has ended."""
    steer: dict[str, Any] | None
    """Question, candidates and answered commands of a running attempt."""


class Listing:
    """The attempts of all runs, as the live list shows them. Not thread-safe."""

    def __init__(self) -> None:
        self.rows: dict[str, Listed] = {}
        """Attempts that have begun, by their place in an address, in the order of the list."""
        self.told: dict[str, str] = {}
        """A sentence about each run, by its name in an address."""
        self._followers: dict[str, Follower] = {}
        self._results: dict[Path, tuple[tuple[int, int], dict[str, ResultLine]]] = {}
        self._settled: dict[str, tuple[ResultLine, Listed]] = {}
        self._checked: set[Path] = set()

    def look(self, runs: Mapping[str, Path]) -> None:
        """Read what the runs have written since the last look. A run that does not read is named with the reason."""
        told, found = dict[str, str](), dict[str, Listed]()
        for place, (name, path) in enumerate(runs.items()):
            try:
                rows, told[name] = self._run(name, path, place, room=MOST_LISTED - len(found))
                found |= rows
            except ExactError as error:
                told[name] = one_line(str(error))
        for key in self._followers.keys() - found.keys():
            del self._followers[key]
        self.rows, self.told = dict(sorted(found.items(), key=lambda item: item[1].rank)), told

    def _run(self, name: str, path: Path, place: int, room: int) -> tuple[dict[str, Listed], str]:
        """Return the rows of a run, and a sentence about it.

        `place`: its place among the runs. `room`: maximum number of rows; all attempts that are worked on are listed beyond it too.
        """
        if path not in self._checked:
            check_folder(path)
            self._checked.add(path)
        run = RunFolder(path)
        tasks, lines = run.manifest.tasks, self._lines(run)
        begun, ended = list[int](), dict[int, ResultLine]()
        for number, task in enumerate(tasks):
            line, journal = lines.get(task.id), run.task_folder(task) / "journal.jsonl"
            if line is not None and (line.status == "scored" or not is_being_written(journal)):
                ended[number] = line
            elif journal.exists():
                begun.append(number)
        solved, rest = sum(line.score == 1 for line in ended.values()), len(tasks) - len(ended) - len(begun)
        parts = f"{solved} of {len(tasks)} solved", f"{len(begun)} begun" * bool(begun), f"{rest} not started" * bool(rest)
        found, latest = dict[str, Listed](), {id: number for number, id in enumerate(reversed(lines))}
        for number in begun:
            key = f"{name}/{number}"
            if is_worked_on(run, run.task_folder(tasks[number]) / "journal.jsonl") or key in self._followers:
                found[key] = self._open(key, name, run, tasks[number], place)
            elif len(found) < room:
                found[key] = self._left(key, name, run, tasks[number], place)
        for number in sorted(ended, key=lambda number: latest[tasks[number].id])[: max(0, room - len(found))]:
            row = self._ended(f"{name}/{number}", name, run, tasks[number], ended[number])
            found[f"{name}/{number}"] = row._replace(rank=(2, place, latest[tasks[number].id]))
        return found, ", ".join(filter(None, parts))

    def _lines(self, run: RunFolder) -> dict[str, ResultLine]:
        """Return the last result of each task, in the order in which they were written."""
        path = run.path / "results.jsonl"
        try:
            written = (found := path.stat()).st_mtime_ns, found.st_size
        except OSError:
            return {}
        if self._results.get(path, (None,))[0] != written:
            lines = dict[str, ResultLine]()
            for line in run.results():
                lines.pop(line.task, None)
                lines[line.task] = line
            self._results[path] = written, lines
        return self._results[path][1]

    def _open(self, key: str, name: str, run: RunFolder, task: Task, place: int) -> Listed:
        """Return the row of an attempt that is worked on, or was at the last look."""
        follower = self._followers.get(key)
        if follower is not None and not follower.look() and key in self.rows:
            return self.rows[key]
        if follower is None:
            follower = self._followers[key] = Follower(run, task)
        row, gauges = follower.row(name, f"/{key}/"), follower.gauges()
        may = follower.running and gauges["standing"] != "ended"
        picture = small(run.blobs, follower.newest)
        html, steered = (listed(row, picture, key, steered=each) for each in (False, may))
        rank = (1, place, task.seed) if not gauges["questions"] else (0, place, task.seed)
        return Listed(rank if may else (2, place, -1), row.headline.partition(":")[0], html, steered, gauges if may else None)

    def _left(self, key: str, name: str, run: RunFolder, task: Task, place: int) -> Listed:
        """Return the row of an attempt that was interrupted."""
        row = attempt_row(name, run, task, None, f"/{key}/")
        row = msgspec.structs.replace(row, headline="Interrupted", reason="Nothing works on it now.", way_on="resume it")
        html = listed(row, last_state(run, task).picture, key, steered=False)
        return Listed((3, place, 0), "Interrupted", html, html, None)

    def _ended(self, key: str, name: str, run: RunFolder, task: Task, line: ResultLine) -> Listed:
        known = self._settled.get(key)
        if known is None or known[0] is not line:
            row = attempt_row(name, run, task, line, f"/{key}/")
            html = listed(row, last_state(run, task).picture, key, steered=False)
            known = self._settled[key] = line, Listed((2, 0, 0), row.headline, html, html, None)
        return known[1]


def in_sum(rows: Iterable[Listed]) -> str:
    """Return the number of attempts in each state."""
    counts = Counter(row.words for row in rows)
    return " · ".join(f"{count} {words[:1].lower()}{words[1:]}" for words, count in counts.items()) or "No attempt has begun."


class ListFeed:
    """Feed of the list of attempts to all its viewers."""

    def __init__(self, runs: Callable[[], Mapping[str, Path]]) -> None:
        self.listing, self._runs = Listing(), runs
        self._lock, self._looked = asyncio.Lock(), 0.0

    async def look(self) -> None:
        """Look at all attempts, unless that was just done."""
        async with self._lock:
            if time.monotonic() - self._looked >= LISTED_EVERY * 0.9:
                await asyncio.to_thread(lambda: self.listing.look(self._runs()))
                self._looked = time.monotonic()

    def of(self, run: str) -> dict[str, Listed]:
        """Return the rows of a run; empty: of all runs."""
        return {key: row for key, row in self.listing.rows.items() if not run or key.rpartition("/")[0] == run}

    async def patches(self, run: str, *, orders: bool) -> AsyncIterator[str]:
        """Yield server-sent events: the rows that changed, their order, and how many there are in each state."""
        sent, order, said = dict[str, Listed](), list[str](), time.monotonic()
        while True:
            await self.look()
            rows = self.of(run)
            changed = [
                {"key": key, "html": row.steered if orders else row.html, "steer": row.steer if orders else None}
                for key, row in rows.items()
                if sent.get(key) != row
            ]
            if changed or list(rows) != order:
                sent, order, said = rows, list(rows), time.monotonic()
                yield f"event: rows\ndata: {json.dumps({'rows': changed, 'order': order, 'sum': in_sum(rows.values())})}\n\n"
            elif time.monotonic() - said > QUIET:
                said = time.monotonic()
                yield ": alive\n\n"
            await asyncio.sleep(LISTED_EVERY)
