"""Numbers of evaluations in the results of a search."""

from __future__ import annotations

from exact.search.base import Batched, Compared, Result, Rolled, Valued


def evaluations_in(result: Result) -> int:
    """Return the number of evaluations that the value function made for a result."""
    match result:
        case Valued() | Rolled():
            return 1
        case Compared():
            return len(result.scores)
        case Batched():
            return len(result.evaluations)
    return 0


def benchmark_scores_in(result: Result) -> int:
    """Return the number of evaluations in a result that hold the benchmark's own score."""
    match result:
        case Valued() | Rolled():
            return int(result.evaluation.informed)
        case Batched():
            return sum(each.informed for each in result.evaluations)
    return 0
