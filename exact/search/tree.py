"""The tree of a search: states, the actions tried in them, and their statistics.

Nodes and edges hold numbers, fingerprints and blob ids, never observations. Visits and Q belong to edges; evaluations belong to states. All
values lie in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import msgspec

from exact.action import Action
from exact.context import Evaluation, Proposal
from exact.errors import PartError
from exact.search.base import Fate, Need, Seldom, Selection
from exact.search.rules.halving import Phase


class SearchError(PartError):
    """Misuse of an algorithm: a value outside [0, 1], priors that do not sum to 1, a second result for one selection."""


_ORDINARY = Fate()
"""That of most edges, which are never followed and should stay small."""


@dataclass(slots=True, eq=False, repr=False)
class Edge:
    """One action in one state."""

    action: Action
    prior: float
    """P(s, a), in [0, 1]. The priors of a node sum to 1."""
    rationale: str = ""
    visits: int = 0
    """N(s, a): number of values backed up through this edge."""
    total: float = 0.0
    """Sum of the values backed up."""
    q: float = 0.0
    """Q(s, a) as the backup strategy defines it. Meaningful only if `visits` > 0."""
    in_flight: int = 0
    """Number of reservations whose path contains this edge."""
    child: Node | None = None
    """First observed outcome."""
    closed: str = ""
    """Reason why the edge is no longer selected. Empty while it is open."""
    fate: Fate = _ORDINARY
    """Storage of the fields that follow."""

    unsearched = Seldom[bool]()
    """Whether the edge was closed before it could gather visits: it changes nothing, or its state was not reached."""
    futile = Seldom[bool]()
    """Whether the edge must not be committed either: the environment refused it, or it duplicates a sibling."""
    settled = Seldom[bool]()
    """Whether the edge was closed because nothing is left to learn below. Its Q is final."""
    distance = Seldom[int]()
    """Number of actions to the best end, this one included. Only for a settled edge."""
    failures = Seldom[int]()
    """Number of failed attempts."""
    policy = Seldom[int]()
    """Index of the agent's policy that drew the action first, if actions are sampled one by one."""
    writes = Seldom[bool]()
    """Whether the policy presumes that the action changes something outside."""
    others = Seldom[tuple["Node", ...]]()
    """Further outcomes, if the environment is stochastic."""

    def __repr__(self) -> str:
        from exact.search.inspect.text import label

        return f"<Edge: {label(self)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy the edge with the tree around it, if it was followed."""
        from exact.search.inspect.export import Kinds, reduce_edge

        return reduce_edge(self, Kinds(Node, Edge))

    @property
    def value(self) -> float | None:
        """Q, or None before the first visit."""
        return self.q if self.visits else None

    @property
    def outcomes(self) -> tuple[Node, ...]:
        """All observed outcomes, the first one first."""
        return (self.child, *self.others) if self.child is not None else ()


class Edges(Sequence[Edge]):
    """Edges of a state, each made from its proposal when it is first looked at: most actions are never followed."""

    __slots__ = ("node", "priors", "proposals", "slots", "unmade")

    def __init__(self, node: Node, proposals: Sequence[Proposal], priors: Sequence[float]) -> None:
        self.node, self.proposals, self.priors = node, proposals, priors
        self.slots: list[Edge | None] = [None] * len(proposals)
        """None: nobody has looked at the edge, so that it is open and was never followed."""
        self.unmade = len(proposals)

    def __len__(self) -> int:
        return len(self.slots)

    @overload
    def __getitem__(self, index: int) -> Edge: ...
    @overload
    def __getitem__(self, index: slice) -> list[Edge]: ...
    def __getitem__(self, index: int | slice) -> Edge | list[Edge]:
        found = self.slots[index]
        if type(found) is Edge:
            return found
        if isinstance(index, slice):
            return [self[i] for i in range(len(self.slots))[index]]
        proposal = self.proposals[index]
        made = Edge(proposal.action, self.priors[index], proposal.rationale)
        if proposal.writes:
            made.writes = True
        self.slots[index] = made
        self.unmade -= 1
        if not self.unmade and self.node.edges is self:
            self.node.edges = self[:]
        return made


def touched(node: Node) -> Sequence[Edge]:
    """Return the edges of a state that were looked at, in order: only those can have been followed."""
    edges = node.edges
    return [edge for edge in edges.slots if edge is not None] if type(edges) is Edges else edges


def is_refused(edge: Edge) -> bool:
    """Return whether the environment refused the action of an edge."""
    return edge.closed.startswith("action")


MOVED = "~"
"""First character of a digest of what moved, in `Node.beyond`; the other digests are of writes."""


def written(beyond: str) -> set[str]:
    """Return the digests in `beyond` that are of writes."""
    return {digest for digest in beyond.split() if not digest.startswith(MOVED)}


def is_noop(edge: Edge) -> bool:
    """Return whether the action of an edge changed nothing that can be seen."""
    return edge.closed.startswith("no-op")


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One state, reached by one path, or by several if states are merged."""

    id: int
    parent: Node | None = None
    via: int = -1
    """Index of the edge at `parent` that leads here. -1 for the first root."""
    depth: int = 0
    """Number of actions since the start of the task."""
    fingerprint: str = ""
    observation: str = ""
    """Blob id. A terminated or unseen node uses its parent's observation."""
    screenshot: str = ""
    beyond: str = ""
    """Part of the state that an observation does not show. See Stepped."""
    terminated: bool = False
    blocked: bool = False
    """Whether a write was blocked, so that the action's effect is unknown."""
    unreached: bool = False
    """Whether the action was not tried because no environment came to the state before it."""
    evaluation: Evaluation | None = None
    """First evaluation of this state."""
    evaluations: int = 0
    """Number of evaluations, rollouts included."""
    value_sum: float = 0.0
    """Sum of the values of all evaluations."""
    arrivals: int = 0
    """Number of times the edge led to this outcome."""
    visits: int = 0
    """N(s): own backups plus the visits of the edges."""
    backups: int = 0
    """Number of backups of this state's own value."""
    edges: Sequence[Edge] = ()
    """Actions proposed in this state, not to be changed in place. The empty default is shared: most states of a tree have none."""
    expansions: int = 0
    """Number of times proposals arrived."""
    refused: bool = False
    """Whether the environment refused one of the state's actions."""
    in_flight: int = 0
    """Number of reservations whose path contains this node."""
    pending: bool = False
    """Whether an evaluation or proposals of this state are in flight."""
    failures: int = 0
    """Number of failed attempts to work on this state."""
    closed: str = ""
    """Reason why no more work is done in this state. Empty while it is open."""

    def __repr__(self) -> str:
        from exact.search.inspect.text import state_label

        return f"<Node: {state_label(self)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy the node with the tree around it."""
        from exact.search.inspect.export import Kinds, reduce_node

        return reduce_node(self, Kinds(Node, Edge))

    @property
    def value(self) -> float | None:
        """V(s): the mean of the state's evaluations, or None before the first."""
        return self.value_sum / self.evaluations if self.evaluations else None

    @property
    def mean(self) -> float | None:
        """Mean of the state's own value and all values backed up from below, or None before the first evaluation."""
        if self.value is None:
            return None
        below = [edge for edge in touched(self) if edge.visits]
        own = max(self.backups, 1)
        total = self.value * own + sum(edge.total for edge in below)
        return total / (own + sum(edge.visits for edge in below))

    @property
    def leaf(self) -> bool:
        """Leaf: a state that cannot be expanded because the episode ended or the state is unseen."""
        return self.terminated or self.blocked or self.unreached  # `unseen`, without another call: this is asked at each step down

    @property
    def unseen(self) -> bool:
        """Unseen: the action's effect is unknown. It is judged by the state before it and the action, and it does not end the episode."""
        return self.blocked or self.unreached

    @property
    def visited(self) -> bool:
        """Visited: a state with an action that has a backed-up value."""
        return any(edge.visits for edge in touched(self))

    @property
    def edge(self) -> Edge | None:
        """The edge that leads to this node."""
        return self.parent.edges[self.via] if self.parent else None

    def path(self) -> list[Edge]:
        """Return the edges from the first root to this node."""
        edges: list[Edge] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            edges.append(node.parent.edges[node.via])
            node = node.parent
        return edges[::-1]


Path = list[tuple[Node, Edge]]
"""A path down the tree: each state with the edge followed there."""


class Open(msgspec.Struct, eq=False):
    """A selection whose results have not all arrived, and its reservation."""

    selection: Selection
    path: Path
    """Path from the root at the time of selection to the node worked on. For a step, the edge to take is included."""
    target: Node | None
    """State that the remaining needs are about. None before the step's result."""
    left: list[Need]
    """Needs that have not been met yet."""
    draw: int = 0
    """Number of the evaluation of the target among those of the same state: see `Selection.draw`."""


class OutageRecord(NamedTuple):
    """An edge or node that repeated failures of models or environments closed."""

    at: Node
    """State that the work was about, or in which the action starts."""
    node: Node | None
    edge: Edge | None
    reason: str
    charged: int
    """Number of iterations that the closing counted as."""


class Tree:
    """All nodes of one task's search. `root` moves down as actions are committed; the nodes above it are history."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        self.nodes: list[Node] = []
        self.root = self.add(None, -1)
        self.iterations = 0
        """Number of backups and closed leaves so far."""
        self.allowed = 0
        """Number of iterations granted so far."""
        self.selections = 0
        """Number of selections made so far, which is the next one's id."""
        self.open: dict[int, Open] = {}
        """Open selections by id, in the order in which they were made."""
        self.resting: tuple[tuple[int, int, Node], Path, Node] | None = None
        """State in which the last descent asked for proposals with no other work open, the path to it, and the counters that show that
        nothing has changed."""
        self.states: dict[tuple[str, str, int], Node] = {}
        """Node of each merged state, by fingerprint, hidden state and depth."""
        self.low, self.high = 1.0, 0.0
        """Range of the values backed up: `low` to `high`."""
        self.stochastic = False
        """Whether equal steps may lead to different states. Each visit of an action then takes the step again, so that the shares of its
        outcomes are those of the environment."""
        self.evaluating: dict[int, int] = {}
        """Number of evaluations asked for in states that a stochastic environment reached again, by node id."""
        self.presumed = False
        """Whether equal steps are taken to lead to equal states unless they are seen not to. The first root's are tried twice then."""
        self.search_began = 0
        """Value of `iterations` when the last grant was made."""
        self.ends: list[Node] = []
        """Terminated states that were evaluated, in the order of their first evaluation."""
        self.answers: dict[str, list[Node]] = {}
        """The ends that gave an answer, grouped by answer. See rules/merge.py."""
        self.confirmed: dict[int, float] = {}
        """Values of independent evaluations of ends, by node id."""
        self.reevaluations: dict[int, list[tuple[float, float]]] = {}
        """Re-evaluations of close candidates, by node id: each value with its variance."""
        self.squares, self.repeats = 0.0, 0
        """Sum of squared deviations among evaluations of one state (`squares`), and its degrees of freedom (`repeats`)."""
        self.phase: Phase | None = None
        """Current phase of a sequential halving."""
        self.affordable: int | None = None
        """Maximum number of iterations that the remaining budget pays for. None: only `allowed` limits them."""
        self.outages: list[OutageRecord] = []
        """Edges and nodes closed by infrastructure failures and not reopened since, in order."""
        self.sampled: list[tuple[Node, int]] = []
        """Sampled actions that were not followed yet, in order of arrival: the state and the edge index."""
        self.names: dict[tuple[int, int], str] = {}
        """Actions in words, by the id of their state and their index, for those who look at the tree. Empty in a search under way."""

    def __repr__(self) -> str:
        from exact.search.inspect.text import summary

        return summary(self)

    def __str__(self) -> str:
        from exact.search.inspect.text import draw

        return draw(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy the whole tree, shallow copies too: it goes on as the original does, and neither changes the other."""
        from exact.search.inspect.export import Kinds, reduce_tree

        return reduce_tree(self, Kinds(Node, Edge))

    def _repr_html_(self) -> str:
        """Return the tree as HTML that notebooks show."""
        from exact.search.inspect.text import to_html

        return to_html(self)

    @property
    def progress(self) -> float:
        """Progress of the current search: 0 at its first iteration, 1 at its last."""
        last = self.allowed - self.search_began - 1
        return min(1.0, max(0.0, (self.iterations - self.search_began) / last)) if last > 0 else 0.0

    @property
    def noise(self) -> float:
        """Measured standard deviation of one evaluation of a state. 0 before any state was evaluated twice."""
        return math.sqrt(self.squares / self.repeats) if self.repeats else 0.0

    def add(self, parent: Node | None, via: int) -> Node:
        """Add a node below an edge, as its child or as a further outcome."""
        node = Node(len(self.nodes), parent, via, parent.depth + 1 if parent else 0)
        self.nodes.append(node)
        if parent:
            edge = parent.edges[via]
            if edge.child is None:
                edge.child = node
            else:
                edge.others += (node,)
        return node

    def walk(self, node: Node | None = None) -> Iterator[Node]:
        """Yield a node (default: the root) and every state below it once, depth first, in the order of the edges."""
        stack, known = [node or self.root], set[int]()
        while stack:
            current = stack.pop()
            if current.id in known:
                continue
            known.add(current.id)
            yield current
            stack.extend(child for edge in reversed(touched(current)) for child in reversed(edge.outcomes))
