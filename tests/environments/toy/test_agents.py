"""Agents for toy environments."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.context import Context, Taken
from exact.environments.toy.agents import ToyPolicy, ToyValue, best_rewards, gaussian
from exact.environments.toy.factory import (
    TOY_ACTIONS,
    WORLDS,
    ToyFactory,
    ToyGraph,
    ToyState,
    bandit,
    chain,
    deceptive_chain,
    form,
    toy_graph,
    toy_task,
)
from exact.errors import UsageError


async def at(environment: ToyGraph, *path: str, refused: str = "") -> Context:
    """Return the context after a path, terminated where the path ends the episode."""
    task = toy_task(environment)
    async with ToyFactory(environment).open(simulation=True) as toy:
        here, history, ended = await toy.reset(task), [], False
        for name in path:
            action = TOY_ACTIONS.action("go", name)
            history.append(Taken(observation=here, action=action))
            transition = await toy.step(action)
            here, ended = transition.observation or here, transition.terminated
    tried = (Taken(observation=here, action=TOY_ACTIONS.parse(refused), error="no"),) if refused else ()
    return Context(task=task, instruction=task.instruction, observation=here, history=tuple(history), terminated=ended, tried=tried)


async def test_priors_are_the_environments_own_best_first() -> None:
    environment = deceptive_chain()
    found = await ToyPolicy(environment).propose(await at(environment), TOY_ACTIONS, 5)
    assert [(str(p.action), p.prior) for p in found] == [('go "left"', 0.7), ('go "right"', pytest.approx(0.3))]


@given(st.integers(1, 8), st.integers(1, 9), st.floats(0, 3), st.integers(0, 99))
async def test_at_most_k_distinct_proposals_whose_priors_sum_to_one(arms: int, k: int, noise: float, seed: int) -> None:
    environment = bandit(arms)
    found = await ToyPolicy(environment, noise=noise, seed=seed).propose(await at(environment), TOY_ACTIONS, k)
    assert len({p.action.key for p in found}) == len(found) == min(arms, k)
    assert sum(p.prior for p in found) == pytest.approx(1)
    assert [p.prior for p in found] == sorted((p.prior for p in found), reverse=True)


async def test_a_refused_action_is_not_proposed_again_and_answers_are() -> None:
    environment = deceptive_chain()
    found = await ToyPolicy(environment).propose(await at(environment, refused='go "left"'), TOY_ACTIONS, 5)
    assert [(str(p.action), p.prior) for p in found] == [('go "right"', 1.0)]
    asked = ToyGraph(name="q", instruction="?", start="q", states={"q": ToyState(answers={"4": 1.0})})
    assert [str(p.action) for p in await ToyPolicy(asked).propose(await at(asked), TOY_ACTIONS, 5)] == ['stop "4"']


async def test_looks_deceive_and_the_oracle_does_not() -> None:
    environment = deceptive_chain()
    left, right = await at(environment, "left"), await at(environment, "right")
    looks, oracle = ToyValue(environment), ToyValue(environment, oracle=True)
    assert (await looks.evaluate(left)).value > (await looks.evaluate(right)).value
    assert [(await oracle.evaluate(context)).value for context in (left, right)] == [0.0, 1.0]


async def test_a_terminated_node_is_judged_by_where_its_last_action_led() -> None:
    environment = chain(1)
    values = [(await ToyValue(environment).evaluate(await at(environment, *path))).value for path in ((), ("on",), ("off",))]
    assert values == [0.0, 1.0, 0.0]


async def test_noise_depends_on_seed_and_state_and_on_no_order() -> None:
    environment = form(3)
    one, other = await at(environment), await at(environment, "toggle A")
    noisy = ToyValue(environment, noise=0.3, seed=1)
    first = [(await noisy.evaluate(c)).value for c in (one, other)]
    assert [(await noisy.evaluate(c)).value for c in (other, one)] == first[::-1]
    assert [(await ToyValue(environment, noise=0.3, seed=2).evaluate(c)).value for c in (one, other)] != first
    policies = [await ToyPolicy(environment, noise=1.0, seed=seed).propose(one, TOY_ACTIONS, 4) for seed in (1, 1, 2)]
    assert policies[0] == policies[1] != policies[2]


@given(st.integers(0, 10**6), st.floats(0, 10))
async def test_a_noisy_value_stays_in_range(seed: int, noise: float) -> None:
    environment = chain(2)
    assert 0 <= (await ToyValue(environment, noise=noise, seed=seed).evaluate(await at(environment))).value <= 1


def test_draws_are_standard_normal_and_the_same_in_every_process() -> None:
    draws = [gaussian(0, str(i)) for i in range(2000)]
    assert abs(sum(draws) / 2000) < 0.1
    assert abs(sum(d * d for d in draws) / 2000 - 1) < 0.1
    code = "from exact.environments.toy.agents import gaussian; print(gaussian(0, '7'))"
    for seed in ("1", "2"):
        found = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True)
        assert float(found.stdout) == draws[7]


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", range(3))
def test_every_ready_made_environment_can_be_won_from_its_start(name: str, seed: int) -> None:
    environment = toy_graph(name, seed)
    assert best_rewards(environment)[environment.start] == 1.0


async def test_agents_of_another_environment_say_so() -> None:
    with pytest.raises(UsageError, match="same environment"):
        await ToyValue(chain()).evaluate(await at(bandit()))
