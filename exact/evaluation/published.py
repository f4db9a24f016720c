"""Figures that others published, with where they stand. They were not run again here: other prompts, other budgets, other machines."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure."""

    suite: str
    split: str
    """Which of its tasks, and with what limit, where the source says so."""
    tasks: int
    """How many of them."""
    agent: str
    model: str
    success: float
    """In [0, 1]."""
    error: float | None
    """Standard error, where the source gives one."""
    source: str
    url: str

    @property
    def label(self) -> str:
        """For tables and plots."""
        return f"{self.agent}{f', {self.model}' if self.model else ''}"


@cache
def published() -> tuple[Published, ...]:
    """All of them."""
    text = (resources.files("exact.evaluation") / "published.json").read_bytes()
    return msgspec.json.decode(text, type=tuple[Published, ...])


def published_on(suite: str) -> tuple[Published, ...]:
    """Those on a suite, or on the one suite of patterns as Plan.suite has them: `miniwob/click-* miniwob/use-* seeds 0..4`. On no file."""
    names = {word.partition("?")[0].partition("/")[0] for word in suite.partition(" seeds ")[0].split()}
    return tuple(each for each in published() if names == {each.suite})


def published_beside(suite: str, tasks: int) -> tuple[Published, ...]:
    """Those whose share is of as many tasks of a suite as were run: a part of a suite is not held against the whole of it."""
    return tuple(each for each in published_on(suite) if each.tasks == tasks)
