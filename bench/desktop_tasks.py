"""Solve the tasks of the suite `desktop` in gVisor: by their references, and by agents with and without search.

References: each task is scored after nothing, after the reference of other content, and after its own. Agents: ReAct and R-MCTS, each with
the built-in agent and with one that knows the reference (`way`, see _desktop_way.py: an oracle, no result about agents), paired on the task
and the seed; intervals are 95 percent, bootstrapped over tasks. An attempt that fails by the infrastructure is counted, never scored.
Results in --work are not made again, so an interrupted bench goes on. Needs `shells/setup.sh --desktop --sandbox`; a task whose application
is missing is left out, and named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _common
from _desktop_attempts import ORDER, SEEDS, arms, attempt, compared
from _desktop_way import SUITE

from exact.benchmarks.desktop.problem import resolved
from exact.config import BrowserConfig
from exact.environments.base import Environment
from exact.environments.desktop.factory import absent
from exact.errors import ActionError, ExactError, UsageError
from exact.runs.journal.store import ResultLine, RunFolder
from exact.task import Outcome, Task

QUICK = ("desktop/multiply", "desktop/rename-file")
SHOWN = ("agent", "attempts", "failed", "retried", "success", "gain over ReAct, wins : losses", "actions", "steps", "s")
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


async def referred(environment: Environment, task: Task) -> Row:
    """Score a task after nothing, after the reference of other content, and after its own."""
    row: Row = {"task": task.id, "nothing": None, "wrong": None, "reference": None, "fault": ""}
    began = time.perf_counter()
    try:
        row["nothing"] = await scored(environment, task, ())
        row["wrong"] = await scored(environment, task, wrong(task))
        row["reference"] = await scored(environment, task, SUITE.problem(task.id).reference)
    except ExactError as error:
        row["fault"] = f"{type(error).__name__}: {error}"[:160]
    return {**row, "seconds": round(time.perf_counter() - began, 1)}


def wrong(task: Task) -> tuple[str, ...]:
    """The reference of the nearest seed whose solution differs; that of another task where all seeds have the same."""
    own = SUITE.problem(task.id)
    for seed in range(task.seed + 1, task.seed + 30):
        other = SUITE.problem(f"{task.id.partition('?')[0]}?seed={seed}")
        if other.reference != own.reference and other.setup != own.setup:
            return other.reference
    return ("fail",) if own.reference != ("fail",) else SUITE.problem("desktop/multiply").reference


async def references(left: Sequence[Task], noise: _common.Noise, kept: Path) -> None:
    """Add the rows of the tasks that have none yet to a file."""
    async with (
        SUITE.environments(BrowserConfig(sandbox="required", screenshots=False)) as environments,
        environments.open(simulation=True) as environment,
    ):
        for task in left:
            noise.probe()
            row = await referred(environment, task)
            print(" ".join(map(str, row.values())), flush=True)
            with kept.open("a") as file:
                file.write(json.dumps(row) + "\n")


def referenced(given: argparse.Namespace, noise: _common.Noise) -> list[Row]:
    """The rows of all tasks, those of earlier calls too."""
    kept = given.work / "references.jsonl"
    kept.touch()
    done = {json.loads(line)["task"] for line in kept.read_text().splitlines()}
    if not given.show and (left := [task for task in tasks(given.quick, SEEDS[0]) if task.id not in done]):
        asyncio.run(references(left, noise, kept))
    return [json.loads(line) for line in kept.read_text().splitlines()]


def shuffled(chosen: Sequence[Task]) -> list[Task]:
    return random.Random(ORDER).sample(chosen, len(chosen))


async def attempts(given: argparse.Namespace, noise: _common.Noise) -> dict[str, list[ResultLine]]:
    """The results of all arms, those of earlier calls too."""
    lines = {}
    for name in arms():
        noise.probe()
        seeds = SEEDS if name.startswith("react") and not given.quick else SEEDS[:1]
        chosen = [task for seed in seeds for task in shuffled(tasks(given.quick, seed))]
        if not given.show and (not given.arm or name in given.arm):
            await attempt(name, chosen, given.work)
        if (given.work / name / "run.json").exists():
            lines[name] = list(RunFolder.open(given.work / name).results())
    return lines


def figures(rows: Sequence[Row], lines: dict[str, list[ResultLine]]) -> list[_common.Figure]:
    attempts = [each for some in lines.values() for each in some]
    found = []
    if rows:
        unsolved = sum(bool(row["nothing"]) or bool(row["wrong"]) for row in rows)
        found += [
            _common.Figure("desktop_tasks_references", sum(row["reference"] == 1 for row in rows), len(rows)),
            _common.Figure("desktop_tasks_unsolved_score", unsolved, 0, at_least=False),
        ]
    if attempts:
        found += [
            _common.Figure("desktop_tasks_attempts", len(attempts), 200),
            _common.Figure("desktop_tasks_failed", sum(each.status == "failed" for each in attempts), 0, at_least=False),
        ]
    return found


def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--part", choices=("references", "agents"), help="only that")
    options.add_argument("--arm", action="append", choices=tuple(arms()), help="attempt only with this one")
    options.add_argument("--show", action="store_true", help="attempt nothing more: only read the results in --work")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "desktop_tasks", help="where the runs lie")
    given, noise = options.parse_args(), _common.Noise()
    if lack := absent():
        _common.lacks(f"no desktop: {lack}")
    if given.quick:
        given.part, given.work = "references", given.work / "quick"
    given.work.mkdir(parents=True, exist_ok=True)
    rows, lines, table = list[Row](), dict[str, list[ResultLine]](), list[list[str]]()
    if given.part != "agents":
        rows = referenced(given, noise)
        shown = ("task", "nothing", "wrong", "reference", "seconds", "fault")
        _common.table(shown, [[str(row[key]) for key in shown] for row in rows])
    if given.part != "references":
        lines = asyncio.run(attempts(given, noise))
        _common.table(SHOWN, table := compared(lines))
    details = {"references": rows, "agents": [dict(zip(SHOWN, row, strict=True)) for row in table], "settings": arms(),
               "scores": {name: {line.task: line.score for line in some} for name, some in lines.items()}}  # fmt: skip
    _common.finish(given, figures(rows, lines), noise, _common.versions("exact-agent", "jeepney", "mss", "python-xlib"), details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
