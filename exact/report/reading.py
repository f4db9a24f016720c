"""A journal read for a report: the state it folds to, and what happened where, when and in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from exact.config import Config
from exact.errors import ExactError, JournalError
from exact.observation import Observation
from exact.runs import events as ev
from exact.runs.fold import State
from exact.runs.journal import read
from exact.runs.store import Blobs
from exact.search.tree import Node


class Reading:
    """Reads as far as the journal goes; what does not read or does not follow ends it with a warning, never with an error."""

    def __init__(self, journal: Path, config: Config, blobs: Blobs) -> None:
        self.config, self.blobs = config, blobs
        self.state = State(config)
        self.warnings: list[str] = []
        self.born: dict[int, tuple[float, int]] = {0: (0.0, 0)}
        """Time and iteration at which each node was first there."""
        self.arrivals: dict[int, list[ev.Arrived]] = defaultdict(list)
        self.kept: list[ev.Kept] = []
        self.prepared: list[ev.Prepared] = []
        self.calls: dict[int, list[ev.Called]] = defaultdict(list)
        self.failures: dict[int, list[ev.Failed]] = defaultdict(list)
        self.steps: list[tuple[ev.Decided, ev.Committed | None, Node]] = []
        """Each decision, its commit if it came, and the node it was taken in."""
        self.rebuilt: list[ev.Rebuilt] = []
        self.reset: ev.Reset | None = None
        self.resumed = 0
        self.foreseen: dict[tuple[int, int], int] = {}
        """The first state that an action led to, by (node, edge): the one the search saw."""
        self.reached: dict[tuple[int, int], ev.Arrived] = {}
        """How the world had come to the state in which an action was first taken, by (node, edge)."""
        self._seen: dict[str, Observation | None] = {}
        try:
            for event in self._events(journal):
                self._take(event)
        except (ExactError, LookupError, AssertionError) as error:
            self.warnings.append(f"The journal could not be followed to its end: {error or type(error).__name__}")

    def _events(self, journal: Path) -> Iterator[ev.AnyEvent]:
        """Events up to the first that does not read."""
        yield from read(journal)
        if not journal.read_bytes().endswith(b"\n"):
            self.warnings.append("The journal's last line is torn; it is left out.")

    def _take(self, event: ev.AnyEvent) -> None:
        root, known = self.state.tree.root, len(self.state.tree.nodes)
        self.state.apply(event)
        for node in self.state.tree.nodes[known:]:
            self.born[node.id] = event.t, self.state.tree.iterations
            if node.parent is not None:
                self.foreseen.setdefault((node.parent.id, node.via), node.id)
        match event:
            case ev.Arrived():
                self.arrivals[event.node].append(event)
            case ev.Acted() if event.node in self.arrivals:
                self.reached[event.node, event.edge] = self.arrivals[event.node][-1]
            case ev.Called():
                self.calls[event.node].append(event)
            case ev.Failed():
                self.failures[event.node].append(event)
            case ev.Decided():
                self.steps.append((event, None, root))
            case ev.Committed():
                self.steps[-1] = (*self.steps[-1][:1], event, root)
            case ev.Rebuilt():
                self.rebuilt.append(event)
            case ev.Reset():
                self.reset = event
            case _:
                self._note(event)

    def _note(self, event: ev.AnyEvent) -> None:
        """What is only counted."""
        match event:
            case ev.Kept():
                self.kept.append(event)
            case ev.Prepared():
                self.prepared.append(event)
            case ev.Resumed():
                self.resumed += 1

    def seen(self, node: Node | None) -> Observation | None:
        """What a state showed; None where it showed nothing or its blob is gone, which is a warning."""
        if node is None or not node.observation:
            return None
        if node.observation not in self._seen:
            try:
                self._seen[node.observation] = self.blobs.get_observation(node.observation)
            except (JournalError, ValueError) as error:
                self.warnings.append(str(error))
                self._seen[node.observation] = None
        return self._seen[node.observation]

    def merged(self, node: Node) -> Node:
        """The node that stands for this one: the real end where the search foresaw an end, or held back what was then done."""
        now = node.edge.child if node.edge is not None else None
        return now if now is not None and (node.held or (node.terminated and now.terminated)) else node

    def child(self, step: ev.Committed | None, root: Node) -> Node | None:
        """The state that a committed step led to."""
        return None if step is None or step.refused else root.edges[step.edge].child
