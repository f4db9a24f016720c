import pytest

from exact.benchmarks.miniwob import MiniWob
from exact.environments.base import Environment, EnvironmentFactory
from exact.errors import ActionError
from exact.observation import Element, Observation
from exact.task import Outcome, Score

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOTHING_DONE = Outcome(actions=())


def named(observation: Observation, role: str, name: str = "") -> Element:
    return next(e for e in observation.elements if e.role == role and name in e.name)


async def act(environment: Environment, text: str) -> bool:
    """Take a step; whether it ended the episode."""
    return (await environment.step(environment.actions.parse(text))).terminated


async def test_solving_a_task_scores_one(environment: Environment, suite: MiniWob) -> None:
    start = await environment.reset(suite.task("miniwob/click-test?seed=1"))
    assert start.instruction == "Click the button."
    assert await act(environment, f"click [{named(start, 'button').id}]")
    score = await environment.evaluate(NOTHING_DONE)
    assert (score.value, score.success) == (1.0, True) and score.raw is not None and score.raw > 0


async def test_failing_a_task_scores_zero_with_the_raw_reward(environment: Environment, suite: MiniWob) -> None:
    start = await environment.reset(suite.task("miniwob/click-test-2?seed=1"))
    assert await act(environment, f"click [{named(start, 'button', 'TWO').id}]")
    assert await environment.evaluate(NOTHING_DONE) == Score(value=0.0, success=False, raw=-1.0)


async def test_an_unfinished_episode_scores_zero_and_says_so(environment: Environment, suite: MiniWob) -> None:
    await environment.reset(suite.task("miniwob/click-test"))
    assert await environment.evaluate(NOTHING_DONE) == Score(value=0.0, success=False, reason="episode not finished")


async def test_a_step_after_the_end_is_refused_and_the_end_is_not_observed(environment: Environment, suite: MiniWob) -> None:
    start = await environment.reset(suite.task("miniwob/click-test"))
    click = environment.actions.parse(f"click [{named(start, 'button').id}]")
    end = await environment.step(click)
    assert end.terminated and end.observation is None
    for action in (click, environment.actions.parse("click_at 80 100"), environment.actions.parse("wait")):
        with pytest.raises(ActionError):
            await environment.step(action)


async def test_the_goal_is_given_once_as_the_instruction(environment: Environment, suite: MiniWob) -> None:
    start = await environment.reset(suite.task("miniwob/enter-text?seed=2"))
    assert "into the text field and press Submit" in start.instruction
    assert "into the text field" not in start.text


async def test_a_goal_with_a_picture_stays_visible(environment: Environment, suite: MiniWob) -> None:
    await environment.reset(suite.task("miniwob/use-colorwheel-2"))
    assert "following color" in (await environment.reset(suite.task("miniwob/use-colorwheel-2"))).text


async def test_the_seed_chooses_the_problem_and_no_port_shows(environment: Environment, suite: MiniWob) -> None:
    first, second, again = [await environment.reset(suite.task(f"miniwob/click-checkboxes?seed={seed}")) for seed in (1, 2, 1)]
    assert first.instruction != second.instruction
    assert (first.text, first.instruction, first.fingerprint) == (again.text, again.instruction, again.fingerprint)
    assert first.url == "http://miniwob.test/miniwob/click-checkboxes.html"


async def test_two_environments_do_not_disturb_each_other(environments: EnvironmentFactory, suite: MiniWob) -> None:
    async with environments.open(simulation=False) as one, environments.open(simulation=True) as two:
        tasks = [suite.task(f"miniwob/click-test-2?seed={seed}") for seed in (1, 2)]
        starts = [await environment.reset(task) for environment, task in zip((one, two), tasks, strict=True)]
        assert starts[0].elements != starts[1].elements
        assert await act(two, f"click [{named(starts[1], 'button', 'TWO').id}]")
        assert await act(one, f"click [{named(starts[0], 'button', 'ONE').id}]")
        assert [(await environment.evaluate(NOTHING_DONE)).value for environment in (one, two)] == [1.0, 0.0]


async def test_the_start_cover_is_out_of_reach(environment: Environment, suite: MiniWob) -> None:
    """Loading the page again shows the cover; behind it the button does nothing until a problem is begun."""
    task = suite.task("miniwob/click-test?seed=1")
    await environment.reset(task)
    assert not await act(environment, f'goto "{task.start}"')
    behind = (await environment.step(environment.actions.parse("click_at 80 105"))).observation
    assert behind and not await act(environment, f"click [{named(behind, 'button').id}]")
    assert (await environment.evaluate(NOTHING_DONE)).reason == "episode not finished"


@pytest.mark.parametrize("name", ["flight.AA", "flight.Alaska", "flight.Alaska-auto"])
async def test_an_airline_opens_in_its_frame_with_a_goal_and_fields(name: str, environment: Environment, suite: MiniWob) -> None:
    start = await environment.reset(suite.task(f"miniwob/{name}?seed=0"))
    assert "Departure City" in start.instruction
    assert any(element.role in ("textbox", "combobox", "searchbox") for element in start.elements)
    assert await environment.evaluate(NOTHING_DONE) == Score(value=0.0, success=False, reason="episode not finished")
