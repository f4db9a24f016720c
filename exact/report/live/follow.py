"""A journal's report that grows: a whole page for a new viewer, and patches for present ones."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
from PIL import UnidentifiedImageError

from exact.config import load_recorded
from exact.errors import JournalError
from exact.report.model import data
from exact.report.model.head import head, people
from exact.report.model.model import caps, coded, marks, page_of
from exact.report.model.nodes import reflection_record, remembered, state
from exact.report.model.reading import Reading
from exact.report.model.routes import steps, trouble
from exact.report.model.text import Texts, in_words
from exact.report.page import fragments
from exact.runs.journal.store import RunFolder
from exact.task import Task

LONGEST = 200_000
"""Maximum length of one text in the live view, in characters."""
MOST_CANDIDATES = 20
"""Maximum number of actions that a person is offered."""


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
        self._renew()

    def look(self) -> bool:
        """Read the new events since the last look. Return whether there were any."""
        if not self._reading.more():
            return False
        self._renew()
        return True

    def report(self) -> data.Report:
        """Return the whole report, for a new page."""
        reading, tree = self._reading, tuple(self._states[id] for id in sorted(self._states))
        committed = steps(reading)
        top = head(reading, self.task, committed)
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
            "standing": self._standing(),
            "questions": [{"id": each.id, **msgspec.to_builtins(each.question)} for each in now.people.questions.values()],
            "patience": self._reading.config.browser.person_seconds,
            "candidates": self._candidates(),
            "commands": [{"id": each.id, "name": each.command, "node": each.node, "refused": each.refused} for each in said[-20:]],
        }

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

    def _standing(self) -> str:
        now = self._reading.state
        if now.finished is not None:
            return "ended"
        if now.live.ended is not None:
            return "judging"
        people = now.people
        return "stopping" if people.stopped else "paused" if people.paused else "asking a person" if people.questions else "searching"

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
        top = head(reading, self.task, committed)
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
