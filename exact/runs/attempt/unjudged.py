"""States whose evaluation cannot be read: they count as unjudged, so that the search goes on."""

from __future__ import annotations

from exact.context import Evaluation
from exact.errors import AnswerError, PromptRefused
from exact.search.base import Batched, Compared, Need, Result, Selection, Valued
from exact.search.tree import Node

NEUTRAL = 0.5
"""Value of an unjudged state before which no state was evaluated."""


def unjudged(need: Need, selection: Selection, parent: Node, node: Node, error: AnswerError) -> Result | None:
    """Return what counts as the result of a need for evaluations that cannot be read; None for another need.

    An unjudged state has the value of the state before it, so that it neither gains nor loses by the judge's failure. A state whose prompt
    a content filter refuses has the value 0: the policy could not go on from it either.

    Args:
        need: What was asked for.
        selection: The work that asked.
        parent: The node of the selection, whose children are the rivals.
        node: The node that the need is about.
        error: Why no answer can be read.
    """
    match need:
        case "value":
            return Valued(evaluation=_stand_in(node.parent, error))
        case "batch":
            return Batched(evaluations=tuple(_stand_in(parent, error) for _ in selection.rivals))
        case "comparison":
            return Compared(scores=tuple(1 / len(selection.rivals) for _ in selection.rivals), rationale=f"not judged: {error}")
        case _:
            return None


def _stand_in(before: Node | None, error: AnswerError) -> Evaluation:
    known = before.value if before is not None else None
    value = 0.0 if isinstance(error, PromptRefused) else NEUTRAL if known is None else known
    return Evaluation(value=value, rationale=f"not judged: {error}", unjudged=True)
