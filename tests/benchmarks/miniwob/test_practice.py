"""Practice environments, which begin an episode again in the loaded page."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig
from exact.learning.builtin.collect import PracticeEnvironment, PracticeFactory, practice
from exact.observation import Observation
from exact.task import Outcome

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def factory() -> AsyncIterator[PracticeFactory]:
    async with practice(BrowserConfig(screenshots=False)) as factory:
        yield factory


@pytest_asyncio.fixture(loop_scope="session")
async def environment(factory: PracticeFactory) -> AsyncIterator[PracticeEnvironment]:
    async with factory.open(simulation=True) as environment:
        yield environment


async def press(environment: PracticeEnvironment, seen: Observation, name: str) -> float | None:
    """Click the button of that name. Return the score if that ended the episode."""
    button = next(each.id for each in seen.elements if each.role == "button" and each.name == name)
    ended = (await environment.step(environment.actions.action("click", button))).terminated
    return (await environment.evaluate(Outcome(actions=()))).value if ended else None


async def test_an_episode_begins_again_as_it_began_and_is_scored_anew(environment: PracticeEnvironment) -> None:
    task = MiniWob().task("miniwob/click-test-2?seed=10000")
    start = await environment.reset(task)
    assert await press(environment, start, "TWO") == 0.0
    again = await environment.reset(task)
    assert (again.fingerprint, again.instruction, again.elements) == (start.fingerprint, start.instruction, start.elements)
    assert (environment.loaded, environment.begun) == (1, 1)
    assert await press(environment, again, "ONE") == 1.0


async def test_another_seed_loads_the_page(environment: PracticeEnvironment) -> None:
    for seed in (10000, 10001):
        await environment.reset(MiniWob().task(f"miniwob/click-tab?seed={seed}"))
    assert (environment.loaded, environment.begun) == (2, 0)


async def test_a_page_that_was_left_is_loaded(environment: PracticeEnvironment) -> None:
    task = MiniWob().task("miniwob/click-test-2?seed=10000")
    start = await environment.reset(task)
    await environment.step(environment.actions.parse('goto "http://miniwob.test/miniwob/click-test.html"'))
    assert (await environment.reset(task)).fingerprint == start.fingerprint
    assert environment.loaded == 2


async def test_an_environment_can_be_told_to_load_each_time(environment: PracticeEnvironment) -> None:
    environment.begins_again = False
    for _ in range(2):
        await environment.reset(MiniWob().task("miniwob/click-test-2?seed=10000"))
    assert environment.loaded == 2
