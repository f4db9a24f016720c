"""Ask and tell: how a search algorithm talks to whoever drives it.

The driver asks what is needed, gets it from environments and models in any order, and tells the results. The algorithm changes
nothing but the tree, does no I/O and draws no random number that is not keyed by (seed, node, index); so the tree is a fold
over the journal of asks and tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from exact.context import Evaluation, Proposal

if TYPE_CHECKING:
    from exact.search.tree import Node, Tree

Need = Literal["step", "value", "proposals", "sample", "comparison", "batch", "rollout"]
"""What can be asked for.

`step`: act, told as Stepped. `value`: one judgement, Valued. `proposals`: up to k distinct actions, Proposed. `sample`: one action
drawn from the policy, which may be one that is known, Proposed. `comparison`: the children of `rivals` against each other,
Compared. `batch`: a judgement of each of them, asked for at once, Batched. `rollout`: the policy's own way from here, judged at its
end, Rolled.
"""


class Selection(msgspec.Struct, frozen=True, kw_only=True, tag="selection", gc=False, omit_defaults=True):
    """Reserved work. A step is told first; what else is needed, in any order."""

    id: int
    node: int
    """The node that the work is about; for a step, the node to act in (what else is needed is then about its child)."""
    edge: int | None = None
    """For a step: index of the edge at `node`."""
    needs: tuple[Need, ...]
    k: int = 1
    """For proposals: how many distinct ones at most."""
    draw: int = 0
    """How many evaluations, samples or rollouts of this state were asked for before: what is random is keyed by (seed, node, draw)."""
    policy: int = 0
    """For proposals, samples and rollouts: which of the agent's policies, by index."""
    rivals: tuple[int, ...] = ()
    """For a comparison or a batch: indices of the edges at `node` whose children are compared."""
    depth: int = 0
    """For a rollout: how many actions at most."""
    together: bool = False
    """Whether what is needed after the step should be asked for at the same time, to save waiting."""
    confirms: bool = False
    """For a value: whether it must be independent of the judgement it confirms."""
    reevaluates: bool = msgspec.field(name="contests", default=False)
    """For a value: whether it is to tell the root's candidates apart, which the search's own values do not."""


class Wait(msgspec.Struct, frozen=True, tag="wait"):
    """All that is useful now is in flight."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The search has ended."""

    reason: str


class Stepped(msgspec.Struct, frozen=True, kw_only=True, tag="stepped", gc=False, omit_defaults=True):
    """Result of a step: the child's state."""

    fingerprint: str
    """Empty when the step ended the episode."""
    terminated: bool = False
    blocked: bool = msgspec.field(name="held", default=False)
    """A write was blocked: what the action leads to is unknown. Not searched below; judged by what lies before."""
    observation: str = ""
    """Blob id."""
    screenshot: str = ""
    """Blob id."""
    beyond: str = ""
    """What tells states apart that look alike: writes made on the way, open tabs. States merge only where this is equal too."""


class Valued(msgspec.Struct, frozen=True, kw_only=True, tag="valued", gc=False):
    """Result of a judgement."""

    evaluation: Evaluation


class Proposed(msgspec.Struct, frozen=True, kw_only=True, tag="proposed"):
    """Result of a proposal call."""

    proposals: tuple[Proposal, ...]


class Compared(msgspec.Struct, frozen=True, kw_only=True, tag="compared"):
    """Result of a comparison."""

    scores: tuple[float, ...]
    """One for each rival, in their order: its share of the votes, in [0, 1]; they sum to 1."""
    rationale: str = ""


class Batched(msgspec.Struct, frozen=True, kw_only=True, tag="batched"):
    """Result of a batch."""

    evaluations: tuple[Evaluation, ...]
    """One for each rival, in their order."""


class Rolled(msgspec.Struct, frozen=True, kw_only=True, tag="rolled"):
    """Result of a rollout: the judgement of where it ended."""

    evaluation: Evaluation
    steps: int
    terminated: bool = False


class Diverged(msgspec.Struct, frozen=True, kw_only=True, tag="diverged"):
    """On the way to the selection's node the environment went elsewhere, healthily: another outcome of an edge on the way. Ends the
    selection."""

    node: int
    """Where the edge starts."""
    edge: int
    stepped: Stepped


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """The work could not be done. Never a value."""

    kind: Literal["action", "drifted", "environment", "model", "answer", "budget"]
    """`action`: the environment refuses it in this state, for good. `drifted`: the state was not reached again, for good.
    The others are retried, then closed: an environment or a model failed, a model's answer could not be read, or the work took more than
    one iteration may."""
    reason: str


Result = Stepped | Valued | Proposed | Compared | Batched | Rolled | Diverged | Failure


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """How one root action stood when the decision was made."""

    edge: int
    action: str
    prior: float
    visits: int
    value: float | None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What to commit."""

    edges: tuple[int, ...]
    """Indices along the path from the root: one for `replan`, more for `plan`."""
    reason: str
    value: float | None
    """Q of the first edge when it was decided."""
    alternatives: tuple[Alternative, ...] = ()


class Algorithm(Protocol):
    """A search over one tree."""

    simulates: bool
    """Whether it tries actions before one is committed. Else nothing is kept to come back to, and no state is judged unasked."""

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve the next work, or say why there is none."""
        ...

    def tell(self, tree: Tree, selection: Selection, result: Result) -> None:
        """Hand in one result; a Failure or Diverged ends the selection. Raises SearchError on misuse."""
        ...

    def release(self, tree: Tree, selection: Selection) -> None:
        """Give the reservation back: cancelled, or the lease was lost."""
        ...

    def forecast(self, tree: Tree, k: int) -> list[Node]:
        """The k nodes likeliest to be acted in next; changes nothing."""
        ...

    def advance(self, tree: Tree, edge: int, observed: Stepped) -> bool:
        """A real step was taken at the root. True if the subtree was kept; else the root is made anew.

        Selections open in a dropped subtree are released: what still arrives for them is late.
        """
        ...

    def refuse(self, tree: Tree, edge: int, reason: str) -> None:
        """The real environment refused a committed action at the root."""
        ...

    def decide(self, tree: Tree) -> Decision:
        """What to commit now. Raises SearchError if nothing can be."""
        ...
