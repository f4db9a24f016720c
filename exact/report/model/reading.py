"""A journal read for a report: the state that it folds to, and its events with their place, time and order.

The growth of a search: its figures after each iteration, and those of each action.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from exact.config import Config
from exact.errors import ExactError, JournalError
from exact.observation import Observation
from exact.report.model import data
from exact.report.model.text import LABEL, one_line
from exact.runs.journal import events as ev
from exact.runs.journal.file import Tail
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs
from exact.search.base import Batched, Compared, Diverged, Failure, Proposed, Result, Rolled, Selection, Stepped, Valued
from exact.search.tree import Node
from exact.search.tree import Path as TreePath
from exact.text import counted

Move = tuple[str, int, int]
"""Move of a search in words and without times, the state in which it was made, and the iteration."""


class Reading:
    """Reader of a journal as far as it goes, and further when it has grown.

    Damage ends it with a warning, never with an error.
    """

    def __init__(self, journal: Path, config: Config, blobs: Blobs) -> None:
        self.config, self.state = config, AttemptState(config)
        self.blobs = blobs.with_marks(self.state.search.marked)
        self.warnings: list[str] = []
        self.born: dict[int, tuple[float, int]] = {0: (0.0, 0)}
        """Time and iteration at which each node first existed."""
        self.arrivals: dict[int, list[ev.Arrived]] = defaultdict(list)
        self.kept: list[ev.SnapshotTaken] = []
        self.prepared: list[ev.Prepared] = []
        self.calls: dict[int, list[ev.Called]] = defaultdict(list)
        self.failures: dict[int, list[ev.Failed]] = defaultdict(list)
        self.steps: list[tuple[ev.Decided, ev.Committed | None, Node]] = []
        """Decisions, each with its commit if there is one, and the node in which it was made."""
        self.paid: list[float] = []
        """US dollars spent before each decision."""
        self.stood: dict[int, int] = {}
        """Number of iterations before a committed step led to a state, by its id."""
        self.rebuilt: list[ev.Rebuilt] = []
        self.reset: ev.Reset | None = None
        self.resumed = 0
        self.foreseen: dict[tuple[int, int], int] = {}
        """First state that an action led to while searching, by (node, edge)."""
        self.reached: dict[tuple[int, int], ev.Arrived] = {}
        """Arrival at the state in which an action was first taken, by (node, edge)."""
        self.growth = Growth()
        self.moves: list[Move] = []
        """Asks, tells and commits in order: equal searches have equal moves."""
        self.commands: dict[int, list[ev.Commanded]] = defaultdict(list)
        """Commands of viewers by the state that they concern; -1: the attempt."""
        self.people: list[ev.Commanded | ev.PersonAsked | ev.PersonAnswered] = []
        """Questions to people, their answers and their commands, in order."""
        self._used: set[int] = set()
        """Selections whose result the search used."""
        self._seen: dict[str, Observation | None] = {}
        self._tail, self._broken = Tail(journal), False
        self.more()
        if self._tail.torn and not self._broken:
            self.warnings.append("The journal's last line is torn; it is left out.")

    def more(self) -> int:
        """Read the events written since the last call. Return their number."""
        taken = 0
        try:
            for event in () if self._broken else self._tail.new():
                self._take(event)
                taken += 1
        except (ExactError, LookupError, AssertionError) as error:
            self._broken = True
            self.warnings.append(f"The journal could not be followed to its end: {error or type(error).__name__}")
        return taken

    def used(self, selection: int) -> bool:
        """Return whether the search used a result of this work, may still use one, or did not order the work."""
        return selection < 0 or selection in self._used or selection in self.state.search.tree.open

    def _take(self, event: ev.AnyEvent) -> None:
        root, known = self.state.search.tree.root, len(self.state.search.tree.nodes)
        self.growth.before(self.state, event)
        self.state.replay(event)
        self.growth.after(self.state, event)
        if (words := _move(event)) is not None:
            self.moves.append((*words, self.state.search.tree.iterations))
        for node in self.state.search.tree.nodes[known:]:
            self.born[node.id] = event.t, self.state.search.tree.iterations
            self.growth.touched.add(node.id)
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
                self.paid.append(self.state.spending.task.spent.get("money", 0.0))
            case ev.Committed():
                self.steps[-1] = (*self.steps[-1][:1], event, root)
                self.stood.setdefault(self.state.search.tree.root.id, self.state.search.tree.iterations)
            case ev.Rebuilt():
                self.rebuilt.append(event)
            case ev.Reset():
                self.reset = event
            case _:
                self._note(event)

    def _note(self, event: ev.AnyEvent) -> None:
        """Count an event that only counts."""
        match event:
            case ev.Told() if not isinstance(event.result, Failure):
                self._used.add(event.selection)
            case ev.Commanded():
                self.commands[event.node].append(event)
                self.people.append(event)
            case ev.PersonAsked() | ev.PersonAnswered():
                self.people.append(event)
            case ev.Marked():
                self._seen.pop(event.observation, None)
                self.growth.touched.add(event.node)
            case ev.SnapshotTaken():
                self.kept.append(event)
            case ev.Prepared():
                self.prepared.append(event)
            case ev.Resumed():
                self.resumed += 1
            case ev.Finished(stretched=factor) if factor > 1:
                self.warnings.append(f"The machine was busy: limits of time for pages and servers were {factor:g} times as long.")

    def seen(self, node: Node | None) -> Observation | None:
        """Return the observation of a state; None if it was not recorded, or, with a warning, if its blob is gone."""
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
        """Return the node that represents this one.

        It is the real end if the search foresaw an end, or did not see the result of an action that was then committed.
        """
        now = node.edge.child if node.edge is not None else None
        return now if now is not None and (node.unseen or (node.terminated and now.terminated)) else node

    def child(self, step: ev.Committed | None, root: Node) -> Node | None:
        """Return the state that a committed step led to."""
        return None if step is None or step.refused else root.edges[step.edge].child


def _move(event: ev.AnyEvent) -> tuple[str, int] | None:
    """Return the kind of search move that an event is, and its state; None for a fact."""
    match event:
        case ev.Asked(answer=Selection() as asked):
            edge = "" if asked.edge is None else f" by action {asked.edge}"
            return f"asked for {' and '.join(asked.needs)} in state {asked.node}{edge}", asked.node
        case ev.Told():
            return _result(event.result), event.result.node if isinstance(event.result, Diverged) else -1
        case ev.Commanded():
            return f"received the command to {event.command}", event.node
        case ev.Decided():
            return f"decided for {one_line(event.action, LABEL)}: {event.decision.reason}", -1
        case ev.Committed():
            return f"committed {one_line(event.action, LABEL)}{', which was refused' if event.refused else ''}", -1
        case ev.Ended():
            return f"ended: {event.reason}", -1
    return None


def _result(result: Result) -> str:
    match result:
        case Valued():
            return f"received a value of {result.evaluation.value:.3f}"
        case Stepped():
            if result.unreached:
                return "was not tried, because its state was not reached"
            return (
                f"came to {'an end' if result.terminated else 'a blocked write' if result.blocked else f'a state {result.fingerprint[:8]}'}"
            )
        case Proposed():
            return "received the proposals " + ", ".join(f"{one_line(p.action.key, 60)} ({p.prior:.2f})" for p in result.proposals)
        case Failure():
            return f"failed ({result.kind}): {one_line(result.reason)}"
        case Batched():
            return "received values of " + ", ".join(f"{each.value:.3f}" for each in result.evaluations)
        case Compared():
            return "compared " + ", ".join(f"{score:.3f}" for score in result.scores)
        case Rolled():
            return f"received a value of {result.evaluation.value:.3f} from a rollout of {counted(result.steps, 'step')}"
        case Diverged():
            return f"arrived at another state than state {result.node}"


MOST = 600
"""Maximum number of moments of a timeline: of a longer search every second, fourth, ... iteration is kept."""


class Growth:
    """Recorder of growth, called before and after the state applies each event."""

    def __init__(self) -> None:
        self.moments: list[data.TimelinePoint] = []
        self.edges: dict[tuple[int, int], list[int]] = defaultdict(list)
        """Iteration, N and 10,000 Q, repeated; by node and edge."""
        self.touched: set[int] = {0}
        """Ids of the states that changed since this set was last emptied."""
        self._path: TreePath = []
        self._root: Node | None = None

    def before(self, state: AttemptState, event: ev.AnyEvent) -> None:
        """Record the state to which the event will be applied."""
        self._root = state.search.tree.root
        work = state.search.tree.open.get(event.selection) if isinstance(event, ev.Told | ev.Released) else None
        self._path = list(work.path) if work is not None else []
        self._iterations = state.search.tree.iterations
        self.touched.update(node.id for node, _ in self._path)
        if work is not None and work.target is not None:
            self.touched.add(work.target.id)

    def after(self, state: AttemptState, event: ev.AnyEvent) -> None:
        """Record the changes."""
        tree = state.search.tree
        if isinstance(event, ev.Asked) and (work := tree.open.get(getattr(event.answer, "id", -1))) is not None:
            self.touched.update(node.id for node, _ in work.path)
        if (node := getattr(event, "node", None)) is not None and 0 <= node < len(tree.nodes):
            self.touched.add(node)
        if tree.root is not self._root:
            self.touched.update(range(len(tree.nodes)))
        if isinstance(event, ev.Committed):
            self._mark(event)
        if tree.iterations != self._iterations:
            self._grown(state, event.t)

    def timeline(self) -> tuple[data.TimelinePoint, ...]:
        """Return the moments, thinned out evenly if there are many; those before a commit and the last one are kept."""
        stride = 1
        while len(self.moments) > MOST * stride:
            stride *= 2
        last = len(self.moments) - 1
        return tuple(moment for i, moment in enumerate(self.moments) if i % stride == 0 or i == last or moment.step is not None)

    def _mark(self, event: ev.Committed) -> None:
        if self.moments:
            moment = self.moments[-1]
            self.moments[-1] = data.TimelinePoint(
                t=moment.t, iteration=moment.iteration, root=moment.root, nodes=moment.nodes, spent=moment.spent, edges=moment.edges,
                step=event.step + 1,
            )  # fmt: skip

    def _grown(self, state: AttemptState, t: float) -> None:
        tree = state.search.tree
        self._descend(state, self._root or tree.root)
        spent: dict[str, float] = {kind: round(amount, 6) for kind, amount in state.spending.task.spent.items() if amount}
        edges = tuple((i, edge.visits, round(edge.q, 3)) for i, edge in enumerate(tree.root.edges) if edge.visits)
        self.moments.append(
            data.TimelinePoint(
                t=t,
                iteration=tree.iterations,
                root=tree.root.id,
                nodes=len(tree.nodes),
                spent={**spent, "seconds": round(t, 3)},
                edges=edges,
            )
        )

    def _descend(self, state: AttemptState, root: Node) -> None:
        """Record the actions whose visits changed: each lies below another one, or at the root."""
        below, known = [root], {root.id}
        while below:
            node = below.pop()
            for index, edge in enumerate(node.edges):
                grew = self.edges.get((node.id, index))
                if edge.visits == (grew[-2] if grew else 0):
                    continue
                self.edges[node.id, index] += (state.search.tree.iterations, edge.visits, round(10_000 * edge.q))
                self.touched.add(node.id)
                self.touched.update(child.id for child in edge.outcomes)
                below += [child for child in edge.outcomes if child.id not in known]
                known.update(child.id for child in edge.outcomes)
