"""The caps on time of an attempt, by the journal's clock."""

from __future__ import annotations

from exact.errors import BudgetExceeded
from exact.runs.attempt.context import AttemptContext


def deadline(attempt: AttemptContext) -> BudgetExceeded | None:
    """Return the error of the scope, task or search, whose time runs out first; None where neither is capped.

    Its `remaining` is the number of seconds left, 0 where none are.
    """
    now, config = attempt.journal.now, attempt.config
    scopes = (("task", config.limits.seconds, now), ("search", config.search.limits.seconds, now - attempt.state.search_began))
    ends = [BudgetExceeded(scope, "seconds", limit, usage=used) for scope, limit, used in scopes if limit is not None]
    return min(ends, key=lambda each: each.remaining, default=None)


def is_past_deadline(attempt: AttemptContext) -> bool:
    """Return True where the time of the task or of the search is used up."""
    end = deadline(attempt)
    return end is not None and end.remaining <= 0
