"""The known answers of the ready-made environments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.toy.agents import best_rewards, expected_rewards
from exact.environments.toy.factory import ToyGraph, bandit, deceptive_chain, doors, ice, trapped_maze
from exact.environments.toy.graph import ToyEdge, ToyState, right_doors
from exact.environments.toy.known import bernoulli_bandit, rooms_on_the_way_out, way_out
from exact.errors import UsageError


def looks(environment: ToyGraph, state: str) -> float:
    found = environment.states[state]
    return found.looks if found.looks is not None else found.reward if found.reward is not None else 0.5


def ahead(environment: ToyGraph, state: str, steps: int) -> float:
    """Return the best values within reach in that many steps; ended states stay."""
    edges = environment.states[state].edges if steps else {}
    return max((ahead(environment, edge.to, steps - 1) for edge in edges.values()), default=looks(environment, state))


def walked(environment: ToyGraph, *, steps: int, most: int = 40) -> float:
    """Return the reward of following the best value that many steps ahead; 0 steps: of following the priors."""
    state = environment.start
    for _ in range(most):
        found = environment.states[state]
        if found.reward is not None:
            return found.reward
        edges = found.edges.values()
        state = max(edges, key=lambda e: ahead(environment, e.to, steps - 1) if steps else e.prior).to
    return 0.0


@given(st.integers(2, 8))
def test_greedy_fails_in_the_deceptive_chain_and_looking_to_its_end_wins(n: int) -> None:
    environment = deceptive_chain(n)
    assert [walked(environment, steps=steps) for steps in (0, *range(1, n))] == [0.0] * n
    assert walked(environment, steps=n) == 1.0
    assert best_rewards(environment)["left1"] == 0.0


def test_the_best_arm_of_a_bandit_is_the_one_with_the_largest_reward() -> None:
    best = best_rewards(bandit(4, rewards=(0.1, 0.7, 0.3, 0.2)))
    assert (best["start"], max(range(4), key=lambda i: best[f"end {i}"])) == (0.7, 1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_an_arm_that_pays_by_chance_is_worth_its_mean(means: list[float]) -> None:
    environment = bernoulli_bandit(means)
    assert expected_rewards(environment)["start"] == pytest.approx(max(means))
    for i, mean in enumerate(means):
        assert environment.states["start"].edges[f"arm {i}"].outcomes.get("paid", 0.0) == pytest.approx(mean)


@given(st.integers(4, 6), st.integers(4, 6), st.integers(0, 2), st.integers(0, 99))
def test_the_way_out_of_a_maze_enters_no_trap_and_traps_end_it(width: int, height: int, traps: int, seed: int) -> None:
    environment = trapped_maze(width, height, traps=traps, seed=seed)
    room = environment.start
    for move in way_out(environment):
        assert environment.states[room].reward is None
        room = environment.states[room].edges[move].to
    assert environment.states[room].reward == 1.0
    assert sum(state.reward == 0.0 and not state.edges for state in environment.states.values()) == traps


@pytest.mark.parametrize("seed", range(20))
def test_the_likeliest_step_leads_into_a_trap_that_one_simulated_step_shows(seed: int) -> None:
    environment = trapped_maze(seed=seed)
    trapped = 0
    for room in rooms_on_the_way_out(environment)[:-1]:
        edges = environment.states[room].edges.values()
        beside = [edge.to for edge in edges if environment.states[edge.to].reward == 0.0]
        trapped += bool(beside)
        assert not beside or max(edges, key=lambda edge: edge.prior).to in beside
        assert all(looks(environment, name) == 0.0 < looks(environment, room) for name in beside)
    assert trapped and walked(environment, steps=0) == 0.0


def test_more_traps_than_rooms_beside_the_way_are_refused() -> None:
    with pytest.raises(UsageError, match="larger maze"):
        trapped_maze(3, 3, traps=9)


@given(st.integers(1, 5), st.integers(0, 99))
def test_the_right_doors_lead_out_and_any_other_one_to_a_cell_for_good(n: int, seed: int) -> None:
    environment, best = doors(n, seed=seed), best_rewards(doors(n, seed=seed))
    room = environment.start
    for side in right_doors(n, seed=seed):
        edges = environment.states[room].edges
        assert edges[side].write and "way on" in environment.states[edges[f"look {side}"].to].text
        other = edges["left" if side == "right" else "right"]
        assert (other.to, other.write, best[other.to]) == ("cell", True, 0.0)
        room = edges[side].to
    assert environment.states[room].reward == 1.0
    assert walked(environment, steps=0) == 0.0


def test_both_sides_are_right_doors_somewhere() -> None:
    assert {right_doors(1, seed=seed) for seed in range(20)} == {("left",), ("right",)}


@given(st.floats(0, 1), st.integers(1, 5))
def test_the_bridge_holds_and_the_ice_is_worth_what_does_not_break(slip: float, n: int) -> None:
    environment = ice(n, slip=slip)
    worth = expected_rewards(environment)
    assert (worth["bank"], worth["bridge 1"]) == (1.0, 1.0)
    chances = environment.states["bank"].edges["ice"].outcomes
    assert sum(chance * worth[name] for name, chance in chances.items()) == pytest.approx(1 - slip)


SENSELESS = [{"x": 0.5}, {"b": 1.2}, {"b": -0.1}]


@pytest.mark.parametrize("slips", SENSELESS)
def test_slips_that_are_no_probabilities_of_states_are_refused(slips: dict[str, float]) -> None:
    states = {"a": ToyState(edges={"on": ToyEdge(to="b", slips=slips)}), "b": ToyState(reward=1.0)}
    with pytest.raises(UsageError):
        ToyGraph(name="w", instruction="", start="a", states=states)
