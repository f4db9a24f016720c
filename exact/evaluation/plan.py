"""The plan of a benchmark: its agents, tasks and budget.

Agents that a benchmark knows by name: the built-in agent, which needs no model, with each search, and controls.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from exact.config import Config, Limits, load
from exact.errors import UsageError, unknown
from exact.runs.journal.versions import CHANGES
from exact.task import Task
from exact.untrusted import read_yaml

KINDS = tuple(field.name for field in msgspec.structs.fields(Limits))
"""Kinds of cost that may be capped: actions, model calls, money, seconds, ..."""
MEASURED = ("money", "seconds")
"""Kinds that may be fractions; the others are whole numbers."""
T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*")


class BenchSession(msgspec.Struct, frozen=True, kw_only=True):
    """A period in which attempts were made, with the code and the machine that made them."""

    versions: dict[str, str] = {}
    machine: dict[str, str] = {}
    begun: str = ""
    """Date and time of the start, UTC."""
    agents: tuple[str, ...] = ()
    """Agents that the session added."""

    def since(self, before: BenchSession) -> dict[str, tuple[str, str]]:
        """Return the changes since an earlier session, by name: the old and the new value, `none` if a session does not record it.

        Code with uncommitted changes always counts as changed, because the commit does not identify them.
        """
        old, new = {**before.machine, **before.versions}, {**self.machine, **self.versions}
        return {
            name: (old.get(name, "none"), new.get(name, "none"))
            for name in dict.fromkeys([*old, *new])
            if old.get(name) != new.get(name) or new[name].endswith(CHANGES)
        }


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The content of bench.json. Every agent attempts every task, task by task, so that partial results are paired."""

    suite: str
    """Patterns of the benchmark's tasks, as written, or the names of task files."""
    own: bool = False
    """Whether the tasks come from task files and not from a suite."""
    agents: tuple[str, ...]
    tasks: tuple[Task, ...]
    """Tasks with their seeds; the same for all agents."""
    budget: dict[str, float] = {}
    """Limits on one attempt that all agents have, by kind; empty if `own_budgets`."""
    own_budgets: bool = False
    """Whether each agent has its own limits, so that agents are not compared at equal cost."""
    reruns: int = 3
    """Maximum number of reruns after an infrastructure failure, at most one of them after a hang."""
    same_task: bool = False
    """Whether agents with a memory may be shown reflections from other seeds of the same task."""
    versions: dict[str, str] = {}
    """Versions of the code in the first session; `machine` and `begun` are of that session too."""
    machine: dict[str, str] = {}
    begun: str = ""
    """Date and time of the start, UTC."""
    later: tuple[BenchSession, ...] = ()
    """Sessions that resumed the benchmark."""

    @property
    def sessions(self) -> tuple[BenchSession, ...]:
        """All sessions, in order."""
        return (BenchSession(versions=self.versions, machine=self.machine, begun=self.begun), *self.later)

    @property
    def pairs(self) -> list[tuple[str, Task]]:
        """Agent and task of every attempt, in the order of results.jsonl."""
        return [(agent, task) for task in self.tasks for agent in self.agents]

    @property
    def stated_budget(self) -> str:
        """The limits in words, for tables."""
        if self.own_budgets:
            return "each agent its own (not equal)"
        return ", ".join(f"{amount:g} {kind}" for kind, amount in self.budget.items()) or "none"


def budget_of(words: Iterable[str]) -> dict[str, float]:
    """Parse limits such as `actions=15`. Raises UsageError."""
    budget: dict[str, float] = {}
    for word in words:
        kind, _, amount = word.partition("=")
        if kind not in KINDS:
            raise unknown("budget", kind, KINDS, where=f"--budget {word}")
        try:
            budget[kind] = float(amount)
        except ValueError:
            raise UsageError(f"--budget {word}: write an amount, such as {kind}=15") from None
        if not 0 <= budget[kind] < float("inf"):
            raise UsageError(f"--budget {word}: the amount must be at least 0, such as {kind}=15")
        if kind not in MEASURED and not budget[kind].is_integer():
            raise UsageError(f"--budget {word}: {kind} are counted, so write a whole number, such as {kind}={math.ceil(budget[kind])}")
    return budget


def at_equal_budgets(configs: Sequence[Config], budget: Mapping[str, float], *, own: bool = False) -> tuple[list[Config], dict[str, float]]:
    """Apply the limits to all agents. Return the agents and their common limits, or no limits if `own`.

    Raises UsageError if the limits differ and `own` is not set.
    """
    caps = {kind: amount if kind in MEASURED else int(amount) for kind, amount in budget.items()}
    capped = [msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, **caps)) for config in configs]
    if own:
        return capped, {}
    for kind, values in unequal_limits([(config.name, config) for config in capped]).items():
        raise UsageError(f"limits.{kind} differs ({values}): give all agents --budget {kind}=N, or add --own-budgets")
    first = capped[0].limits
    return capped, {kind: float(getattr(first, kind)) for kind in KINDS if getattr(first, kind) is not None}


def require_equal_judges(configs: Sequence[Config]) -> None:
    """Raise UsageError if the evaluators of the agents would ask different models: their scores would not compare."""
    for part, values in unequal_judges([(config.name, config) for config in configs]).items():
        raise UsageError(
            f"models.parts.{part} differs ({values}): one model evaluates all agents, so give each the same, with equal settings"
        )
    if len({config.models.strict_nltk for config in configs}) > 1:
        raise UsageError("models.strict_nltk differs: one rule evaluates all agents, so give --strict-nltk, or set it for none")


def unequal_limits(configs: Sequence[tuple[str, Config]]) -> dict[str, str]:
    """Return the kinds of limits that differ, each with the value of every named configuration."""
    return _unequal(
        {kind: [(name, getattr(config.limits, kind)) for name, config in configs] for kind in KINDS}, lambda cap: f"{cap:g}", "no cap"
    )


def unequal_judges(configs: Sequence[tuple[str, Config]]) -> dict[str, str]:
    """Return the evaluator models that differ, each with the model of every named configuration."""
    parts = dict.fromkeys(part for _, config in configs for part in config.models.judges)
    return _unequal(
        {part: [(name, config.models.judges.get(part)) for name, config in configs] for part in parts}, lambda each: each.model, "none"
    )


def _unequal(values: Mapping[str, Sequence[tuple[str, T | None]]], word: Callable[[T], str], nothing: str) -> dict[str, str]:
    return {
        what: ", ".join(f"{name} {nothing if each is None else word(each)}" for name, each in by_name)
        for what, by_name in values.items()
        if any(each != by_name[0][1] for _, each in by_name)
    }


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of agents as a tuple. Raises UsageError if two are equal or one is not fit for a folder."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(f"invalid agent name {name!r}: use letters, digits and any of . _ @ = -")
        if names.count(name) > 1:
            raise UsageError(f"two agents are named {name!r}: give one of them another `name` in its file")
    return tuple(names)


_NO_REFLECTION = {"kind": "none"}
_SEARCH = {"iterations": 32, "k": 12, "c": 1.0, "backup": "max", "discount": 0.97, "revisit": "repeat"}
_LOOKAHEAD = {"iterations": 32, "k": 12, "backup": "max", "discount": 0.97}

AGENTS: Mapping[str, Mapping[str, Any]] = {
    "react": {"search": {"algorithm": "react"}, "reflection": _NO_REFLECTION},
    "best_of_n": {"search": {"algorithm": "best_of_n", **_LOOKAHEAD}, "reflection": _NO_REFLECTION},
    "best_first": {"search": {"algorithm": "best_first", **_LOOKAHEAD}, "reflection": _NO_REFLECTION},
    "tot": {"search": {"algorithm": "tot_bfs", **_LOOKAHEAD}, "reflection": _NO_REFLECTION},
    "mcts": {"search": {"algorithm": "mcts", **_SEARCH}, "reflection": _NO_REFLECTION},
    "rmcts": {"search": {"algorithm": "mcts", **_SEARCH}, "reflection": {"kind": "builtin"}},
    "random": {"search": {"algorithm": "react"}, "policy": {"kind": "random"}, "reflection": _NO_REFLECTION},
    "filter": {"search": {"algorithm": "greedy", "k": 12}, "reflection": _NO_REFLECTION},
    "constant": {"search": {"algorithm": "mcts", **_SEARCH}, "value": {"kind": "constant"}, "reflection": _NO_REFLECTION},
    "oracle": {"search": {"algorithm": "mcts", **_SEARCH}, "value": {"kind": "oracle"}, "reflection": _NO_REFLECTION},
}
"""Configurations by name.

`react`: no search. `best_of_n`: whole trajectories. `best_first`, `tot`: the searches of Koh et al. and Yao et al. `mcts`: PUCT. `rmcts`:
`mcts` with reflections.

Controls: `random`: a random action. `filter`: `react`, with each action tried and evaluated before it is committed. `constant`: `mcts` with
the same value for every state. `oracle`: `mcts` whose value function is the benchmark's evaluator.
"""


def agent_config(spec: str, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration that `spec` names: a YAML file, or a name in AGENTS. Raises UsageError for any other.

    A configuration without a `name` takes the stem of its file.
    """
    path = Path(spec)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        config = load(path, overrides)
        unnamed = "name" not in (read_yaml(path) or {})
        return msgspec.structs.replace(config, name=path.stem) if unnamed else config
    if spec not in AGENTS:
        raise unknown("agent", spec, AGENTS, way_out="(or give the path of a YAML file)")
    return load(None, [f"name={spec}", *(f"{key}={json.dumps(value)}" for key, value in AGENTS[spec].items()), *overrides])
