"""Concurrent attempts at MiniWoB++ by several agents, in a folder that can be resumed, and the tables of their results."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import _common
import msgspec

from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.suite import REWARDS, binary
from exact.config import Config
from exact.environments.base import EnvironmentFactory
from exact.environments.pool.capacity import PoolLimits
from exact.evaluation.folder import BenchFolder, Result
from exact.evaluation.local import BuildAgent, LocalEngine, environments_wanted
from exact.evaluation.plan import KINDS, BenchSession, Plan
from exact.evaluation.schedule import Schedule
from exact.evaluation.statistics import Estimate, bootstrap, rate
from exact.evaluation.summary import grouped, scores, summarise, task_of, versus
from exact.task import Task

PARALLEL = 8
"""Attempts at a time; with 3 a machine of two cores idles half the time, with 6 a sixth of it."""
LEXICAL: Mapping[str, Any] = {"policy": {"kind": "lexical"}, "value": {"kind": "lexical"}}
"""The agent of the recorded runs that name no other one. The learned policy knows half of these tasks: other seeds trained it."""
EVALUATIONS = (15, 30, 60)
"""Judgements at which the curve is read."""
COSTS = ("actions", "transitions", "evaluations", "seconds")


def name_of(task: str) -> str:
    return task_of(task).partition("/")[2]


def tasks_of(names: Sequence[str], seeds: Sequence[int]) -> list[Task]:
    suite = MiniWob()
    return [suite.task(f"miniwob/{name}?seed={seed}") for name in names for seed in seeds]


def caps_of(configs: Sequence[Config]) -> dict[str, float] | None:
    """Return the caps on one task, taken from the agents' configurations; a cap on which two agents differ is None.

    An agent without a cap on steps or evaluations is no exception, because it does not search: its actions cap these.
    """
    caps = {kind: {cap for config in configs if (cap := getattr(config.limits, kind)) is not None} for kind in KINDS}
    return None if any(len(found) > 1 for found in caps.values()) else {kind: float(cap) for kind, found in caps.items() for cap in found}


def folder_of(work: Path, tasks: Sequence[Task], agents: Mapping[str, Config]) -> BenchFolder:
    """Return the benchmark folder in `work` if it has these tasks and caps, with missing agents added; else a new one."""
    session = BenchSession(
        versions={"exact": _common.commit()},
        machine={key: str(value) for key, value in _common.machine().items()},
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if (work / "bench.json").exists():
        folder = BenchFolder.open(work)
        if folder.plan.tasks != tuple(tasks):
            sys.exit(f"{work} is of other tasks: choose another --work, or --fresh")
        added = {agent: config for agent, config in agents.items() if agent not in folder.plan.agents}
        budget = caps_of([*(folder.agent(agent)[1] for agent in folder.plan.agents), *added.values()])
        if (folder.plan.budget, folder.plan.own_budgets) != (budget or {}, budget is None):
            sys.exit(f"{work} says {folder.plan.stated_budget}, which is not what its agents would have: choose another --work, or --fresh")
        other = folder.add_session(session, added)
        if other:
            print(f"{work} goes on by other code or elsewhere than before: {other}", file=sys.stderr)
        return folder
    budget = caps_of([*agents.values()])
    plan = Plan(
        suite="miniwob",
        agents=tuple(agents),
        tasks=tuple(tasks),
        budget=budget or {},
        own_budgets=budget is None,
        versions=session.versions,
        machine=session.machine,
        begun=session.begun,
    )
    return BenchFolder.create(work, plan, agents)


async def attempt(folder: BenchFolder, parallel: int, noise: _common.Noise, build: dict[str, BuildAgent] | None = None) -> list[Result]:
    """Attempt what is left of the plan. `build`: agents that differ from what their configuration names."""
    sys.path.append(sys.path.pop(0))  # bench/miniwob.py must not stand in for the wheel of its name
    suite, began = MiniWob(), time.monotonic()
    configs = {agent: folder.agent(agent)[1] for agent in folder.plan.agents}

    def open_environments(task: Task, config: Config) -> AbstractAsyncContextManager[EnvironmentFactory]:
        return suite.environments(config.browser)

    def finished(result: Result, done: int, of: int) -> None:
        if done % max(1, of // 100) == 0:
            noise.probe()
        print(f"\r{done:5} of {of}  {time.monotonic() - began:6.0f} s", end="", file=sys.stderr, flush=True)

    limits = PoolLimits(environments=parallel * max(map(environments_wanted, configs.values())))
    noise.probe()
    async with LocalEngine(
        folder, open_environments=open_environments, key=lambda task: "miniwob", limits=limits, build=build, hang=300.0
    ) as engine:
        rounds = {agent: max(1, config.reflection.round) for agent, config in configs.items() if config.reflection.kind != "none"}
        results = await Schedule(folder=folder, engine=engine, parallel=parallel, rounds=rounds, finished=finished).run()
    noise.probe()
    print(file=sys.stderr)
    return results


def success(results: Sequence[Result], names: set[str]) -> Estimate:
    return rate(grouped(scores(each for each in results if name_of(each.task) in names)))


def within(results: Sequence[Result], names: set[str], kind: str, most: float) -> Estimate:
    """Success at a cost of at most so much: an attempt that took more was not solved."""
    kept = [each for each in results if name_of(each.task) in names]
    return bootstrap(grouped(scores(kept, lambda each: float(each.score == 1 and getattr(each, kind) <= most))))


def gain(results: Sequence[Result], base: Sequence[Result], names: set[str]) -> Estimate:
    kept = [[each for each in found if name_of(each.task) in names] for found in (results, base)]
    return versus(*kept).gain


def show(results: Mapping[str, Sequence[Result]], kinds: Mapping[str, set[str]], curved: str, steps: Sequence[int]) -> dict[str, Any]:
    """Print the tables; what they hold, as data.

    `kinds`: groups of tasks, by name; `curved`: that of the curve; `steps`: environment steps at which it is read.
    """
    base = results["react"] if "react" in results else next(iter(results.values()))
    rows = {agent: summarise(agent, found, REWARDS) for agent, found in results.items()}
    labelled = {agent: agent + (" (ORACLE)" if each.oracle else "") for agent, each in rows.items()}
    shown = _compared(results, kinds, labelled, base[0].agent, "success")
    strict = {agent: [full(each) for each in found] for agent, found in results.items()}
    shown["binary"] = _compared(strict, kinds, labelled, base[0].agent, "full reward alone")
    costs = {
        agent: {kind: each.costs[kind] for kind in ("actions", "transitions", "evaluations", "seconds")} for agent, each in rows.items()
    }
    _common.table(
        ["an attempt took", "actions", "steps", "values", "seconds", "drifted", "failed", "reruns", *REWARDS],
        [
            [
                labelled[agent],
                *(f"{x:.1f}" for x in costs[agent].values()),
                *map(str, (each.drifted, each.failed, each.reruns)),
                *map(str, each.rewards.values()),
            ]
            for agent, each in rows.items()
        ],
    )
    print()
    limits = [("transitions", most) for most in steps] + [("evaluations", most) for most in EVALUATIONS]
    curve = {
        agent: {f"{kind}<={most}": within(found, kinds[curved], kind, most) for kind, most in limits} for agent, found in results.items()
    }
    _common.table(
        [f"{curved}, success at", *(f"{kind[:11]}<={most}" for kind, most in limits)],
        [[labelled[agent], *(f"{x.mean:.3f}" for x in each.values())] for agent, each in curve.items()],
    )
    return {**shown, "costs": costs, "curve": curve}


def full(result: Result) -> Result:
    """Return an attempt scored by the binary reading of the page's own figure: a partial solution counts as none."""
    return result if result.score is None else msgspec.structs.replace(result, score=binary(result.raw or 0.0))


def _compared(
    results: Mapping[str, Sequence[Result]], kinds: Mapping[str, set[str]], labelled: Mapping[str, str], base: str, what: str
) -> dict[str, Any]:
    """Print the tables of success and of gain over an agent; what they hold, as data."""
    head = [f"{kind} ({len(found)})" for kind, found in kinds.items()]
    table = {agent: {kind: success(found, names) for kind, names in kinds.items()} for agent, found in results.items()}
    others = {agent: found for agent, found in results.items() if agent != base}
    gains = {agent: {kind: gain(found, results[base], names) for kind, names in kinds.items()} for agent, found in others.items()}
    _common.table([what, *head], [[labelled[agent], *map(str, each.values())] for agent, each in table.items()])
    print()
    _common.table([f"gain over {base}", *head], [[labelled[agent], *map(str, each.values())] for agent, each in gains.items()])
    print()
    return {"success": table, "gain": gains}


def raw(results: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Return score, the page's own figure, environment steps and evaluations of each attempt."""
    return {agent: {each.task: [each.score, each.raw, each.transitions, each.evaluations] for each in of} for agent, of in results.items()}


def commits(folder: BenchFolder) -> list[str]:
    """Return the commits with which the attempts were made, session by session."""
    return [session.versions["exact"] for session in folder.plan.sessions]
