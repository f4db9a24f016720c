"""The ask/tell interface between a search algorithm and its driver.

The driver asks for the needed work, has environments and models do it in any order, and tells the results. The algorithm changes only the
tree, does no I/O, and keys each random draw by (seed, node, index). So the tree is a fold over the journal of asks and tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

import msgspec

from exact.context import Evaluation, Proposal

if TYPE_CHECKING:
    from exact.search.tree import Edge, Node, Tree

Need = Literal["step", "value", "proposals", "sample", "comparison", "batch", "rollout"]
"""Kinds of work that a selection can ask for.

`step`: take an action; the result is Stepped. `value`: one evaluation; Valued. `proposals`: up to k distinct actions; Proposed. `sample`:
one action drawn from the policy, possibly a known one; Proposed. `comparison`: the children of `rivals` compared with each other; Compared.
`batch`: an evaluation of each of them from one request; Batched. `rollout`: the policy's own trajectory from here, evaluated at its end;
Rolled.
"""


class Selection(msgspec.Struct, frozen=True, kw_only=True, tag="selection", gc=False, omit_defaults=True):
    """Reserved work. The step's result comes first; the other results come in any order."""

    id: int
    node: int
    """Id of the node that the work is about. For a step it is the node to act in; the other needs are then about its child."""
    edge: int | None = None
    """Index of the edge at `node` that a step takes. None without a step."""
    needs: tuple[Need, ...]
    k: int = 1
    """Maximum number of distinct proposals."""
    draw: int = 0
    """Number of evaluations, samples or rollouts of this state asked for before. Random draws are keyed by (seed, node, draw)."""
    policy: int = 0
    """Index of the agent's policy that proposals, samples and rollouts use."""
    rivals: tuple[int, ...] = ()
    """Indices of the edges at `node` whose children a comparison or a batch is about."""
    depth: int = 0
    """Maximum number of actions of a rollout."""
    again: bool = False
    """Whether the step was taken before and is taken once more: steps of the environment are stochastic, or may be."""
    together: bool = False
    """Whether the needs after the step should be requested at the same time, which saves waiting."""
    confirms: bool = False
    """Whether the evaluation must be independent of the one that it confirms."""
    reevaluates: bool = False
    """Whether the evaluation re-evaluates a close candidate of the root. Journals call this field `contests`."""


class Wait(msgspec.Struct, frozen=True, tag="wait"):
    """Answer of `ask` while all useful work is in flight."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Answer of `ask` once the search has ended."""

    reason: str


class Stepped(msgspec.Struct, frozen=True, kw_only=True, tag="stepped", gc=False, omit_defaults=True):
    """Result of a step: the child's state."""

    fingerprint: str
    """Fingerprint of the state. Empty if the step ended the episode."""
    terminated: bool = False
    blocked: bool = False
    """Whether a write was blocked, so that the action's effect is unknown. The search does not go below such a state, and evaluates the
    state before it. Journals call this field `held`."""
    unreached: bool = False
    """Whether the action was not tried because no environment reached the state in which it starts. Its effect is unknown too."""
    observation: str = ""
    """Blob id of the observation."""
    screenshot: str = ""
    """Blob id of the screenshot."""
    beyond: str = ""
    """Part of the state that an observation does not show: writes made on the way, open tabs. States merge only if it is equal too."""


class Valued(msgspec.Struct, frozen=True, kw_only=True, tag="valued", gc=False):
    """Result of an evaluation."""

    evaluation: Evaluation


class Proposed(msgspec.Struct, frozen=True, kw_only=True, tag="proposed"):
    """Result of a request for proposals or a sample."""

    proposals: tuple[Proposal, ...]


class Compared(msgspec.Struct, frozen=True, kw_only=True, tag="compared"):
    """Result of a comparison."""

    scores: tuple[float, ...]
    """Share of the votes of each rival, in the order of the rivals. Each lies in [0, 1]; they sum to 1."""
    rationale: str = ""


class Batched(msgspec.Struct, frozen=True, kw_only=True, tag="batched"):
    """Result of a batch."""

    evaluations: tuple[Evaluation, ...]
    """Evaluation of each rival, in the order of the rivals."""


class Rolled(msgspec.Struct, frozen=True, kw_only=True, tag="rolled"):
    """Result of a rollout: the evaluation of its last state."""

    evaluation: Evaluation
    steps: int
    terminated: bool = False


class Diverged(msgspec.Struct, frozen=True, kw_only=True, tag="diverged"):
    """Result of a replay that reached another state in a healthy environment: another outcome of an edge on the path.

    Ends the selection.
    """

    node: int
    """Id of the node at which the edge starts."""
    edge: int
    stepped: Stepped


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """Work that could not be done. A failure is never a value."""

    kind: Literal["action", "drifted", "environment", "model", "answer", "budget"]
    """Cause of the failure.

    `action`: the environment refuses the action in this state, permanently. `drifted`: the state could not be reached again, permanently.
    The other kinds are retried and then close the node: an environment or a model failed, a model's answer could not be parsed, or the work
    exceeded the budget of one iteration.
    """
    reason: str


Result = Stepped | Valued | Proposed | Compared | Batched | Rolled | Diverged | Failure


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of one root action at the time of the decision."""

    edge: int
    action: str
    prior: float
    visits: int
    value: float | None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The action or plan to commit."""

    edges: tuple[int, ...]
    """Edge indices along the path from the root: one for `replan`, several for `plan`."""
    reason: str
    value: float | None
    """Q of the first edge at the time of the decision."""
    alternatives: tuple[Alternative, ...] = ()


class Algorithm(Protocol):
    """A search over one tree."""

    simulates: bool
    """Whether the algorithm tries actions before one is committed. Otherwise no snapshots are taken, and no state is evaluated unless asked
    for."""

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve the next work, or return the reason if there is none."""
        ...

    def tell(self, tree: Tree, selection: Selection, result: Result) -> None:
        """Take in one result. A Failure or Diverged ends the selection. Raises SearchError on misuse."""
        ...

    def release(self, tree: Tree, selection: Selection) -> None:
        """Give a reservation back because the work was cancelled or its lease was lost."""
        ...

    def forecast(self, tree: Tree, k: int) -> list[Node]:
        """Return up to k nodes in which the next steps are most likely. Changes nothing."""
        ...

    def advance(self, tree: Tree, edge: int, observed: Stepped) -> bool:
        """Move the root along a committed action. Return whether its subtree was retained; otherwise the root is a new node.

        Open selections in a dropped subtree are released. Results that still arrive for them are late.
        """
        ...

    def refuse(self, tree: Tree, edge: int, reason: str) -> None:
        """Record that the live environment refused a committed action at the root."""
        ...

    def decide(self, tree: Tree) -> Decision:
        """Return the action or plan to commit now. Raises SearchError if no action is left."""
        ...


T = TypeVar("T")


class Fate(msgspec.Struct, frozen=True, eq=False):
    """Rare fields of an edge, retained apart to save memory. A value: edges may share one, and a change makes another."""

    unsearched: bool = False
    futile: bool = False
    settled: bool = False
    distance: int = 0
    failures: int = 0
    policy: int = 0
    writes: bool = False
    others: tuple[Node, ...] = ()


class Seldom(Generic[T]):
    """A field of an edge stored in its Fate."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, edge: Edge, owner: type | None = None) -> T:
        found: T = getattr(edge.fate, self.name)
        return found

    def __set__(self, edge: Edge, value: T) -> None:
        if value != getattr(edge.fate, self.name):
            edge.fate = msgspec.structs.replace(edge.fate, **{self.name: value})
