"""Validation of results before they enter a journal or a tree."""

from __future__ import annotations

import math

from exact.search.base import Batched, Compared, Proposed, Result, Rolled, Selection, Valued
from exact.search.tree import SearchError


def validate(selection: Selection, result: Result, about: int | None = None) -> None:
    """Raise SearchError for a value outside [0, 1], priors that are not a distribution, an empty list, or an action without a key.

    about: id of the node to name in the error; by default the selection's.
    """
    if isinstance(result, Proposed):
        _proposals(selection, result)
    elif isinstance(result, (Valued, Rolled)):
        value = result.evaluation.value
        if not 0.0 <= value <= 1.0:  # NaN fails too
            node = selection.node if about is None else about
            raise SearchError(f"node {node}: value {value} is outside [0, 1]: fix the value function")
    elif isinstance(result, Compared):
        _comparison(selection, result)
    elif isinstance(result, Batched):
        _batch(selection, result)


def _proposals(selection: Selection, result: Proposed) -> None:
    """Raise SearchError for proposals that are empty or whose priors are not a distribution."""
    if not result.proposals:
        raise SearchError(f"node {selection.node}: an empty list of proposals: if there is nothing to propose, tell a Failure")
    if "" in [proposal.action.key for proposal in result.proposals]:
        raise SearchError(f"node {selection.node}: a proposal's action is empty: parse it with the environment's action space")
    priors = [proposal.prior for proposal in result.proposals]
    if not abs(sum(priors) - 1.0) <= 1e-6 or min(priors) < 0:  # NaN fails too
        raise SearchError(f"node {selection.node}: priors {priors} are not a distribution: fix the policy")


def _batch(selection: Selection, result: Batched) -> None:
    """Raise SearchError unless there is one value in [0, 1] for each rival."""
    values = [evaluation.value for evaluation in result.evaluations]
    if len(values) != len(selection.rivals):
        raise SearchError(
            f"node {selection.node}: {len(values)} evaluations for {len(selection.rivals)} rivals: one for each, in their order"
        )
    if not all(0.0 <= value <= 1.0 for value in values):
        raise SearchError(f"node {selection.node}: values {values} are not all in [0, 1]: fix the value function")


def _comparison(selection: Selection, result: Compared) -> None:
    """Raise SearchError unless there is one share for each rival and they sum to 1."""
    scores = result.scores
    if len(scores) != len(selection.rivals):
        raise SearchError(f"node {selection.node}: {len(scores)} scores for {len(selection.rivals)} rivals: one for each, in their order")
    if not all(0.0 <= score <= 1.0 for score in scores) or not math.isclose(math.fsum(scores), 1.0, abs_tol=1e-6):
        raise SearchError(f"node {selection.node}: scores {scores} are not shares of votes: fix the comparison")
