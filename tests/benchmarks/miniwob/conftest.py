"""Environments of MiniWoB++ and a way to stray through them."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
import pytest_asyncio

from exact.benchmarks.miniwob import MiniWob, flip_rewards
from exact.config import BrowserConfig
from exact.environments.base import Environment, EnvironmentFactory, Transition
from exact.errors import ActionError
from exact.observation import Observation
from exact.task import Outcome, Task

CONFIG = BrowserConfig(screenshots=False)


class Walk(msgspec.Struct):
    """A random episode: what was seen and done until it ended, or `steps` were taken."""

    start: Observation
    steps: list[tuple[str, Transition]] = []

    @property
    def observations(self) -> list[Observation]:
        return [self.start, *(t.observation for _, t in self.steps if t.observation)]

    @property
    def outcome(self) -> Outcome:
        return Outcome(actions=tuple(key for key, _ in self.steps))


async def stray(environment: Environment, task: Task, steps: int = 3) -> Walk:
    """Click on and type into elements drawn by the task's id, so that equal pages give equal walks."""
    draw = random.Random(task.id)
    walk = Walk(await environment.reset(task))
    for _ in range(3 * steps):
        elements = [e for e in walk.observations[-1].elements if e.visible and e.box and e.box.width and e.role != "RootWebArea"]
        if len(walk.steps) == steps or not elements:
            break
        element = draw.choice(elements)
        text = f'fill [{element.id}] "{draw.randint(0, 9)}"' if element.role in ("textbox", "spinbutton") else f"click [{element.id}]"
        try:
            transition = await environment.step(environment.actions.parse(text))
        except ActionError:
            continue
        walk.steps.append((text, transition))
        if transition.terminated:
            break
    return walk


@pytest.fixture
def suite() -> MiniWob:
    return MiniWob()


@pytest.fixture
def flipped() -> MiniWob:
    """Serve the same pages with the sign of every reward inverted."""
    return MiniWob(rewrite=flip_rewards)


@pytest.fixture
def walk() -> Callable[..., Awaitable[Walk]]:
    return stray


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def environments(executable: str) -> AsyncIterator[EnvironmentFactory]:
    """One server and one browser for all tests, which run in the session's loop."""
    async with MiniWob().environments(CONFIG) as environments:
        yield environments


@pytest_asyncio.fixture(loop_scope="session")
async def environment(environments: EnvironmentFactory) -> AsyncIterator[Environment]:
    async with environments.open(simulation=False) as environment:
        yield environment


@pytest.fixture
def open_environment() -> Callable[[MiniWob], object]:
    """Open one environment of a suite with its browser."""

    @asynccontextmanager
    async def opened(suite: MiniWob) -> AsyncIterator[Environment]:
        async with suite.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
            yield environment

    return opened
