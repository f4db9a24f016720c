"""The known answers of the ready-made worlds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.toy.agents import best_rewards, expected_rewards
from exact.environments.toy.chance import bernoulli_bandit
from exact.environments.toy.doors import right_doors
from exact.environments.toy.factory import ToyWorld, bandit, deceptive_chain, doors, ice, trapped_maze
from exact.environments.toy.graph import ToyEdge, ToyState
from exact.environments.toy.maze import rooms_on_the_way_out, way_out
from exact.errors import UsageError


def looks(world: ToyWorld, state: str) -> float:
    found = world.states[state]
    return found.looks if found.looks is not None else found.reward if found.reward is not None else 0.5


def ahead(world: ToyWorld, state: str, steps: int) -> float:
    """The best looks within reach, so many steps ahead; what ended stays."""
    edges = world.states[state].edges if steps else {}
    return max((ahead(world, edge.to, steps - 1) for edge in edges.values()), default=looks(world, state))


def walked(world: ToyWorld, *, steps: int, most: int = 40) -> float:
    """The reward of who follows the best looks so many steps ahead; 0 steps: the priors."""
    state = world.start
    for _ in range(most):
        found = world.states[state]
        if found.reward is not None:
            return found.reward
        edges = found.edges.values()
        state = max(edges, key=lambda e: ahead(world, e.to, steps - 1) if steps else e.prior).to
    return 0.0


@given(st.integers(2, 8))
def test_greedy_fails_in_the_deceptive_chain_and_looking_to_its_end_wins(n: int) -> None:
    world = deceptive_chain(n)
    assert [walked(world, steps=steps) for steps in (0, *range(1, n))] == [0.0] * n
    assert walked(world, steps=n) == 1.0
    assert best_rewards(world)["left1"] == 0.0


def test_the_best_arm_of_a_bandit_is_the_one_with_the_largest_reward() -> None:
    best = best_rewards(bandit(4, rewards=(0.1, 0.7, 0.3, 0.2)))
    assert (best["start"], max(range(4), key=lambda i: best[f"end {i}"])) == (0.7, 1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_an_arm_that_pays_by_chance_is_worth_its_mean(means: list[float]) -> None:
    world = bernoulli_bandit(means)
    assert expected_rewards(world)["start"] == pytest.approx(max(means))
    for i, mean in enumerate(means):
        assert world.states["start"].edges[f"arm {i}"].outcomes.get("paid", 0.0) == pytest.approx(mean)


@given(st.integers(4, 6), st.integers(4, 6), st.integers(0, 2), st.integers(0, 99))
def test_the_way_out_of_a_maze_enters_no_trap_and_traps_end_it(width: int, height: int, traps: int, seed: int) -> None:
    world = trapped_maze(width, height, traps=traps, seed=seed)
    room = world.start
    for move in way_out(world):
        assert world.states[room].reward is None
        room = world.states[room].edges[move].to
    assert world.states[room].reward == 1.0
    assert sum(state.reward == 0.0 and not state.edges for state in world.states.values()) == traps


@pytest.mark.parametrize("seed", range(20))
def test_the_likeliest_step_falls_into_a_trap_that_stands_beside_the_way_and_a_look_one_step_ahead_shows_it(seed: int) -> None:
    world = trapped_maze(seed=seed)
    trapped = 0
    for room in rooms_on_the_way_out(world)[:-1]:
        edges = world.states[room].edges.values()
        beside = [edge.to for edge in edges if world.states[edge.to].reward == 0.0]
        trapped += bool(beside)
        assert not beside or max(edges, key=lambda edge: edge.prior).to in beside
        assert all(looks(world, name) == 0.0 < looks(world, room) for name in beside)
    assert trapped and walked(world, steps=0) == 0.0


def test_more_traps_than_rooms_beside_the_way_are_refused() -> None:
    with pytest.raises(UsageError, match="larger maze"):
        trapped_maze(3, 3, traps=9)


@given(st.integers(1, 5), st.integers(0, 99))
def test_the_right_doors_lead_out_and_any_other_one_to_a_cell_for_good(n: int, seed: int) -> None:
    world, best = doors(n, seed=seed), best_rewards(doors(n, seed=seed))
    room = world.start
    for side in right_doors(n, seed=seed):
        edges = world.states[room].edges
        assert edges[side].write and "way on" in world.states[edges[f"look {side}"].to].text
        other = edges["left" if side == "right" else "right"]
        assert (other.to, other.write, best[other.to]) == ("cell", True, 0.0)
        room = edges[side].to
    assert world.states[room].reward == 1.0
    assert walked(world, steps=0) == 0.0


def test_both_sides_are_right_doors_somewhere() -> None:
    assert {right_doors(1, seed=seed) for seed in range(20)} == {("left",), ("right",)}


@given(st.floats(0, 1), st.integers(1, 5))
def test_the_bridge_holds_and_the_ice_is_worth_what_does_not_break(slip: float, n: int) -> None:
    world = ice(n, slip=slip)
    worth = expected_rewards(world)
    assert (worth["bank"], worth["bridge 1"]) == (1.0, 1.0)
    chances = world.states["bank"].edges["ice"].outcomes
    assert sum(chance * worth[name] for name, chance in chances.items()) == pytest.approx(1 - slip)


SENSELESS = [{"x": 0.5}, {"b": 1.2}, {"b": -0.1}]


@pytest.mark.parametrize("slips", SENSELESS)
def test_slips_that_are_no_probabilities_of_states_are_refused(slips: dict[str, float]) -> None:
    states = {"a": ToyState(edges={"on": ToyEdge(to="b", slips=slips)}), "b": ToyState(reward=1.0)}
    with pytest.raises(UsageError):
        ToyWorld(name="w", instruction="", start="a", states=states)
