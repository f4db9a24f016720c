"""A decision tree as an environment with agents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.context import Context, Taken
from exact.environments.check import check
from exact.environments.toy.agents import NoisyJudge, NoisyPolicy, best_rewards, expected_rewards
from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.factory import TOY_ACTIONS, DecisionPolicy, DecisionStates, DecisionValue, ToyFactory, decision_graph, toy_task
from exact.errors import UsageError
from exact.task import Outcome

TREE = DecisionTree(3, 3, seed=4)
WORLD = decision_graph(TREE)
TASK = toy_task(WORLD)


async def at(*links: str, refused: str = "", draw: int = 0, confirms: bool = False) -> Context:
    """Return the context after some links."""
    async with ToyFactory(WORLD).open(simulation=True) as environment:
        here, history, ended = await environment.reset(TASK), [], False
        for link in links:
            action = TOY_ACTIONS.action("go", link)
            history.append(Taken(observation=here, action=action))
            transition = await environment.step(action)
            here, ended = transition.observation or here, transition.terminated
    tried = (Taken(observation=here, action=TOY_ACTIONS.action("go", refused), error="no"),) if refused else ()
    return Context(
        task=TASK,
        instruction=TASK.instruction,
        observation=here,
        history=tuple(history),
        terminated=ended,
        tried=tried,
        draw=draw,
        confirms=confirms,
    )


@given(st.integers(2, 4), st.integers(1, 3), st.integers(0, 999))
async def test_the_sure_way_scores_in_the_environment(branching: int, depth: int, seed: int) -> None:
    tree = DecisionTree(branching, depth, seed=seed)
    async with ToyFactory(decision_graph(tree)).open(simulation=False) as environment:
        await environment.reset(TASK)
        for link in tree.sure.split("."):
            transition = await environment.step(environment.actions.action("go", link))
        assert transition.terminated
        assert (await environment.evaluate(Outcome(actions=()))).success


def test_the_environments_states_are_those_of_the_tree() -> None:
    assert len(WORLD.states) == len(list(WORLD.states)) == len(set(WORLD.states)) == 40
    assert best_rewards(WORLD) == expected_rewards(WORLD) == {state: float(TREE.wins(state)) for state in WORLD.states}
    for nowhere in ("3", "0.0.0.0", "x", "0.", ".", "00"):
        assert nowhere not in WORLD.states
        with pytest.raises(KeyError):
            WORLD.states[nowhere]


def test_a_large_tree_costs_nothing_until_it_is_visited() -> None:
    states = DecisionStates(DecisionTree(10, 12))
    assert len(states) == 1_111_111_111_111 and "9.9.9" in states
    assert states[DecisionTree(10, 12).sure].reward == 1.0


async def test_the_policy_says_what_the_noisy_one_does_likeliest_first_without_what_was_refused() -> None:
    policy = NoisyPolicy(TREE, missing=0.3)
    priors = dict(policy.priors("1"))
    found = await DecisionPolicy(policy).propose(await at("1"), TOY_ACTIONS, 9)
    assert {int(str(p.action.args[0])): pytest.approx(p.prior) for p in found} == priors
    assert [p.prior for p in found] == sorted(priors.values(), reverse=True)
    best = str(found[0].action.args[0])
    left = await DecisionPolicy(policy).propose(await at("1", refused=best), TOY_ACTIONS, 1)
    assert (left[0].action, left[0].prior) == (found[1].action, 1.0)


async def test_a_value_is_one_draw_and_a_confirmation_is_another() -> None:
    judge = NoisyJudge(TREE, sd=0.3)
    value = DecisionValue(judge)
    said = [(await value.evaluate(await at("1", draw=draw))).value for draw in range(4)]
    assert said == [judge.judgement("1", draw) for draw in range(4)]
    assert (await value.evaluate(await at("1", draw=2, confirms=True))).value == judge.judgement("1", -3) != said[2]


async def test_a_terminated_node_is_judged_by_the_end_it_came_to() -> None:
    sure = TREE.sure.split(".")
    value = DecisionValue(NoisyJudge(TREE, sd=0.0))
    assert [(await value.evaluate(await at(*sure[:steps]))).value for steps in range(4)][-1] == 1.0
    lost = next(str(i) for i in range(3) if not TREE.outcome(f"{sure[0]}.{sure[1]}.{i}"))
    assert (await value.evaluate(await at(*sure[:2], lost))).value == 0.0


async def test_an_answer_counts_nowhere_in_a_tree() -> None:
    context = await at("1")
    stopped = Taken(observation=context.observation, action=TOY_ACTIONS.action("stop", "done"))
    ended = Context(task=TASK, instruction="", observation=context.observation, history=(stopped,), terminated=True)
    with pytest.raises(UsageError, match="no answer counts"):
        await DecisionValue(NoisyJudge(TREE)).evaluate(ended)


async def test_a_tree_keeps_the_contract() -> None:
    found = await check(ToyFactory(decision_graph(DecisionTree(3, 9))), TASK, quick=True)
    assert [finding for finding in found if not finding.passed] == []
