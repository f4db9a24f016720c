"""Gymnasium environments as environments, their spaces mapped both ways."""

from __future__ import annotations

import struct
from pathlib import Path

import gymnasium
import pytest

import exact
from exact.action import ActionSpace
from exact.agents.base import Policy
from exact.agents.policy.prior import RandomPolicy
from exact.context import Context, Proposal
from exact.environments.adapters.gym import gymnasium_factory
from exact.environments.check import check
from exact.environments.reward import reward_of
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.task import Outcome, Task

TASK = Task(id="gym/test?seed=3", instruction="", seed=3)
ODD = {"imports": ("odd",), "paths": (Path(__file__).parent,), "options": {"render_mode": "rgb_array"}}
QUICK = ("resets alike", "actions round trip", "repeats", "errors are typed")


async def test_a_small_discrete_space_has_a_verb_for_each_action_and_the_reward_is_not_shown() -> None:
    async with (
        gymnasium_factory("FrozenLake-v1", options={"is_slippery": False}) as environments,
        environments.open(simulation=True) as environment,
    ):
        seen = await environment.reset(TASK)
        assert (seen.text, list(environment.actions.verbs)) == ("observation: 0", ["act_0", "act_1", "act_2", "act_3", "stop"])
        for step in (1, 1, 2, 1, 2, 2):
            transition = await environment.step(environment.actions.action(f"act_{step}"))
            assert transition.info == {} and not transition.effects
        assert transition.terminated and transition.observation is None
        score = await environment.evaluate(Outcome(actions=()))
        assert (score.success, score.raw) == (True, 1.0)


async def test_other_spaces_are_json_both_ways_and_pictures_are_screenshots() -> None:
    async with gymnasium_factory("Odd-v0", **ODD) as environments, environments.open(simulation=True) as environment:  # type: ignore[arg-type]
        seen = await environment.reset(Task(id="odd", instruction="", metadata={"options": '{"last": "begin"}'}))
        assert seen.text.startswith('observation.taken: [0,0]\nobservation.last: "begin"')
        assert environment.capabilities.screenshots and struct.unpack(">II", (seen.screenshot or b"")[16:24]) == (6, 4)
        for example in seen.elements:
            environment.actions.action("act", example.name)
        after = (await environment.step(environment.actions.action("act", '{"go": 0, "push": [0.5, -0.5], "say": "hi"}'))).observation
        assert after is not None and after.text.startswith('observation.taken: [1,0]\nobservation.last: "hi"')
        assert (await environment.step(environment.actions.action("act", '{"go": 2, "push": [1, 1], "say": ""}'))).terminated
        assert (await environment.evaluate(Outcome(actions=()))).success


async def test_an_action_outside_the_space_is_refused_and_changes_nothing() -> None:
    wrong = ('{"go": 7, "push": [0, 0], "say": ""}', '{"go": 0}', "up", '{"go": 0, "push": [0], "say": "x"}', '"\\u0000')
    async with gymnasium_factory("Odd-v0", **ODD) as environments, environments.open(simulation=True) as environment:  # type: ignore[arg-type]
        await environment.reset(TASK)
        for text in wrong:
            with pytest.raises(ActionError, match=r"is not an action of Dict|is not in Dict"):
                await environment.step(environment.actions.action("act", text))
        after = (await environment.step(environment.actions.action("act", '{"go": 1, "push": [0, 0], "say": ""}'))).observation
        assert after is not None and after.text.startswith("observation.taken: [0,0]")


@pytest.mark.parametrize("id", ["CartPole-v1", "Blackjack-v1", "Taxi-v4"])
async def test_gymnasiums_own_keep_the_contract(id: str) -> None:
    async with gymnasium_factory(id) as environments:
        found = await check(environments, TASK, quick=True, names=QUICK)
    assert [each for each in found if not each.passed] == []


async def test_a_snapshot_in_a_sandbox_is_kept_and_forked() -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    async with gymnasium_factory("FrozenLake-v1", options={"is_slippery": False}, sandbox=True) as environments:
        found = await check(environments, TASK, quick=True, names=("snapshots are states", "forks are independent"))
    assert [each for each in found if not each.passed or each.skipped] == []


async def test_an_environment_that_does_not_exist_is_named() -> None:
    with pytest.raises(EnvironmentFailure, match="`FrozenLak` doesn't exist"):
        async with gymnasium_factory("FrozenLak-v1") as environments, environments.open(simulation=True):
            pass


class Uniform:
    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        return tuple(Proposal(action=actions.action(verb), prior=1) for verb in actions.verbs if verb != "stop")


@pytest.mark.parametrize("policy", [Uniform, RandomPolicy])
@pytest.mark.parametrize("slippery", [False, True])
async def test_a_uniform_policy_solves_the_lake_by_its_reward_in_400_steps(policy: type[Policy], slippery: bool) -> None:
    solution = await exact.solve(
        exact.Task(id="lake", instruction="Cross the lake."), agent=exact.Agent(policy=policy(), value=exact.RewardValue()),
        environments=gymnasium_factory("FrozenLake-v1", options={"is_slippery": slippery}),
    )  # fmt: skip
    assert solution.score == 1.0 and solution.result.transitions <= 400
    assert solution.result.trained_with_reward


async def test_rewards_below_zero_are_added_up() -> None:
    async with gymnasium_factory("Taxi-v4") as environments, environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        assert reward_of(environment) == 0.0
        await environment.step(environment.actions.action("act_5"))
        assert reward_of(environment) == -10.0


async def test_stop_says_that_the_environment_takes_no_step() -> None:
    async with gymnasium_factory("Taxi-v4") as environments, environments.open(simulation=True) as environment:
        assert "takes no step" in environment.actions.verbs["stop"].help
        await environment.reset(TASK)
        assert (await environment.step(environment.actions.action("stop", ""))).terminated and reward_of(environment) == 0.0


async def test_an_environment_of_gymnasium_itself_is_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match=r"gymnasium_factory\(ID\)"):
        await exact.search(gymnasium.make("Taxi-v4"), policy=Uniform(), value=exact.RewardValue())  # type: ignore[arg-type]
