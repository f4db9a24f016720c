"""Published figures with their sources. They were not re-run here: prompts, budgets and machines differ."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A published success rate."""

    suite: str
    split: str
    """Subset of the suite's tasks and the limits, where the source states them."""
    tasks: int
    """Number of tasks."""
    agent: str
    model: str
    success: float
    """Success rate in [0, 1]."""
    error: float | None
    """Standard error, where the source gives one."""
    source: str
    url: str

    @property
    def label(self) -> str:
        """Name of the agent and its model, for tables and plots."""
        return f"{self.agent}{f', {self.model}' if self.model else ''}"


@cache
def published() -> tuple[Published, ...]:
    """Return all published figures."""
    text = (resources.files("exact.evaluation") / "published.json").read_bytes()
    return msgspec.json.decode(text, type=tuple[Published, ...])


def published_on(suite: str) -> tuple[Published, ...]:
    """Return the figures on a suite. `suite` is as in `Plan.suite`: `miniwob/click-* miniwob/use-* seeds 0..4`; task files have none."""
    names = {word.partition("?")[0].partition("/")[0] for word in suite.partition(" seeds ")[0].split()}
    return tuple(each for each in published() if names == {each.suite})


def published_beside(suite: str, tasks: int) -> tuple[Published, ...]:
    """Return the figures on as many tasks of a suite as were run: a part of a suite is not compared with the whole of it."""
    return tuple(each for each in published_on(suite) if each.tasks == tasks)
