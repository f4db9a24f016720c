"""MiniWoB++ in environments that fork."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from exact.benchmarks.miniwob import MiniWob, flip_rewards
from exact.config import BrowserConfig
from exact.environments.base import Environment
from exact.environments.browser import BrowserEnvironment
from exact.environments.browser.fork.factory import ForkingFactory
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from exact.task import Outcome

from .test_suite import NOTHING_DONE, act, named

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def forks(executable: str) -> AsyncIterator[ForkingFactory]:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    async with MiniWob().forking_factory(BrowserConfig(screenshots=False)) as environments:
        yield environments


@pytest_asyncio.fixture(loop_scope="session")
async def fork(forks: ForkingFactory) -> AsyncIterator[BrowserEnvironment]:
    async with forks.open(simulation=True) as environment:
        yield environment


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def local(executable: str) -> AsyncIterator[Environment]:
    async with MiniWob().environments(BrowserConfig(screenshots=False)) as environments, environments.open(simulation=False) as environment:
        yield environment


async def test_one_branch_wins_and_the_other_loses(fork: BrowserEnvironment, forks: ForkingFactory, suite: MiniWob) -> None:
    start = await fork.reset(suite.task("miniwob/click-test-2?seed=1"))
    snapshot = await fork.snapshot()
    async with forks.fork(snapshot, simulation=True) as other:
        assert await act(fork, f"click [{named(start, 'button', 'ONE').id}]")
        assert await act(other, f"click [{named(start, 'button', 'TWO').id}]")
        assert [(await each.evaluate(NOTHING_DONE)).success for each in (fork, other)] == [True, False]
    assert (await fork.restore(snapshot)).fingerprint == start.fingerprint


@pytest.mark.parametrize("name", ["click-tab-2", "login-user-popup", "use-slider", "choose-list", "email-inbox", "text-editor"])
async def test_a_task_begins_as_it_does_in_a_local_browser_and_returns_to_it(
    fork: BrowserEnvironment, local: Environment, suite: MiniWob, name: str
) -> None:
    task = suite.task(f"miniwob/{name}?seed=2")
    start = await fork.reset(task)
    assert start.text == (await local.reset(task)).text
    snapshot = await fork.snapshot()
    await act(fork, "click_at 60 120")
    assert (await fork.restore(snapshot)).text == start.text
    assert (await fork.reset(task)).fingerprint == start.fingerprint


async def test_a_rewritten_page_is_what_is_served(forks: ForkingFactory, suite: MiniWob) -> None:
    async with (
        MiniWob(rewrite=flip_rewards).forking_factory(BrowserConfig(screenshots=False)) as flipped,
        flipped.open(simulation=True) as environment,
    ):
        start = await environment.reset(suite.task("miniwob/click-test?seed=1"))
        assert await act(environment, f"click [{named(start, 'button').id}]")
        assert not (await environment.evaluate(Outcome(actions=()))).success
