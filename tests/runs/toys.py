"""Runs over toy environments, for the tests of the driver."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from exact.agents.agent import Agent
from exact.config import Config, parse
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import ToyGraph, toy_task
from exact.models.base import ChatModel
from exact.runs.runner import Runner, create, reopen


def toy_agent(environment: ToyGraph, noise: float = 0.0) -> Callable[[Config, Callable[[str], ChatModel]], Agent]:
    def build(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        return Agent(policy=ToyPolicy(environment, noise=noise), value=ToyValue(environment, noise=noise))

    return build


def config(**sections: object) -> Config:
    defaults: dict[str, object] = {"search": {"algorithm": "mcts", "iterations": 20, "k": 4}, "reflection": {"kind": "none"}}
    return parse({**defaults, **sections})


def toy_runner(folder: Path, environments: ToyFactory, settings: Config | None = None, noise: float = 0.0) -> Runner:
    """Return a runner on one toy task, which resumes what is in the folder."""
    settings = settings or config()
    if not (folder / "run.json").exists():
        create(folder, (toy_task(environments.graph),), settings)
    run, settings = reopen(folder)
    return Runner(
        folder=run,
        config=settings,
        open_environments=lambda task: nullcontext(environments),
        build_agent=toy_agent(environments.graph, noise),
    )
