"""Ask and tell: how a search algorithm talks to whoever drives it.

The driver asks what is needed, gets it from worlds and models in any order, and tells the results. The algorithm changes
nothing but the tree, does no I/O and draws no random number that is not keyed by (seed, node, index); so the tree is a fold
over the journal of asks and tells.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from exact.context import Evaluation, Proposal
from exact.search.tree import Node, Tree

Need = Literal["step", "value", "proposals"]


class Selection(msgspec.Struct, frozen=True, kw_only=True, tag="selection"):
    """Reserved work. Its needs are told in order: a step's value can only come after the step."""

    id: int
    node: int
    """The node that the work is about; for a step, the node to act in."""
    edge: int | None = None
    """For a step: index of the edge at `node`."""
    needs: tuple[Need, ...]
    k: int = 1
    """For proposals: how many distinct ones at most."""


class Wait(msgspec.Struct, frozen=True, tag="wait"):
    """All that is useful now is in flight."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The search has ended."""

    reason: str


class Stepped(msgspec.Struct, frozen=True, kw_only=True, tag="stepped", omit_defaults=True):
    """Result of a step: the child's state."""

    fingerprint: str
    """Empty when the step ended the episode."""
    terminated: bool = False
    held: bool = False
    """A write was held back: what the action leads to is unknown. Not searched below; judged by what lies before."""
    observation: str = ""
    """Blob id."""
    screenshot: str = ""
    """Blob id."""


class Valued(msgspec.Struct, frozen=True, kw_only=True, tag="valued"):
    """Result of a judgement."""

    evaluation: Evaluation


class Proposed(msgspec.Struct, frozen=True, kw_only=True, tag="proposed"):
    """Result of a proposal call."""

    proposals: tuple[Proposal, ...]


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """The work could not be done. Never a value."""

    kind: Literal["action", "drifted", "environment", "model"]
    """`action`: the environment refuses it in this state, for good. `drifted`: the state was not reached again, for good.
    The others are retried, then closed."""
    reason: str


Result = Stepped | Valued | Proposed | Failure


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
    """Indices along the path from the root: one for `replan`."""
    reason: str
    value: float | None
    """Q of the first edge when it was decided."""
    alternatives: tuple[Alternative, ...] = ()


class Algorithm(Protocol):
    """A search over one tree."""

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve the next work, or say why there is none."""
        ...

    def tell(self, tree: Tree, selection: Selection, result: Result) -> None:
        """Hand in the result of the selection's next need; a Failure ends the selection. Raises SearchError on misuse."""
        ...

    def release(self, tree: Tree, selection: Selection) -> None:
        """Give the reservation back: cancelled, or the lease was lost."""
        ...

    def forecast(self, tree: Tree, k: int) -> list[Node]:
        """The k nodes likeliest to be acted in next; changes nothing."""
        ...

    def advance(self, tree: Tree, edge: int, observed: Stepped) -> bool:
        """A real step was taken at the root. True if the subtree was kept; else the root is made anew."""
        ...

    def refuse(self, tree: Tree, edge: int, reason: str) -> None:
        """The real world refused a committed action at the root."""
        ...

    def decide(self, tree: Tree) -> Decision:
        """What to commit now. Raises SearchError if nothing can be."""
        ...
