"""The growth of a search: its figures after each iteration, and those of each action."""

from __future__ import annotations

from collections import defaultdict

from exact.report.model import data
from exact.runs.journal import events as ev
from exact.runs.journal.state import AttemptState
from exact.search.tree import Node, Path

MOST = 600
"""Maximum number of moments of a timeline: of a longer search every second, fourth, ... iteration is kept."""


class Growth:
    """Recorder of growth, called before and after the state applies each event."""

    def __init__(self) -> None:
        self.moments: list[data.TimelinePoint] = []
        self.edges: dict[tuple[int, int], list[int]] = defaultdict(list)
        """Iteration, N and 1,000 Q, repeated; by node and edge."""
        self.touched: set[int] = {0}
        """Ids of the states that changed since this set was last emptied."""
        self._path: Path = []
        self._root: Node | None = None

    def before(self, state: AttemptState, event: ev.AnyEvent) -> None:
        """Record the state to which the event will be applied."""
        self._root = state.tree.root
        work = state.tree.open.get(event.selection) if isinstance(event, ev.Told | ev.Released) else None
        self._path = list(work.path) if work is not None else []
        self._iterations = state.tree.iterations
        self.touched.update(node.id for node, _ in self._path)
        if work is not None and work.target is not None:
            self.touched.add(work.target.id)

    def after(self, state: AttemptState, event: ev.AnyEvent) -> None:
        """Record the changes."""
        tree = state.tree
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
        tree = state.tree
        self._descend(state, self._root or tree.root)
        spent: dict[str, float] = {kind: round(amount, 6) for kind, amount in state.budget.spent.items() if amount}
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
                self.edges[node.id, index] += (state.tree.iterations, edge.visits, round(1000 * edge.q))
                self.touched.add(node.id)
                self.touched.update(child.id for child in edge.outcomes)
                below += [child for child in edge.outcomes if child.id not in known]
                known.update(child.id for child in edge.outcomes)
