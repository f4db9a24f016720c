"""Each warning comes with its figure, and only where there is something to warn of."""

from __future__ import annotations

import msgspec

from exact.environments.toy.known import ToyEdge, ToyState, bandit, chain, form
from exact.search.algorithms.greedy import Greedy
from exact.search.inspect.health import Symptom, health
from exact.search.mcts import MCTS
from tests.search.harness import Fault, Harness, failed, graph


def symptoms(run: Harness, **figures: int) -> dict[str, Symptom]:
    run.search()
    return {symptom.kind: symptom for symptom in health(run.tree, **figures)}


def ranked(looks: list[float], prior: float = 1.0) -> Harness:
    """Return a corridor of rooms with a dead end beside each; the way on is `prior` times as likely."""
    states = {
        f"r{i}": ToyState(edges={"on": ToyEdge(to=f"r{i + 1}", prior=prior), "off": ToyEdge(to=f"d{i}")}, looks=look)
        for i, look in enumerate(looks)
    }
    dead = {f"d{i}": ToyState(edges={"x": ToyEdge(to=f"d{i}")}, looks=look / 2) for i, look in enumerate(looks)}
    return Harness(graph(states | dead | {f"r{len(looks)}": ToyState(reward=1.0)}, start="r0"), MCTS(iterations=40, k=2))


def test_a_sound_search_is_not_warned_of() -> None:
    assert symptoms(ranked([0.3, 0.4, 0.5, 0.6, 0.7], prior=3.0), steps=10, replayed=5) == {}


def test_priors_without_spread() -> None:
    found = symptoms(ranked([0.3, 0.4, 0.5, 0.6, 0.7]))
    assert found["priors"].figure == 1.0 and "100%" in found["priors"].text


def test_saturated_values() -> None:
    found = symptoms(ranked([1.0, 1.0, 0.0, 0.0, 0.0], prior=3.0))
    assert found["saturated"].figure > 0.5


def test_candidates_that_are_all_equal() -> None:
    run = Harness(form(4), MCTS(iterations=60, k=4))
    run.looks = lambda node: 0.5  # type: ignore[method-assign]
    found = symptoms(run)
    assert found["equal"].figure == 1.0
    assert "equal" not in symptoms(Harness(form(4), MCTS(iterations=60, k=4)))


def test_thrashing_restores() -> None:
    assert "restores" not in symptoms(Harness(chain(3), MCTS(iterations=8, k=2)), steps=10, replayed=20)
    found = symptoms(Harness(chain(3), MCTS(iterations=8, k=2)), steps=10, replayed=45)
    assert found["restores"].figure == 4.5 and "4.5 actions" in found["restores"].text


def broken(kind: str, need: str = "step") -> Harness:
    fault: Fault = lambda s, asked: failed(kind) if asked == need and s.id % 2 else None  # type: ignore[arg-type]  # noqa: E731
    return Harness(form(5), MCTS(iterations=40, k=4, retries=0), fault)


def test_many_failures() -> None:
    assert symptoms(broken("model"))["failures"].figure > 0.2


def test_many_refusals() -> None:
    assert symptoms(broken("action"))["refused"].figure > 0.3


def test_steps_that_change_nothing() -> None:
    stay = {f"x{i}": ToyEdge(to="a") for i in range(5)}
    found = symptoms(Harness(graph({"a": ToyState(edges=stay)}), Greedy(k=5)))
    assert found["noops"].figure == 1.0


def test_proposals_that_are_never_followed() -> None:
    found = symptoms(Harness(bandit(50), MCTS(iterations=5, k=50)))
    assert found["unused"].figure == 46 / 50


def test_pages_that_were_observed_while_they_changed() -> None:
    tree = Harness(chain(3), MCTS(iterations=8, k=2)).tree
    assert "unsettled" not in {each.kind for each in health(tree, unsettled=[True] + 9 * [False])}
    (found,) = (each for each in health(tree, unsettled=3 * [True] + 7 * [False]) if each.kind == "unsettled")
    assert found.figure == 0.3 and "30% of the steps" in found.text and "settle_seconds" in found.text


def test_few_cases_give_no_warning() -> None:
    assert symptoms(Harness(bandit(2), MCTS(iterations=3, k=2))) == {}


def test_evaluations_that_could_not_be_read() -> None:
    run = ranked([0.3, 0.4, 0.5, 0.6, 0.7], prior=3.0)
    run.search()
    for node in run.tree.nodes[1:4]:
        assert node.evaluation is not None
        node.evaluation = msgspec.structs.replace(node.evaluation, unjudged=True)
    (found,) = (each for each in health(run.tree) if each.kind == "unjudged")
    assert found.figure > 0.1 and "cannot be read" in found.text
