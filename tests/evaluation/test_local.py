"""Attempts in this process: which agents share their environments."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from exact.config import Config, ModelConfig, ModelsConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.toy.factory import ToyFactory
from exact.evaluation.schedule import Schedule
from exact.task import Task
from tests.evaluation.toys import WORLD, settings, toy_bench, toy_engine


def judged(name: str, model: str, policy: str = "p") -> Config:
    models = {"policy": ModelConfig(model=policy), "parts": {"evaluator": ModelConfig(model=model)}}
    return replace(settings(name, "react"), models=ModelsConfig(**models))  # type: ignore[arg-type]


async def test_agents_share_environments_whose_evaluators_ask_the_same_model(tmp_path: Path) -> None:
    folder, opened = toy_bench(tmp_path / "bench", judged("a", "x"), judged("b", "y"), judged("c", "x", "other"), seeds=1), list[str]()

    @asynccontextmanager
    async def open_environments(task: Task, config: Config) -> AsyncIterator[EnvironmentFactory]:
        opened.append(config.models.parts["evaluator"].model)
        yield ToyFactory(WORLD)

    async with toy_engine(folder, ToyFactory(WORLD), open_environments=open_environments) as engine:
        await Schedule(folder=folder, engine=engine, parallel=1).run()
    assert opened == ["x", "y"]
