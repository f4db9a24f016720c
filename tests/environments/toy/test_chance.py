"""Environments whose steps are stochastic."""

from __future__ import annotations

import pytest

from exact.environments.base import Environment
from exact.environments.toy.factory import ToyFactory, bernoulli_bandit, chain, ice, toy_task
from exact.environments.toy.graph import ToyEdge
from exact.errors import UsageError

TASK = toy_task("ice")


async def crossed(environment: Environment, times: int) -> list[str]:
    """Return the states after stepping on the ice, each time after a reset."""
    seen = []
    for _ in range(times):
        await environment.reset(TASK)
        moved = await environment.step(environment.actions.parse('go "ice"'))
        seen.append(moved.observation.url.rpartition("/")[2] if moved.observation else "")
    return seen


async def test_fresh_environments_repeat_each_other_and_a_reset_one_continues_counting() -> None:
    environments = ToyFactory(ice(seed=3))
    async with environments.open(simulation=True) as one, environments.open(simulation=True) as other:
        first = await crossed(one, 20)
        assert await crossed(other, 20) == first
        assert set(first) == {"shore", "water"}
        assert await crossed(one, 20) != first
    async with ToyFactory(ice(seed=4)).open(simulation=True) as third:
        assert await crossed(third, 20) != first


async def test_other_steps_do_not_change_where_a_step_leads() -> None:
    environments = ToyFactory(ice(seed=3))
    async with environments.open(simulation=True) as one, environments.open(simulation=True) as other:
        seen = []
        for _ in range(10):
            await other.reset(TASK)
            await other.step(other.actions.parse('go "bridge"'))
            seen += await crossed(other, 1)
        assert seen == await crossed(one, 10)


async def test_a_fork_continues_counting_from_its_snapshot() -> None:
    environments = ToyFactory(ice(seed=3))
    async with environments.open(simulation=True) as one:
        ten = await crossed(one, 10)
        await one.reset(TASK)
        snapshot = await one.snapshot()
        later = await crossed(one, 5)
        async with environments.fork(snapshot, simulation=True) as branch:
            assert await crossed(branch, 5) == later != ten[:5]


async def test_the_ice_breaks_about_as_often_as_configured() -> None:
    async with ToyFactory(ice(slip=0.3, seed=1)).open(simulation=True) as environment:
        assert (await crossed(environment, 1000)).count("water") == pytest.approx(300, abs=75)


async def test_arms_pay_about_as_often_as_their_means() -> None:
    environment = bernoulli_bandit((0.2, 0.9))
    for arm, mean in (("arm 0", 0.2), ("arm 1", 0.9)):
        paid = sum(environment.next_state("start", arm, tried) == "paid" for tried in range(2000))
        assert paid / 2000 == pytest.approx(mean, abs=0.05)


async def test_only_an_environment_that_slips_says_that_it_is_not_deterministic() -> None:
    for environment, fixed in ((ice(), False), (ice(slip=0.0), True), (chain(), True)):
        async with ToyFactory(environment).open(simulation=True) as opened:
            assert opened.capabilities.deterministic is fixed


def test_an_edges_outcomes_sum_to_one_and_draws_fall_on_them() -> None:
    edge = ToyEdge(to="a", slips={"b": 0.25, "c": 0.25, "d": 0.0})
    assert edge.outcomes == {"a": 0.5, "b": 0.25, "c": 0.25}
    assert [edge.outcome(point) for point in (0.0, 0.3, 0.5, 0.99)] == ["b", "c", "a", "a"]


def test_a_chance_that_is_none_is_refused() -> None:
    for make in (lambda: ice(slip=1.5), lambda: ice(0), lambda: bernoulli_bandit(()), lambda: bernoulli_bandit((0.5, 2.0))):
        with pytest.raises(UsageError):
            make()
