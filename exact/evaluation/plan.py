"""What a benchmark is asked to do: which agents, which tasks, at which budget."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from exact.config import Config, Limits
from exact.errors import UsageError, unknown
from exact.runs.journal.versions import CHANGES
from exact.task import Task

KINDS = tuple(field.name for field in msgspec.structs.fields(Limits))
"""What may be capped: actions, model calls, money, seconds, ..."""
MEASURED = ("money", "seconds")
"""Those that may be fractions; the others are counted."""
T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*")


class BenchSession(msgspec.Struct, frozen=True, kw_only=True):
    """One time at which attempts were made: by which code, and where."""

    versions: dict[str, str] = {}
    machine: dict[str, str] = {}
    begun: str = ""
    """Date and time, UTC."""
    agents: tuple[str, ...] = ()
    """Those that it added."""

    def since(self, before: BenchSession) -> dict[str, tuple[str, str]]:
        """What is not as in a session before: what it was and what it is, `none` where it is not told.

        Code with changes is never as before: a commit does not tell which they are.
        """
        old, new = {**before.machine, **before.versions}, {**self.machine, **self.versions}
        return {
            name: (old.get(name, "none"), new.get(name, "none"))
            for name in dict.fromkeys([*old, *new])
            if old.get(name) != new.get(name) or new[name].endswith(CHANGES)
        }


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """bench.json. Attempts are made of each task by each agent, task by task, so that what is there at any time is paired."""

    suite: str
    """The patterns asked for, as they were written; of files the names."""
    own: bool = False
    """Whether the tasks are of files of one's own, and not of a suite."""
    agents: tuple[str, ...]
    tasks: tuple[Task, ...]
    """Each with its seed; the same for all agents."""
    budget: dict[str, float] = {}
    """Caps on one task that all agents have, by kind; empty where `own_budgets`."""
    own_budgets: bool = False
    """Whether each agent has caps of its own, so that nothing here compares at equal cost."""
    reruns: int = 3
    """How often an attempt that the infrastructure ended is made again; one that hung, once of these."""
    same_task: bool = False
    """Whether agents that remember may be shown what they learned on other seeds of the same task."""
    versions: dict[str, str] = {}
    """Of the first session, as `machine` and `begun`."""
    machine: dict[str, str] = {}
    begun: str = ""
    """Date and time, UTC."""
    later: tuple[BenchSession, ...] = ()
    """The sessions in which it was gone on with."""

    @property
    def sessions(self) -> tuple[BenchSession, ...]:
        """All of them, in order."""
        return (BenchSession(versions=self.versions, machine=self.machine, begun=self.begun), *self.later)

    @property
    def pairs(self) -> list[tuple[str, Task]]:
        """Every attempt to be made, in the order of results.jsonl."""
        return [(agent, task) for task in self.tasks for agent in self.agents]

    @property
    def stated_budget(self) -> str:
        """In words, for tables."""
        if self.own_budgets:
            return "each agent its own (not equal)"
        return ", ".join(f"{amount:g} {kind}" for kind, amount in self.budget.items()) or "none"


def budget_of(words: Iterable[str]) -> dict[str, float]:
    """Caps written `actions=15`. Raises UsageError."""
    found: dict[str, float] = {}
    for word in words:
        kind, _, amount = word.partition("=")
        if kind not in KINDS:
            raise unknown("budget", kind, KINDS, where=f"--budget {word}")
        try:
            found[kind] = float(amount)
        except ValueError:
            raise UsageError(f"--budget {word}: write an amount, such as {kind}=15") from None
        if not 0 <= found[kind] < float("inf"):
            raise UsageError(f"--budget {word}: the amount is at least 0")
        if kind not in MEASURED and not found[kind].is_integer():
            raise UsageError(f"--budget {word}: {kind} are counted, so write a whole number, such as {kind}={math.ceil(found[kind])}")
    return found


def at_equal_budgets(configs: Sequence[Config], budget: Mapping[str, float], *, own: bool = False) -> tuple[list[Config], dict[str, float]]:
    """The agents with the caps that they all have, and these caps. Raises UsageError where they differ and `own` is not set."""
    caps = {kind: amount if kind in MEASURED else int(amount) for kind, amount in budget.items()}
    capped = [msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, **caps)) for config in configs]
    if own:
        return capped, {}
    for kind, told in unequal_limits([(config.name, config) for config in capped]).items():
        raise UsageError(f"limits.{kind} differs ({told}): give all agents --budget {kind}=N, or say --own-budgets")
    first = capped[0].limits
    return capped, {kind: float(getattr(first, kind)) for kind in KINDS if getattr(first, kind) is not None}


def require_equal_judges(configs: Sequence[Config]) -> None:
    """Raises UsageError where the agents' verdicts would not be asked of the same models: they would not compare."""
    for part, told in unequal_judges([(config.name, config) for config in configs]).items():
        raise UsageError(f"models.parts.{part} differs ({told}): one model judges all agents, so give each the same, with equal settings")


def unequal_limits(configs: Sequence[tuple[str, Config]]) -> dict[str, str]:
    """The caps that are not the same in all, each with what each of the named has."""
    return _unequal(
        {kind: [(name, getattr(config.limits, kind)) for name, config in configs] for kind in KINDS}, lambda cap: f"{cap:g}", "no cap"
    )


def unequal_judges(configs: Sequence[tuple[str, Config]]) -> dict[str, str]:
    """The models that verdicts are asked of and that are not the same in all, each with what each of the named has."""
    parts = dict.fromkeys(part for _, config in configs for part in config.models.judges)
    return _unequal(
        {part: [(name, config.models.judges.get(part)) for name, config in configs] for part in parts}, lambda each: each.model, "none"
    )


def _unequal(found: Mapping[str, Sequence[tuple[str, T | None]]], word: Callable[[T], str], nothing: str) -> dict[str, str]:
    return {
        what: ", ".join(f"{name} {nothing if each is None else word(each)}" for name, each in having)
        for what, having in found.items()
        if any(each != having[0][1] for _, each in having)
    }


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of agents, each that of a folder. Raises UsageError where two are alike, or one is no name."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} is no name for an agent: use letters, digits and any of . _ @ = -")
        if names.count(name) > 1:
            raise UsageError(f"two agents are named {name!r}: give one of them another `name` in its file")
    return tuple(names)
