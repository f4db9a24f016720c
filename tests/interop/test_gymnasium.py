"""Environments of exact as environments of Gymnasium, checked by Gymnasium itself."""

import asyncio
import subprocess
import sys
import threading
import warnings

import gymnasium
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import exact
from exact.environments.adapters.gym import gymnasium_factory
from exact.environments.base import StateChanged
from exact.environments.toy.environment import Faults, ToyEnvironment
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain
from exact.errors import EnvironmentFailure, UsageError
from exact.interop.gymnasium import GymnasiumEnv
from exact.interop.gymnasium.register import gymnasium_id, register
from tests.library.number import Number


@pytest.fixture
def made():
    opened = []

    def make(id, **options):
        opened.append(gymnasium.make(id, **options) if isinstance(id, str) else GymnasiumEnv(id, **options))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.mark.parametrize("id", ["exact/toy.chain", "exact/toy.maze", "exact/miniwob.click-test"])
def test_gymnasiums_own_checker_finds_nothing(made, id):
    environment = made(id)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(environment.unwrapped)


def test_an_episode_has_texts_a_reward_at_its_end_and_the_rest_in_info(made):
    environment = made("exact/toy.chain")
    observation, info = environment.reset(seed=0)
    assert 'link "on"' in observation and observation in environment.observation_space
    assert info["instruction"] == "Go on to the end." and info["elements"][1]["name"] == "on" and "go" in info["actions"]
    steps = [environment.step('go "on"') for _ in range(4)]
    assert [(reward, ended) for _, reward, ended, _, _ in steps] == [(0.0, False)] * 3 + [(1.0, True)]
    assert steps[-1][0] == "" and steps[-1][4]["is_success"] and steps[-1][4]["score"] == 1.0


@pytest.mark.parametrize("wrong", ["", "fly", 'go "up"', "go [1]", "\x00"])
def test_a_wrong_action_changes_nothing_and_says_why(made, wrong):
    environment = made("exact/toy.chain")
    before, _ = environment.reset(seed=0)
    after, reward, terminated, truncated, info = environment.step(wrong)
    assert (after, reward, terminated, truncated) == (before, 0.0, False, False) and info["error"]


@pytest.mark.parametrize("over", [False, True])
def test_a_refusal_because_the_state_changed_by_itself_shows_the_state_as_it_is_now(made, monkeypatch, over):
    async def step(self, action):
        raise StateChanged("it changed", exact.Transition(observation=None if over else exact.Observation(text="now"), terminated=over))

    environment = made("exact/toy.chain").unwrapped
    environment.reset(seed=0)
    monkeypatch.setattr(ToyEnvironment, "step", step)
    after, reward, terminated, _, info = environment.step('go "on"')
    assert (after, reward, terminated, info["error"]) == ("" if over else "now", 0.0, over, "it changed")


def test_a_step_needs_an_episode(made):
    environment = made("exact/toy.chain").unwrapped
    with pytest.raises(ResetNeeded):
        environment.step('go "on"')
    environment.reset(seed=0)
    environment.step('go "off"')
    with pytest.raises(ResetNeeded):
        environment.step('go "on"')


def test_a_seed_makes_the_same_task_again_and_resets_without_one_go_on_from_it(made):
    environment = made("exact/toy.maze")

    def tasks():
        return [environment.reset(seed=7)[1]["task"], *(environment.reset()[1]["task"] for _ in range(2))]

    first = tasks()
    assert first[0] == "toy/maze?seed=7" and len(set(first)) == 3 and tasks() == first


def test_samples_are_actions_that_the_state_allows(made):
    environment = made("exact/toy.chain")
    environment.reset(seed=0)
    environment.action_space.seed(1)
    assert {environment.action_space.sample() for _ in range(20)} == {'go "on"', 'go "off"'}


def test_close_ends_the_thread_and_may_be_called_twice(made):
    environment = made("exact/toy.chain")
    environment.reset(seed=0)
    assert any(each.name == "exact-gymnasium" for each in threading.enumerate())
    environment.close()
    environment.close()
    assert not any(each.name == "exact-gymnasium" for each in threading.enumerate())


async def test_it_is_usable_where_an_event_loop_runs(made):
    environment = made("exact/toy.chain")
    environment.reset(seed=0)
    await asyncio.sleep(0)
    assert environment.step('go "off"')[2]


def test_an_environment_of_ones_own_is_one_of_gymnasium(made):
    task = exact.Task(id="number/22", instruction="Reach 4.")
    environment = made(task, environments=Number)
    _, info = environment.reset(seed=3)
    assert info["task"] == "number/22?seed=3" and info["instruction"] == "Reach 4."
    environment.step("two")
    assert environment.step("two")[1] in (0.0, 1.0)


def test_an_environment_of_gymnasium_keeps_its_rewards(made):
    environment = made(exact.Task(id="taxi", instruction=""), environments=gymnasium_factory("Taxi-v4"))
    environment.reset(seed=3)
    assert environment.step("act_5")[1] == -10.0


def test_a_broken_environment_is_opened_again(made):
    factory = ToyFactory(chain(4), faults=Faults(fail_every=2))
    environment = made(exact.Task(id="toy/chain", instruction=""), environments=factory)
    environment.reset(seed=0)
    environment.step('go "on"')
    with pytest.raises(EnvironmentFailure):
        environment.step('go "on"')
    assert 'link "on"' in environment.reset(seed=0)[0]


def test_texts_are_drawn_where_there_is_no_screenshot(made):
    environment = made("exact/toy.chain", render_mode="rgb_array")
    environment.reset(seed=0)
    drawn = environment.render()
    assert drawn.shape == (480, 640, 3) and drawn.min() < 50


def test_several_run_side_by_side_in_a_vector():
    vector = gymnasium.make_vec("exact/toy.chain", num_envs=2, vectorization_mode="sync")
    observations, _ = vector.reset(seed=0)
    _, rewards, terminated, _, _ = vector.step(('go "off"', 'go "on"'))
    vector.close()
    assert len(observations) == 2 and list(terminated) == [True, False] and list(rewards) == [0.0, 0.0]


def test_a_wrong_name_or_mode_says_what_is_right(made):
    with pytest.raises(UsageError, match=r"mazee.*maze"):
        made("exact/toy.chain").unwrapped.__class__("toy/mazee").reset(seed=0)
    with pytest.raises(UsageError, match="'ansi' or 'rgb_array'"):
        GymnasiumEnv("toy/chain", render_mode="human")
    with pytest.raises(UsageError, match="miniwob/click-test"):
        gymnasium_id("chain")
    with pytest.raises(UsageError, match="miniwob"):
        register(["miniwobb"])


def test_a_program_that_forgets_to_close_ends_and_leaves_no_process():
    program = (
        "import gymnasium, exact.interop.gymnasium\n"
        "environment = gymnasium.make('exact/miniwob.click-test')\n"
        "print(environment.reset(seed=0)[1]['instruction'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Click the button." in done.stdout and "Traceback" not in done.stderr
