"""No reward reaches the search."""

import asyncio
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec
import pytest

from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob import suite as suite_module
from exact.benchmarks.miniwob.suite import BROWSERGYM
from exact.environments.base import Environment, EnvironmentFactory
from exact.task import Outcome, Score

pytestmark = pytest.mark.asyncio(loop_scope="session")
LEAK = re.compile(r"reward|last 10 average|time left|episodes done|\bSTART\b|WOB_", re.I)
"""What the page writes on its display, its cover and its console."""


def leaks(walk) -> list[str]:
    """Return every part of an episode that shows something of the reward's display."""
    told = [msgspec.json.encode(observation).decode() for observation in walk.observations]
    told += [msgspec.json.encode((t.info, t.effects)).decode() for _, t in walk.steps]
    return [match[0] for text in told for match in LEAK.finditer(text)]


@pytest.mark.parametrize("seed", [0, 1, 2])
async def test_no_observation_of_any_task_tells_of_rewards(environments: EnvironmentFactory, suite: MiniWob, walk, seed: int) -> None:
    """A guarantee of all 125 tasks: each of the three seeds takes 125 resets and up to 375 steps, two environments at a time."""

    async def some(names: tuple[str, ...]) -> int:
        ended = 0
        async with environments.open(simulation=False) as environment:
            for name in names:
                episode = await walk(environment, suite.task(f"miniwob/{name}?seed={seed}"))
                assert episode.start.instruction, name
                assert not leaks(episode), name
                ended += bool(episode.steps and episode.steps[-1][1].terminated)
        return ended

    ended = sum(await asyncio.gather(some(BROWSERGYM[::2]), some(BROWSERGYM[1::2])))
    assert ended > 20, "too few episodes ended for this to show anything"


async def test_without_hiding_every_observation_tells_of_rewards(
    monkeypatch: pytest.MonkeyPatch, suite: MiniWob, walk, open_environment: Callable[[MiniWob], AbstractAsyncContextManager[Environment]]
) -> None:
    monkeypatch.setattr(suite_module, "HIDDEN", ())
    async with open_environment(suite) as environment:
        episode = await walk(environment, suite.task("miniwob/click-checkboxes"))
    assert {"Last reward", "Time left"} <= set(re.findall("Last reward|Time left", episode.start.text))
    assert len(leaks(episode)) > len(episode.observations)


async def test_flipped_rewards_change_nothing_before_evaluation(suite: MiniWob, flipped: MiniWob, walk, open_environment) -> None:
    tasks = [
        f"miniwob/{name}?seed={seed}" for name in ("click-test-2", "click-button", "click-dialog", "click-option") for seed in (1, 2, 3)
    ]

    async def run(variant: MiniWob) -> list[tuple[object, Score]]:
        async with open_environment(variant) as environment:
            return [(await walk(environment, variant.task(id)), await environment.evaluate(Outcome(actions=()))) for id in tasks]

    seen = await asyncio.gather(run(suite), run(flipped))
    plain, turned = ([walk for walk, _ in walks] for walks in seen)
    assert plain == turned
    raws = [[score.raw for _, score in walks] for walks in seen]
    assert raws[0] == [raw if raw is None else -raw for raw in raws[1]] and {1.0, -1.0} <= set(raws[0])
    assert [score.success for _, score in seen[0]] != [score.success for _, score in seen[1]]


async def test_the_console_tells_nothing(environment: Environment, suite: MiniWob) -> None:
    """The page logs its raw reward: the environment's page must stay silent."""
    start = await environment.reset(suite.task("miniwob/click-test"))
    button = next(e for e in start.elements if e.role == "button")
    heard: list[str] = []
    page = environment.page  # type: ignore[attr-defined]
    page.on("console", lambda message: heard.append(message.text))
    await environment.step(environment.actions.parse(f"click [{button.id}]"))
    await page.evaluate("console.log('reward: 1')")
    assert heard == []


async def test_no_socket_listens_after_the_environments_have_ended(
    monkeypatch: pytest.MonkeyPatch, suite: MiniWob, open_environment
) -> None:
    addresses = []
    serve = suite_module.serve

    @asynccontextmanager
    async def noted(*args):
        async with serve(*args) as address:
            addresses.append(address)
            yield address

    monkeypatch.setattr(suite_module, "serve", noted)
    async with open_environment(suite) as environment:
        await environment.reset(suite.task("miniwob/click-test"))
    host, _, port = addresses[0].partition(":")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))


async def test_after_the_end_the_page_shows_no_reward_and_begins_nothing_new(environment: Environment, suite: MiniWob) -> None:
    start = await environment.reset(suite.task("miniwob/click-test"))
    button = next(e for e in start.elements if e.role == "button")
    assert (await environment.step(environment.actions.parse(f"click [{button.id}]"))).terminated
    page = environment.page  # type: ignore[attr-defined]
    await page.evaluate("core.startEpisode(); core.cover_div.click(); core.startEpisodeReal()")
    assert await page.evaluate("[core.cover_div.style.display, document.getElementById('reward-last').textContent]") == ["none", "-"]
    assert (await environment.evaluate(Outcome(actions=()))).success
