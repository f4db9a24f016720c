"""Benchmarks over toy environments: agents under several searches, in one maze of many seeds."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from exact.agents.agent import Agent
from exact.config import Config, parse
from exact.environments.base import EnvironmentFactory
from exact.environments.pool.capacity import PoolLimits
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.environment import Operation
from exact.environments.toy.factory import ToyFactory, maze, toy_task
from exact.evaluation.folder import BenchFolder
from exact.evaluation.local import LocalEngine, OpenEnvironments
from exact.evaluation.plan import Plan
from exact.evaluation.schedule import Schedule
from exact.models.base import ChatModel
from exact.reflection.base import Reflector
from exact.reflection.contrast import BuiltinReflector
from exact.task import Task

WORLD = maze(seed=3)


def settings(name: str, algorithm: str = "mcts", **more: object) -> Config:
    search = {"algorithm": algorithm, "iterations": 6, "k": 4, **more}
    return parse({"name": name, "search": search, "reflection": {"kind": "none"}, "limits": {"actions": 4}})


def toy_bench(path: Path, *configs: Config, seeds: int = 3, reruns: int = 1) -> BenchFolder:
    configs = configs or (settings("react", "react"), settings("mcts"))
    tasks = tuple(toy_task(WORLD, seed) for seed in range(seeds))
    plan = Plan(suite="toy", agents=tuple(each.name for each in configs), tasks=tasks, budget={"actions": 4.0}, reruns=reruns)
    return BenchFolder.create(path, plan, {each.name: each for each in configs})


def toy_engine(
    folder: BenchFolder,
    environments: ToyFactory,
    *,
    hang: float | None = None,
    noise: float = 0.3,
    open_environments: OpenEnvironments | None = None,
    reflector: Reflector | None = None,
) -> LocalEngine:
    @asynccontextmanager
    async def opened(task: Task, config: Config) -> AsyncIterator[EnvironmentFactory]:
        yield environments

    def build(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        return Agent(policy=ToyPolicy(WORLD, noise=noise), value=ToyValue(WORLD, noise=noise), reflector=reflector)

    builds = {agent: build for agent in folder.plan.agents if folder.agent(agent)[1].policy.kind != "llm"}
    return LocalEngine(
        folder,
        open_environments=open_environments or opened,
        key=lambda task: "toy",
        limits=PoolLimits(environments=16),
        build=builds,
        hang=hang,
        grace=0.2,
    )


async def run(
    folder: BenchFolder, environments: ToyFactory | None = None, *, parallel: int = 3, hang: float | None = None, learns: bool = False,
    **more: object,
) -> Schedule:  # fmt: skip
    """Run the attempts that are left of a benchmark."""
    reflector = BuiltinReflector() if learns else None
    async with toy_engine(folder, environments or ToyFactory(WORLD), hang=hang, reflector=reflector) as engine:
        schedule = Schedule(folder=folder, engine=engine, parallel=parallel, **more)  # type: ignore[arg-type]
        await schedule.run()
        return schedule


def worker(folder: BenchFolder) -> LocalEngine:
    """Return the engine of a process on Ray."""
    return toy_engine(folder, ToyFactory(WORLD))


def learning(name: str, memory: Path, *, round: int = 0) -> Config:
    """Return the settings of an agent that writes reflections to a memory."""
    kept = {"kind": "builtin", "memory": str(memory), "threshold": 0.05, "signals": ["edge"], "most": 9, "round": round}
    return parse({"name": name, "search": {"algorithm": "mcts", "iterations": 6, "k": 4}, "reflection": kept, "limits": {"actions": 4}})


def learning_worker(folder: BenchFolder) -> LocalEngine:
    return toy_engine(folder, ToyFactory(WORLD), reflector=BuiltinReflector())


def blocking_worker(folder: BenchFolder, marks: str) -> LocalEngine:
    """Return the engine of a process that blocks in its first step, so that only a kill ends it; only where `marks` has no mark."""

    async def wait(operation: Operation) -> None:
        mark = Path(marks) / "stood still"
        if operation == "step" and not mark.exists():
            mark.touch()
            time.sleep(3600)  # noqa: ASYNC251 - this is what hangs

    return toy_engine(folder, ToyFactory(WORLD, wait=wait))


def dying_worker(folder: BenchFolder, marks: str) -> LocalEngine:
    """Return the engine of a process that exits in its fourth step, as if out of memory; only where `marks` has no mark."""
    steps = itertools.count(1)

    async def wait(operation: Operation) -> None:
        mark = Path(marks) / "died"
        if operation == "step" and next(steps) == 4 and not mark.exists():
            mark.touch()
            await asyncio.sleep(1.5)  # the journal is on its way
            os._exit(9)

    return toy_engine(folder, ToyFactory(WORLD, wait=wait))


def broken_worker(folder: BenchFolder) -> LocalEngine:
    """Return the engine of a process whose attempts all raise an error of a user's code."""

    async def wait(operation: Operation) -> None:
        if operation == "step":
            raise ZeroDivisionError("by nothing")

    return toy_engine(folder, ToyFactory(WORLD, wait=wait))
