"""The search of training tasks with rewards."""

from __future__ import annotations

import pytest

from exact.agents.learned.agent import LearnedAgent
from exact.agents.learned.network import untrained
from exact.environments.base import Environment
from exact.errors import UsageError
from exact.learning.builtin.explore import ExploredTask, Explorer, ExploreSettings, solution
from exact.learning.builtin.split import load_split
from tests.learning.builtin.worlds import Curtain, Lamps, task

SETTINGS = ExploreSettings(episodes=40, all_steps=400)


async def explored(environment: Environment, *, by_path: bool = False, settings: ExploreSettings = SETTINGS) -> ExploredTask:
    explorer = Explorer(LearnedAgent(untrained()), load_split(), settings)
    return await explorer.explore(environment, task(), by_path=by_path)


@pytest.mark.parametrize("id", ["miniwob/click-test-2?seed=30000", "miniwob/click-tab-2?seed=10000", "lamps"])
async def test_a_task_of_a_test_is_refused_before_its_environment_is_touched(id: str) -> None:
    environment = Lamps()
    with pytest.raises(UsageError, match="is no training task"):
        await Explorer(LearnedAgent(untrained()), load_split(), SETTINGS).explore(environment, task(id))
    assert environment.resets == 0


async def test_the_way_to_the_reward_is_found_and_learned() -> None:
    found = await explored(Lamps())
    start = next(node for node in found.nodes if node.context.observation.fingerprint == "lit 0")
    good = solution(start)
    assert [start.read.actions[at].key for at in good] == ["click [3]"]
    assert sum(good.values()) == pytest.approx(1.0)


async def test_a_search_repeats() -> None:
    one, other = await explored(Lamps()), await explored(Lamps())
    assert one.returns == other.returns
    assert [node.visits for node in one.nodes] == [node.visits for node in other.nodes]


async def test_an_outcome_that_contradicts_an_earlier_one_is_noticed() -> None:
    assert (await explored(Lamps(fails_by_turns=True))).contradicted
    assert not (await explored(Lamps())).contradicted


async def test_an_action_that_changes_nothing_is_not_followed_again() -> None:
    found = await explored(Lamps())
    start = next(node for node in found.nodes if node.context.observation.fingerprint == "lit 0")
    idle = [edge for at, edge in start.edges.items() if start.read.actions[at].key == "click [1]"]
    assert all(edge.closed for edge in idle)


async def test_an_action_whose_effect_is_not_seen_leads_to_a_state_of_its_own() -> None:
    found = await explored(Curtain())
    good = {node.read.actions[at].key for node in found.nodes for at in solution(node) if not node.context.history}
    assert not found.contradicted and good == {"scroll_in [1] down"}


async def test_an_end_without_a_reward_is_tried_twice_at_most() -> None:
    found = await explored(Lamps(fails=True))
    assert max(edge.visits for node in found.nodes for edge in node.edges.values() if edge.ended == 0) == 2


async def test_steps_are_bounded() -> None:
    found = await explored(Lamps(), settings=ExploreSettings(episodes=100, steps=3, all_steps=9))
    assert found.steps <= 9 + 3


async def test_a_state_where_nothing_succeeded_teaches_the_policy_nothing() -> None:
    found = await explored(Lamps(), settings=ExploreSettings(episodes=1, steps=1))
    assert [solution(node) for node in found.nodes] == [{}]
