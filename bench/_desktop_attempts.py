"""Attempts of bench/desktop_tasks.py at the tasks of the suite `desktop`: four arms, paired on the task, and their table."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from _desktop_way import SUITE, guided

from exact.config import BrowserConfig, parse
from exact.environments.base import EnvironmentFactory
from exact.evaluation.statistics import bootstrap, differences, rate
from exact.runs.environment_cache import EnvironmentCache
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create, reopen
from exact.task import Task

SEEDS = (11, 12, 13)
"""The first is for all arms; the others are for ReAct alone, whose attempts are short."""
ORDER = 38
"""Seed of the tasks' order, so that those done before an interruption are of all kinds."""
SEARCH = {"algorithm": "mcts", "iterations": 4, "k": 3, "depth": 1, "prefetch": 0}
LIMITS = {"actions": 12, "transitions": 60}


def arms() -> dict[str, dict[str, Any]]:
    """Return the settings of each arm by its name. Those that end in `_way` have the agent that knows the reference."""
    common = {"browser": {"screenshots": False, "sandbox": "required", "snapshots": 1024}, "limits": LIMITS, "reflection": {"kind": "none"}}
    react, rmcts = {**common, "search": {"algorithm": "react"}}, {**common, "search": SEARCH, "reflection": {"kind": "builtin"}}
    return {"react": react, "rmcts": rmcts, "react_way": react, "rmcts_way": rmcts}


@asynccontextmanager
async def environments_of(task: Task, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
    async with SUITE.environments(config) as environments:
        yield environments


async def attempt(name: str, chosen: Sequence[Task], work: Path) -> None:
    """Attempt the tasks with one arm. Results that exist are not made again, failed ones neither."""
    config, folder = parse({"name": name, **arms()[name]}), work / name
    if not (folder / "run.json").exists():
        create(folder, tuple(chosen), config)
    run, config = reopen(folder)
    done = {line.task for line in run.results()}
    left, began = [task for task in chosen if task.id not in done], time.monotonic()
    async with (
        EnvironmentCache(lambda task: "desktop", lambda task: environments_of(task, config.browser)) as environments,
        Runner(
            folder=run, config=config, open_environments=environments, build_agent=guided if name.endswith("_way") else None
        ).session() as once,
    ):
        for number, task in enumerate(left, 1):
            run.add_result(line := await once(task))
            print(f"{name} {number} of {len(left)} {time.monotonic() - began:.0f} s: {task.id} {line.status} {line.score}", flush=True)


def compared(lines: Mapping[str, Sequence[ResultLine]]) -> list[list[str]]:
    """Return a row for each arm: attempts, failures, success, and what R-MCTS gains over ReAct on the same tasks and seeds."""
    found = []
    scores = {name: {line.task: line.score for line in some if line.score is not None} for name, some in lines.items()}
    for name, some in lines.items():
        by_task: dict[str, list[float]] = {}
        for id, score in scores[name].items():
            by_task.setdefault(task_of(id), []).append(score)
        base = scores.get(name.replace("rmcts", "react"), {}) if name.startswith("rmcts") else {}
        gains = differences(scores[name], base, {id: task_of(id) for id in scores[name]})
        wins, losses = (sum(each * sign > 0 for values in gains.values() for each in values) for sign in (1, -1))
        count, failed = max(1, len(some)), sum(line.status == "failed" for line in some)
        found.append([
            name, str(len(some)), str(failed), str(sum(line.failures for line in some)), str(rate(by_task)),
            f"{bootstrap(gains)}, {wins} : {losses}" if gains else "",
            f"{sum(line.actions for line in some) / count:.1f}", f"{sum(line.transitions for line in some) / count:.1f}",
            f"{sum(line.seconds for line in some) / count:.0f}",
        ])  # fmt: skip
    return found


def task_of(id: str) -> str:
    """Return the task of an attempt, without its seed."""
    return id.partition("?")[0]
