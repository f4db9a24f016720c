"""Does search help the embedded agent on MiniWoB++, by how much, at what cost?

Forty tasks in three strata, fixed in bench/strata.json by the rule of bench/strata.py before any agent ran; three seeds each.
Seeds 0 to 8 have been seen (docs/results/first_light.md): a run that is to confirm anything needs others. Agents: random; ReAct;
one-step look-ahead (ReAct with a value filter); R-MCTS with the embedded value, with a constant value (a control: must show no
gain) and with an oracle value (headroom only: it sees the reward of every episode that ended in search). The embedded agent is
not a language model. R-MCTS is run at two caps on environment steps a task, replays included. No lesson from another seed of the
same task is ever shown.

At most 4 committed actions for every agent: the fewest within which R-MCTS solved 95 percent of what it solved within 15 on the
half of the tasks that the agent was tuned on. So a look that is paid for with a real action is dear, for every agent.

Intervals are 95 percent bootstrap intervals over tasks (clusters), seeds within; gains are paired on task and seed.

    python bench/first_light.py --json bench/results/first_light.json       all of it; resumes from --work after an interruption
    python bench/first_light.py --quick                                     a sample again; must agree with the committed result
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import _common
import msgspec

from exact.agents.agent import Agent, build
from exact.agents.value.oracle import OracleValue
from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig, Config, parse
from exact.environments.base import Worlds
from exact.environments.verdicts import TellingWorlds, Verdicts
from exact.models.base import ChatModel
from exact.runs.runner import Runner, create, reopen
from exact.runs.shared import SharedWorlds
from exact.runs.store import Line, RunFolder
from exact.task import Task

SEEDS = (6, 7, 8)
"""Seeds 0 to 2 are those of the first table, 3 to 5 those of a second run that was not finished."""
ACTIONS = 4
CAPS = (40, 100)
ORDER = ("information", "ends", "form")
"""In which the strata are run, each for all agents: what the headline is taken from comes first."""
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
"""Chosen on the development half. A visit to an end that is known is free, so iterations are many and the cap on steps is what limits."""
BASES = ("react", f"constant@{CAPS[-1]}")
"""What the others are compared with, on the same task and seed."""
QUICK_TASKS = 4
QUICK_STEPS = 40
"""`--quick` takes attempts that cost at most so many environment steps, all its agents together."""
RESULT = _common.ROOT / "bench" / "results" / "first_light.json"


def agents() -> dict[str, dict[str, Any]]:
    """Every agent's configuration."""

    def mcts(cap: int, value: str = "builtin") -> dict[str, Any]:
        return {
            "search": {"algorithm": "mcts", **SEARCH},
            "value": {"kind": value},
            "limits": {"actions": ACTIONS, "transitions": cap},
        }

    plain = {"limits": {"actions": ACTIONS}, "reflection": {"kind": "none"}}
    small, full = CAPS
    return {
        "react": {**plain, "search": {"algorithm": "react"}},
        f"rmcts@{full}": mcts(full),
        f"constant@{full}": mcts(full, "constant"),
        f"oracle@{full}": mcts(full, "constant"),
        "random": {**plain, "search": {"algorithm": "react"}, "policy": {"kind": "random"}},
        "filter": {**plain, "search": {"algorithm": "greedy", "k": SEARCH["k"]}, "limits": {"actions": ACTIONS, "transitions": full}},
        f"rmcts@{small}": mcts(small),
    }


def folder_of(name: str, work: Path) -> Path:
    return work / name.replace("@", "_at_").replace("/", "_actions_")


async def run_agent(name: str, settings: Mapping[str, Any], tasks: Sequence[Task], work: Path) -> list[Line]:
    """One agent on all tasks; what lies in `work` already is not run again."""
    oracle, verdicts = name.startswith("oracle"), Verdicts()
    base = {"name": name, "browser": {"screenshots": False}, "reflection": {"exclude_same_task": True}}
    config, folder = parse({**base, **settings}), folder_of(name, work)
    if not (folder / "run.json").exists():
        create(folder, tuple(tasks), config)

    def made(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        agent = build(config, models)
        return Agent(policy=agent.policy, value=OracleValue(verdicts), reflector=None, oracle=True) if oracle else agent

    @asynccontextmanager
    async def worlds(task: Task) -> AsyncIterator[Worlds]:
        async with MiniWob().worlds(BrowserConfig(screenshots=False)) as opened:
            yield TellingWorlds(opened, verdicts) if oracle else opened

    began = time.monotonic()
    async with SharedWorlds(lambda task: "miniwob", worlds) as shared:
        run, config = reopen(folder)
        done = [0]

        def finished(task: Task, line: Line) -> None:
            done[0] += 1
            print(f"\r{name:14} {done[0]:4} of {len(tasks)}  {time.monotonic() - began:5.0f} s", end="", file=sys.stderr, flush=True)

        lines = await Runner(folder=run, config=config, open_worlds=shared, build_agent=made, finished=finished).run()
    print(file=sys.stderr)
    return lines


def bootstrap(by_task: Mapping[str, Sequence[float]], draws: int = 4000) -> tuple[float, float, float]:
    """Mean over tasks of means over seeds, with its 95 percent interval over resampled tasks."""
    means = [statistics.fmean(values) for values in by_task.values()]
    if not means:
        return float("nan"), float("nan"), float("nan")
    rng = random.Random(0)
    sampled = sorted(statistics.fmean(rng.choices(means, k=len(means))) for _ in range(draws))
    return statistics.fmean(means), sampled[int(0.025 * draws)], sampled[int(0.975 * draws)]


def name_of(task: str) -> str:
    return task.partition("/")[2].partition("?")[0]


def success(lines: Sequence[Line], names: set[str]) -> dict[str, list[float]]:
    """Scores by task name; an infrastructure failure is no score and is left out."""
    found: dict[str, list[float]] = {}
    for line in lines:
        if name_of(line.task) in names and line.score is not None:
            found.setdefault(name_of(line.task), []).append(line.score)
    return found


def gain(lines: Sequence[Line], base: Sequence[Line], names: set[str]) -> dict[str, list[float]]:
    """Differences of scores on the same task and seed, by task name."""
    before = {line.task: line.score for line in base}
    found: dict[str, list[float]] = {}
    for line in lines:
        other = before.get(line.task)
        if name_of(line.task) in names and line.score is not None and other is not None:
            found.setdefault(name_of(line.task), []).append(line.score - other)
    return found


def shown(triple: tuple[float, float, float] | None) -> str:
    return f"{triple[0]:.3f} [{triple[1]:.3f}, {triple[2]:.3f}]" if triple else "-"


def summary(results: Mapping[str, Sequence[Line]], chosen: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What the table shows, as data."""
    strata = {**{kind: set(names) for kind, names in chosen.items()}, "all": {n for names in chosen.values() for n in names}}
    rows = {}
    for agent, lines in results.items():
        if not lines:
            continue
        seen = {kind: names for kind, names in strata.items() if success(lines, names)}
        rows[agent] = {
            "attempts": {kind: sum(len(scores) for scores in success(lines, names).values()) for kind, names in seen.items()},
            "success": {kind: bootstrap(success(lines, names)) for kind, names in seen.items()},
            **{
                f"gain_over_{base}": {
                    kind: bootstrap(pairs) for kind, names in seen.items() if (pairs := gain(lines, results[base], names))
                }
                for base in BASES
                if results.get(base)
            },
            **{key: statistics.fmean(getattr(line, key) for line in lines) for key in ("actions", "transitions", "evaluations", "seconds")},
            "failed": sum(line.status == "failed" for line in lines),
            "drifted": sum(line.drifted for line in lines),
        }
    return rows


def show(rows: Mapping[str, Any], chosen: Mapping[str, Sequence[str]]) -> None:
    kinds = [*chosen, "all"]
    counts = {kind: len(chosen.get(kind, [])) or sum(map(len, chosen.values())) for kind in kinds}
    costs = ("actions", "transitions", "evaluations")
    _common.table(
        ["success", *(f"{kind} ({counts[kind]})" for kind in kinds), "attempts", "actions", "steps", "values", "failed"],
        [
            [
                agent,
                *(shown(row["success"].get(kind)) for kind in kinds),
                str(row["attempts"]["all"]),
                *(f"{row[cost]:.1f}" for cost in costs),
                str(row["failed"]),
            ]
            for agent, row in rows.items()
        ],
    )
    print()
    for base in BASES:
        gains = {agent: row[f"gain_over_{base}"] for agent, row in rows.items() if agent != base and f"gain_over_{base}" in row}
        _common.table([f"gain over {base}", *kinds], [[agent, *(shown(each.get(kind)) for kind in kinds)] for agent, each in gains.items()])
        print()


async def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--work", type=Path, default=_common.ROOT / ".bench" / "first_light", help="where the runs lie")
    options.add_argument("--agents", default="", help="only these, by comma")
    options.add_argument("--strata", default="", help="only these, by comma")
    options.add_argument("--fresh", action="store_true", help="forget what lies in --work")
    options.add_argument("--as-is", action="store_true", help="run nothing: show what lies in --work, finished or not")
    args = options.parse_args()
    chosen: dict[str, list[str]] = json.loads((_common.ROOT / "bench" / "strata.json").read_text())["chosen"]
    if args.quick:
        return await quick(args)
    if args.fresh:
        shutil.rmtree(args.work, ignore_errors=True)
    noise, results = _common.Noise(), dict[str, list[Line]]()
    for kind in args.strata.split(",") if args.strata else ORDER:
        for name, settings in agents().items():
            if not args.agents or name in args.agents.split(","):
                noise.probe()
                results.setdefault(name, []).extend(await stratum(kind, name, settings, chosen[kind], args))
    if not results.get("react"):
        return 0
    rows = summary(results, chosen)
    show(rows, chosen)
    figures = headline(rows) if f"rmcts@{CAPS[-1]}" in rows else []
    scores = {name: {line.task: line.score for line in lines} for name, lines in results.items()}
    steps = {name: {line.task: line.transitions for line in lines} for name, lines in results.items()}
    details = {"seeds": SEEDS, "chosen": chosen, "agents": agents(), "rows": rows, "scores": scores, "steps": steps}
    _common.finish(args, figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), details)
    return 0


async def stratum(kind: str, name: str, settings: Mapping[str, Any], names: Sequence[str], args: Any) -> list[Line]:
    """One agent on one stratum, in a folder of its own."""
    work = args.work / kind
    if args.as_is:
        return list(RunFolder(folder_of(name, work)).results()) if folder_of(name, work).exists() else []
    print(kind, end=" ", file=sys.stderr)
    return await run_agent(name, settings, tasks_of(names, SEEDS), work)


def headline(rows: Mapping[str, Any]) -> list[_common.Figure]:
    best = rows[f"rmcts@{CAPS[-1]}"]
    return [
        _common.Figure("react_success", rows["react"]["success"]["all"][0]),
        _common.Figure("rmcts_success", best["success"]["all"][0]),
        _common.Figure("gain_information_low", best["gain_over_react"]["information"][1], goal=0.001),
    ]


def tasks_of(names: Sequence[str], seeds: Sequence[int]) -> list[Task]:
    suite = MiniWob()
    return [suite.task(f"miniwob/{name}?seed={seed}") for name in names for seed in seeds]


def sample(committed: Mapping[str, Any], names: Sequence[str]) -> list[Task]:
    """Attempts that all these agents finished at little cost, from each stratum in turn."""

    def fits(task: str) -> bool:
        scored = all(committed["scores"][name].get(task) is not None for name in names)
        return scored and sum(committed["steps"][name][task] for name in names) <= QUICK_STEPS

    columns = [[task.id for task in tasks_of(chosen, committed["seeds"][:1]) if fits(task.id)] for chosen in committed["chosen"].values()]
    ids = [id for row in itertools.zip_longest(*columns) for id in row if id][:QUICK_TASKS]
    return [MiniWob().task(id) for id in ids]


async def quick(args: Any) -> int:
    """Run a sample again, with the committed seeds and settings, and compare with the committed scores."""
    committed = json.loads(RESULT.read_text())
    searching = max((name for name in committed["scores"] if name.startswith("rmcts")), key=lambda name: len(committed["scores"][name]))
    names, noise, agreeing = ("react", searching), _common.Noise(), 0
    tasks = sample(committed, names)
    work = args.work.with_name("first_light_quick")
    shutil.rmtree(work, ignore_errors=True)
    rows = []
    for name in names:
        noise.probe()
        for line in await run_agent(name, committed["agents"][name], tasks, work):
            before = committed["scores"][name][line.task]
            agreeing += before == line.score
            rows.append([f"{name} {line.task}", str(before), str(line.score)])
    _common.table(["agent and task", "committed", "now"], rows)
    agreement = agreeing / len(rows)
    figures = [
        *(_common.Figure(name, value["value"], value["goal"]) for name, value in committed["figures"].items()),
        _common.Figure("agreement", agreement, goal=0.9),
    ]
    _common.finish(args, figures, noise, _common.versions("exact-agent", "miniwob", "playwright"), {"rows": msgspec.to_builtins(rows)})
    return 0 if agreement >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
