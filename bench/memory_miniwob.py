"""Measure the effect of reflections on the built-in agent on MiniWoB++. The built-in agent is not a language model.

The forty tasks are those of bench/first_light.py. First each is attempted on training seeds with an empty memory and the benchmark's
outcome, so these reflections are marked. Then it is attempted on other seeds without the benchmark's outcome: with memory off, for the
policy only, for the value function only, and for both. In the first table reflections from other seeds of the same task may be shown, as
with --allow-same-task. In the second table all reflections come from other tasks. The memory is the same for all and frozen, so the order
of the attempts has no effect.

Intervals are 95 percent bootstrap intervals over tasks, paired with memory off on the same task and seed. Results in --work are not made
again.

    python bench/memory_miniwob.py --json bench/results/memory_miniwob.json        about 40 minutes on two cores
    python bench/memory_miniwob.py --quick                                         3 tasks, one seed
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import _common
from _attempts import LEXICAL, name_of, tasks_of

from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig, parse
from exact.evaluation.statistics import bootstrap, differences, rate
from exact.evaluation.summary import grouped, task_of
from exact.reflection.memory.open import SQLiteMemory
from exact.runs.environment_cache import EnvironmentCache
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create, reopen

sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]
"""Without this folder: bench/miniwob.py bears the name of the package that the pages come from."""

TRAINING, TESTING = (20, 21), (30,)
"""Seeds that no other experiment has used."""
LIMITS = {"actions": 4, "transitions": 40, "seconds": 120}
LEARNING = {"kind": "builtin", "signals": ["policy", "outcome", "judge", "sibling", "branch"], "most": 3}
PARTS = 2
"""Processes."""
SEARCH = {
    "iterations": 96,
    "k": 12,
    "c": 1.0,
    "backup": "max",
    "discount": 0.97,
    "revisit": "repeat",
    "merging": "siblings",
    "final": "lower_bound",
}
SHOWN = {"policy": (2, 0), "value": (0, 2), "both": (2, 2)}
"""How many lessons are shown at an expansion and at an evaluation."""
TABLES = {"same task allowed": False, "other tasks only": True}
"""Whether the same task's lessons are left out."""


def modes(work: Path) -> dict[str, dict[str, Any]]:
    """Return the reflection settings by the name of the agent."""
    found: dict[str, dict[str, Any]] = {"off": {"kind": "none"}}
    for table, excluded in TABLES.items():
        for name, (k, value_k) in SHOWN.items():
            mode = f"{name}, {table}"
            memory = {"memory": str(work / f"{folder_name(mode)}.sqlite"), "round": 100_000}
            found[mode] = {**LEARNING, **memory, "k": k, "value_k": value_k, "exclude_same_task": excluded}
    return found


def folder_name(mode: str) -> str:
    return mode.replace(", ", "-").replace(" ", "_")


async def attempted(folder: Path, name: str, ids: Sequence[str], reflection: Mapping[str, Any]) -> None:
    """Attempt some tasks with one agent. Tasks with a result are not attempted again."""
    config = parse(
        {**LEXICAL, "name": name, "browser": {"screenshots": False}, "search": {"algorithm": "mcts", **SEARCH},
         "reflection": dict(reflection), "limits": LIMITS}
    )  # fmt: skip
    if not (folder / "run.json").exists():
        create(folder, tuple(MiniWob().task(id) for id in ids), config)
    run, config = reopen(folder)
    async with EnvironmentCache(
        lambda task: "miniwob", lambda task: MiniWob().environments(BrowserConfig(screenshots=False))
    ) as environments:
        await Runner(folder=run, config=config, open_environments=environments).run()


def part(folder: Path, name: str, ids: Sequence[str], reflection: Mapping[str, Any]) -> list[ResultLine]:
    asyncio.run(attempted(folder, name, ids, reflection))
    return list(reopen(folder)[0].results())


def split(ids: Sequence[str]) -> list[Sequence[str]]:
    """Split tasks into parts in turn, with all seeds of a task in one part."""
    names = list(dict.fromkeys(name_of(id) for id in ids))
    return [[id for id in ids if names.index(name_of(id)) % PARTS == part] for part in range(PARTS)]


def train(pool: ProcessPoolExecutor, work: Path, names: Sequence[str], seeds: Sequence[int]) -> dict[str, Any]:
    """Fill the memory that all are given a copy of."""
    ids = [task.id for task in tasks_of(names, seeds)]
    memory = work / "training.sqlite"
    learning = {**LEARNING, "memory": str(memory), "outcome": "evaluator", "k": 0, "value_k": 0}
    jobs = [pool.submit(part, work / f"training{n}", "training", some, learning) for n, some in enumerate(split(ids)) if some]
    lines = [line for job in jobs for line in job.result()]
    for mode in modes(work).values():
        if "memory" in mode and not Path(mode["memory"]).exists():
            with SQLiteMemory(memory) as source, SQLiteMemory(mode["memory"]) as copy:
                copy.add_all(source.reflections())
    with SQLiteMemory(memory) as source:
        kinds = [entry.reflection.kind for entry in source.entries()]
        held = len(source.entries("quarantined"))
    scores = [line.score for line in lines if line.score is not None]
    return {"attempts": len(scores), "success": statistics.fmean(scores), "lessons": len(kinds), "policy": kinds.count("policy"),
            "value": kinds.count("value"), "quarantined": held}  # fmt: skip


def scored(lines: Sequence[ResultLine]) -> dict[str, float]:
    """Return the scored results. An infrastructure failure is no score and is left out."""
    return {line.task: line.score for line in lines if line.score is not None}


def summary(lines: Sequence[ResultLine], off: Sequence[ResultLine], memory: str) -> dict[str, Any]:
    uses = 0
    if memory:
        with SQLiteMemory(memory) as opened:
            uses = sum(entry.retrieved for entry in opened.entries(None))
    task = {line.task: task_of(line.task) for line in lines}
    actions, before = ({line.task: float(line.actions) for line in each} for each in (lines, off))
    return {
        "attempts": sum(line.score is not None for line in lines),
        "failed": sum(line.status == "failed" for line in lines),
        "success": rate(grouped(scored(lines))),
        "gain": bootstrap(differences(scored(lines), scored(off), task)),
        "actions": statistics.fmean(line.actions for line in lines),
        "more_actions": bootstrap(differences(actions, before, task)),
        "steps": statistics.fmean(line.transitions for line in lines),
        "lessons_shown": uses / len(lines),
        "same_task": any(line.same_task for line in lines),
    }


def show(rows: Mapping[str, Any], table: str) -> None:
    header = [table, "success", "gain over off", "actions", "more actions", "steps", "lessons shown", "failed"]
    _common.table(
        header,
        [
            [
                mode.partition(",")[0],
                str(row["success"]),
                str(row["gain"]),
                f"{row['actions']:.2f}",
                str(row["more_actions"]),
                f"{row['steps']:.1f}",
                f"{row['lessons_shown']:.1f}",
                str(row["failed"]),
            ]
            for mode, row in rows.items()
            if mode == "off" or mode.endswith(table)
        ],
    )
    print()


def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "memory_miniwob", help="where the runs lie")
    options.add_argument("--fresh", action="store_true", help="forget what lies in --work")
    options.add_argument("--seeds", type=int, nargs="+", default=TESTING, help="to test on")
    args = options.parse_args()
    chosen: dict[str, list[str]] = json.loads((_common.ROOT / "bench" / "strata.json").read_text())["chosen"]
    names, training, testing = [name for some in chosen.values() for name in some], TRAINING, tuple(args.seeds)
    work = args.work
    if args.quick:
        names, training, testing, work = ["click-checkboxes", "click-tab-2", "click-option"], TRAINING[:1], TESTING[:1], work / "quick"
    if args.fresh or args.quick:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    noise, results, agents = _common.Noise(), dict[str, list[ResultLine]](), modes(work)
    ids = [task.id for task in tasks_of(names, testing)]
    with ProcessPoolExecutor(PARTS) as pool:
        noise.probe()
        trained = train(pool, work, names, training)
        print(f"trained: {trained}", file=sys.stderr, flush=True)
        for mode, reflection in agents.items():
            folders = [work / f"{folder_name(mode)}{n}" for n in range(PARTS)]
            jobs = [pool.submit(part, folder, mode, some, reflection) for folder, some in zip(folders, split(ids), strict=True) if some]
            results[mode] = [line for job in jobs for line in job.result()]
            noise.probe()
            print(f"{mode} done", file=sys.stderr, flush=True)
    rows = {mode: summary(lines, results["off"], agents[mode].get("memory", "")) for mode, lines in results.items()}
    print(f"training: {trained}\n")
    for table in TABLES:
        show(rows, table)
    same, other = (rows[f"both, {table}"]["gain"] for table in TABLES)
    figures = [
        _common.Figure("off_success", rows["off"]["success"][0]),
        _common.Figure("same_task_gain", same[0]),
        _common.Figure("transfer_gain", other[0]),
    ]
    scores = {mode: {line.task: line.score for line in lines} for mode, lines in results.items()}
    seeds = {"training": training, "testing": testing}
    setting = {"limits": LIMITS, "search": SEARCH, "learning": LEARNING}
    details = {"rows": rows, "training": trained, "scores": scores, "seeds": seeds, **setting}
    _common.finish(args, figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
