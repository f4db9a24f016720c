"""Runs over toy worlds, for the tests of the driver."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from exact.agents.agent import Agent
from exact.config import Config, parse
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyWorlds
from exact.environments.toy.known import ToyWorld, toy_task
from exact.models.base import ChatModel
from exact.runs.runner import Runner, create, reopen


def toy_agent(world: ToyWorld, noise: float = 0.0) -> Callable[[Config, Callable[[str], ChatModel]], Agent]:
    def build(config: Config, models: Callable[[str], ChatModel]) -> Agent:
        return Agent(policy=ToyPolicy(world, noise=noise), value=ToyValue(world, noise=noise))

    return build


def config(**sections: object) -> Config:
    defaults: dict[str, object] = {"search": {"algorithm": "mcts", "iterations": 20, "k": 4}, "reflection": {"kind": "none"}}
    return parse({**defaults, **sections})


def toy_runner(folder: Path, worlds: ToyWorlds, settings: Config | None = None, noise: float = 0.0) -> Runner:
    """A runner on one toy task; goes on with what lies in the folder."""
    settings = settings or config()
    if not (folder / "run.json").exists():
        create(folder, (toy_task(worlds.world),), settings)
    run, settings = reopen(folder)
    return Runner(folder=run, config=settings, open_worlds=lambda task: nullcontext(worlds), build_agent=toy_agent(worlds.world, noise))
