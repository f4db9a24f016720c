"""Sessions without a server: episodes, rewards, refusals, snapshots and forks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from exact.action import Action
from exact.config import Config
from exact.environments.base import StateChanged, Transition
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.known import maze, way_out
from exact.errors import UsageError
from exact.interop.openenv.catalogue import Catalogue, catalogue
from exact.interop.openenv.session import SavedState, ServedSession


@pytest.fixture
async def mazes() -> AsyncIterator[Catalogue]:
    found = catalogue("toy", Config())
    yield found
    await found.close()


def session(tasks: Catalogue, forks: dict[str, SavedState] | None = None, most: int = 0) -> ServedSession:
    return ServedSession(tasks, {} if forks is None else forks, most=most, screenshot=False)


async def test_the_way_out_of_a_maze_gives_its_reward_at_the_end(mazes: Catalogue) -> None:
    one = session(mazes)
    await one.reset(task_name="maze")
    shown = [await one.step(f"go('{move}')" if number % 2 else f'go "{move}"') for number, move in enumerate(way_out(maze()))]
    assert [each.reward for each in shown] == [0.0] * (len(shown) - 1) + [1.0] and [each.done for each in shown][-2:] == [False, True]
    with pytest.raises(UsageError, match="call reset"):
        await one.step('go "south"')
    assert one.state["cum_reward"] == 1.0 and one.state["step_count"] == len(shown)
    assert (await one.reset(task_name="maze")).done is False and one.state["cum_reward"] == 0.0
    await one.close()


async def test_a_refused_action_leaves_the_state_and_says_why(mazes: Catalogue) -> None:
    one = session(mazes)
    before = await one.reset(task_name="toy/maze")
    for text in ('go "up"', "jump('1')", "noise", "go('up')"):
        shown = await one.step(text)
        assert (
            shown.fields["last_action_error"] and shown.fields["error"] and shown.fields["text"] == before.fields["text"] and not shown.done
        )
    assert one.state["step_count"] == 4 and shown.fields["metadata"]["browsergym_info"]["steps"] == 4
    await one.close()


async def test_refused_actions_end_an_episode_at_its_last_step(mazes: Catalogue) -> None:
    one = session(mazes, most=2)
    await one.reset(task_name="maze")
    assert not (await one.step("jump('1')")).done
    last = await one.step("jump('1')")
    assert last.done and last.reward == 0.0 and last.fields["error"]
    with pytest.raises(UsageError, match="the episode is over"):
        await one.step("jump('1')")
    await one.close()


async def test_an_episode_is_cut_off_at_its_last_step_and_scored(mazes: Catalogue) -> None:
    one = session(mazes, most=2)
    await one.reset(task_name="maze")
    assert not (await one.step("noop()")).done
    last = await one.step("noop()")
    assert last.done and last.reward == 0.0
    await one.close()


async def test_a_snapshot_is_restored_and_forked(mazes: Catalogue) -> None:
    forks: dict[str, SavedState] = {}
    one, two = session(mazes, forks), session(mazes, forks)
    await one.reset(task_name="maze")
    first, *rest = way_out(maze())
    at = await one.step(f'go "{first}"')
    saved = await one.snapshot()
    assert saved["forks"] and saved["fidelity"] == "full"
    other = await two.reset(fork=saved["snapshot"])
    assert other.fields["text"] == at.fields["text"]
    for move in rest:
        shown = await two.step(f'go "{move}"')
    assert shown.done and shown.reward == 1.0
    await one.step(f'go "{rest[0]}"')
    assert (await one.restore(saved["snapshot"])).fields["text"] == at.fields["text"]
    await one.close()
    with pytest.raises(UsageError, match="can be forked"):
        await two.reset(fork=saved["snapshot"])
    await two.close()


@pytest.mark.parametrize(
    ("name", "words"), [("toy/maize", "did you mean 'maze'"), ("miniwob/click-tst", "click-test"), ("minwob", "did you mean 'miniwob'")]
)
def test_an_unknown_environment_is_refused_with_the_nearest(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        catalogue(name, Config())


async def test_an_unknown_task_is_refused_and_the_session_goes_on(mazes: Catalogue) -> None:
    one = session(mazes)
    with pytest.raises(UsageError, match="unknown task 'mase'"):
        await one.reset(task_name="mase")
    with pytest.raises(UsageError, match="call reset first"):
        await one.step("noop()")
    await one.reset(task_name="maze")
    await one.close()
    with pytest.raises(UsageError, match="connect again"):
        await one.reset(task_name="maze")


@pytest.mark.parametrize("name", ["click-test", "miniwob.click-test", "miniwob/click-test"])
def test_a_task_of_a_suite_is_named_with_or_without_it(name: str) -> None:
    tasks = catalogue("miniwob/click-*", Config())
    assert tasks.task(name, 3).id == "miniwob/click-test?seed=3"


async def test_a_refusal_because_the_page_changed_shows_the_page_as_it_is(mazes: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    one = session(mazes)
    before = await one.reset(task_name="maze")
    move = way_out(maze())[0]
    step = ToyEnvironment.step

    async def changed(self: ToyEnvironment, action: Action) -> Transition:
        raise StateChanged("the page had changed", await step(self, action))

    monkeypatch.setattr(ToyEnvironment, "step", changed)
    shown = await one.step(f'go "{move}"')
    assert shown.fields["error"] == "the page had changed" and shown.fields["text"] != before.fields["text"]
    await one.close()
