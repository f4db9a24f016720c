"""Solve the tasks of the suite `desktop` in gVisor: by their references, and by agents with and without search.

References: each task is scored after nothing, after the reference of other content, and after its own. Agents: ReAct and R-MCTS, each with
the built-in agent and with one that knows the reference (`way`, see _desktop_way.py: an oracle, no result about agents), paired on the
task. An attempt that fails by the infrastructure is counted, never scored. Results in --work are not made again. Needs `shells/setup.sh
--desktop --sandbox`; a task whose application is missing is left out, and named.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import _common
from _desktop_way import guided

from exact.benchmarks.desktop import DesktopSuite
from exact.benchmarks.desktop.problem import resolved
from exact.config import BrowserConfig, parse
from exact.environments.base import Environment, EnvironmentFactory
from exact.errors import ActionError, ExactError, UsageError
from exact.runs.environment_cache import EnvironmentCache
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create, reopen
from exact.task import Outcome, Task

SUITE = DesktopSuite()
SEEDS = (11, 12)
"""The second one is for ReAct alone: its attempts are short."""
QUICK = ("desktop/multiply", "desktop/rename-file")
SEARCH = {"algorithm": "mcts", "iterations": 6, "k": 3, "depth": 1}
LIMITS = {"actions": 8, "transitions": 120}
Row = dict[str, Any]


def tasks(quick: bool, seed: int) -> list[Task]:
    """The tasks that can run here; others are named."""
    found = []
    for id in QUICK if quick else SUITE.ids():
        task = SUITE.task(f"{id}?seed={seed}")
        try:
            SUITE.check(task)
        except UsageError as error:
            print(f"left out: {error}")
        else:
            found.append(task)
    return found


async def scored(environment: Environment, task: Task, reference: Sequence[str]) -> float:
    """Carry out a reference as far as it goes, and return the score."""
    seen, done = await environment.reset(task), list[str]()
    for written in reference:
        try:
            action = environment.actions.parse(resolved(written, seen))
            seen = (await environment.step(action)).observation or seen
        except ActionError:
            break
        done.append(action.key)
    return (await environment.evaluate(Outcome(actions=tuple(done)))).value


def wrong(task: Task) -> tuple[str, ...]:
    """The reference of the nearest seed whose solution differs; that of another task where all seeds have the same."""
    own = SUITE.problem(task.id)
    for seed in range(task.seed + 1, task.seed + 30):
        other = SUITE.problem(f"{task.id.partition('?')[0]}?seed={seed}")
        if other.reference != own.reference and other.setup != own.setup:
            return other.reference
    return ("fail",) if own.reference != ("fail",) else SUITE.problem("desktop/multiply").reference


async def references(chosen: Sequence[Task], noise: _common.Noise) -> list[Row]:
    found = []
    async with (
        SUITE.environments(BrowserConfig(sandbox="required", screenshots=False)) as environments,
        environments.open(simulation=True) as environment,
    ):
        for task in chosen:
            noise.probe()
            row: Row = {"task": task.id, "nothing": None, "wrong": None, "reference": None, "fault": ""}
            began = time.perf_counter()
            try:
                row["nothing"] = await scored(environment, task, ())
                row["wrong"] = await scored(environment, task, wrong(task))
                row["reference"] = await scored(environment, task, SUITE.problem(task.id).reference)
            except ExactError as error:
                row["fault"] = f"{type(error).__name__}: {error}"[:160]
            found.append({**row, "seconds": round(time.perf_counter() - began, 1)})
            print(" ".join(map(str, found[-1].values())), flush=True)
    return found


def arms() -> dict[str, dict[str, Any]]:
    common = {"browser": {"screenshots": False, "sandbox": "required"}, "limits": LIMITS, "reflection": {"kind": "none"}}
    react, rmcts = {**common, "search": {"algorithm": "react"}}, {**common, "search": SEARCH, "reflection": {"kind": "builtin"}}
    return {"react": react, "rmcts": rmcts, "react_way": react, "rmcts_way": rmcts}


@asynccontextmanager
async def environments_of(task: Task, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
    async with SUITE.environments(config) as environments:
        yield environments


async def attempt(name: str, chosen: Sequence[Task], work: Path) -> list[ResultLine]:
    """Attempt the tasks with one arm."""
    config, folder = parse({"name": name, **arms()[name]}), work / name
    if not (folder / "run.json").exists():
        create(folder, tuple(chosen), config)
    run, config = reopen(folder)
    done = {line.task for line in run.results()}
    left, began = [task for task in chosen if task.id not in done], time.monotonic()
    async with (
        EnvironmentCache(lambda task: "desktop", lambda task: environments_of(task, config.browser)) as opened,
        Runner(
            folder=run, config=config, open_environments=opened, build_agent=guided if name.endswith("_way") else None
        ).session() as once,
    ):
        for number, task in enumerate(left, 1):
            run.add_result(line := await once(task))
            print(f"{name} {number} of {len(left)} {time.monotonic() - began:.0f} s: {task.id} {line.status} {line.score}", flush=True)
    return list(run.results())


def compared(lines: dict[str, list[ResultLine]]) -> list[list[str]]:
    """The paired table: successes, and wins and losses of R-MCTS against ReAct on the same tasks."""
    found = []
    for name, some in lines.items():
        scores = {line.task: line.score for line in some if line.score is not None}
        base = {line.task: line.score for line in lines[name.replace("rmcts", "react")] if line.score is not None}
        both = [task for task in scores if task in base]
        wins, losses = sum(scores[task] > base[task] for task in both), sum(scores[task] < base[task] for task in both)
        pair = f"{wins} / {losses} / {len(both) - wins - losses}" if name.startswith("rmcts") else ""
        solved = sum(score == 1 for task, score in scores.items())
        found.append([name, str(len(some)), str(solved), str(sum(each.status == "failed" for each in some)), pair,
                      f"{sum(each.transitions for each in some) / max(1, len(some)):.1f}"])  # fmt: skip
    return found


async def measured(given: argparse.Namespace, noise: _common.Noise) -> tuple[list[Row], dict[str, list[ResultLine]]]:
    rows = [] if given.part == "agents" else await references(tasks(given.quick, SEEDS[0]), noise)
    lines: dict[str, list[ResultLine]] = {}
    for name in () if given.part == "references" else arms():
        noise.probe()
        seeds = SEEDS[:1] if name.startswith("rmcts") or given.quick else SEEDS
        lines[name] = await attempt(name, [task for seed in seeds for task in tasks(given.quick, seed)], given.work)
    return rows, lines


def figures(rows: Sequence[Row], lines: dict[str, list[ResultLine]]) -> list[_common.Figure]:
    attempts = [each for some in lines.values() for each in some]
    found = []
    if rows:
        found += [
            _common.Figure("desktop_tasks_references", sum(row["reference"] == 1 for row in rows), len(rows)),
            _common.Figure(
                "desktop_tasks_unsolved_score", sum(bool(row["nothing"]) or bool(row["wrong"]) for row in rows), 0, at_least=False
            ),
        ]
    if attempts:
        found += [
            _common.Figure("desktop_tasks_attempts", len(attempts)),
            _common.Figure("desktop_tasks_failed", sum(each.status == "failed" for each in attempts), 0, at_least=False),
        ]
    return found


def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--part", choices=("references", "agents"), help="only that")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "desktop_tasks", help="where the runs lie")
    given, noise = options.parse_args(), _common.Noise()
    if given.quick:
        given.part = "references"
    rows, lines = asyncio.run(measured(given, noise))
    if rows:
        shown = ("task", "nothing", "wrong", "reference", "seconds", "fault")
        _common.table(shown, [[str(row[key]) for key in shown] for row in rows])
    table = compared(lines)
    if table:
        _common.table(("agent", "attempts", "solved", "failed", "wins / losses / ties against ReAct", "steps"), table)
    details = {"references": rows, "agents": table, "settings": arms(),
               "scores": {name: {line.task: line.score for line in some} for name, some in lines.items()}}  # fmt: skip
    _common.finish(given, figures(rows, lines), noise, _common.versions("exact-agent", "jeepney", "mss", "python-xlib"), details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
