"""Every setting of the search has an effect: changed alone, it changes some search among forty in environments at random."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from exact.config import SearchConfig
from exact.config.search import OPTIONS
from exact.context import Evaluation
from exact.errors import UsageError
from exact.search.base import Done, Result, Selection, Valued, Wait
from exact.search.inspect.export import to_json
from exact.search.registry import algorithm
from exact.search.tree import SearchError
from tests.search.harness import Harness, failed
from tests.search.test_any_order import any_environment

Settings = dict[str, Any]
BASE: Settings = {"iterations": 12, "k": 4, "depth": 4, "evaluations": 2}
EFFECTS: dict[str, tuple[Settings, Any, Any]] = {
    "algorithm": ({}, "mcts", "best_first"),
    "iterations": ({}, 5, 9),
    "k": ({}, 1, 3),
    "depth": ({}, 1, 3),
    "retries": ({}, 0, 2),
    "evaluations": ({}, 1, 3),
    "explore": ({}, "puct", "uct"),
    "c": ({}, 0.1, 5.0),
    "disagreement_bonus": ({}, 0.0, 5.0),
    "reevaluations": ({"evaluations": 9}, 0, 4),
    "batch": ({"algorithm": "beam", "iterations": 25}, False, True),
    "first_play": ({"c": 0.05}, "parent", "zero"),
    "expansion": ({}, "lazy", "eager"),
    "revisit": ({}, "exhaust", "repeat"),
    "backup": ({}, "mean", "max"),
    "discount": ({}, 1.0, 0.5),
    "merging": ({}, "none", "full"),
    "candidates": ({"k": 2, "temperature": 2.0}, "best", "sampled"),
    "temperature": ({}, 1.0, 4.0),
    "widening": ({}, None, 1.0),
    "final": ({}, "visits", "value"),
    "think": ({"expansion": "eager"}, None, 0.1),
    "enough": ({}, None, 0.3),
    "commit": ({}, "replan", "plan"),
    "breadth": ({"algorithm": "beam", "iterations": 25}, 1, 4),
    "options": ({"algorithm": "gumbel"}, {}, {"scale": 3.0}),
}
"""Setting, what else is set, and two values that must differ in effect."""
OPTION_EFFECTS: dict[str, dict[str, tuple[Settings, Any, Any]]] = {
    "beam": {"score": ({"iterations": 25}, "state", "cumulative")},
    "tot_bfs": {"rating": ({"iterations": 25}, "value", "vote")},
    "gumbel": {
        "considered": ({}, 1, 3),
        "scale": ({}, 0.0, 3.0),
        "halving": ({}, "phases", "visits"),
        "sigma": ({}, "noise", "visits"),
        "noise": ({"evaluations": 1}, 0.01, 5.0),
    },
    "flat_halving": {"considered": ({}, 1, 3)},
    "abmcts": {"belief": ({}, "beta", "gaussian"), "policies": ({}, 1, 2), "patience": ({}, 1, 4)},
    "tot_dfs": {"threshold": ({"iterations": 25}, 0.0, 0.9)},
}
ELSEWHERE = {
    "workers": "tests/runs/attempt/test_order.py",
    "order": "tests/runs/attempt/test_order.py",
    "commit_by": "tests/e2e/test_kills.py",
    "prefetch": "tests/environments/restore",
    "environments": "tests/environments/restore",
    "limits": "tests/runs",
    "iteration": "tests/runs",
}
"""Settings of the runner, with the tests of their effect."""


class Judged(Harness):
    """Evaluations by two judges who disagree, and more so the more often they are asked."""

    def result(self, selection: Selection, need: Any) -> Result:
        result = super().result(selection, need)
        if not isinstance(result, Valued):
            return result
        value = result.evaluation.value
        noisy = min(1.0, max(0.0, value + 0.2 * ((selection.draw * 7 + selection.node) % 3 - 1)))
        spread = 0.5 * ((selection.node * 5) % 7) / 7
        return Valued(evaluation=Evaluation(value=noisy, samples=(noisy, noisy), disagreement=spread, between=spread, within=spread / 2))


def trace(settings: Settings, seed: int, kind: type[Harness] = Judged) -> list[str]:
    """Search and commit with three workers of whom each seventh piece of work fails. Return all that the search asked and decided."""
    dice, said = random.Random(seed), list[str]()
    run = kind(any_environment(dice), algorithm(SearchConfig(**settings)))
    tree, opened, number = run.tree, list[Selection](), 0
    for _ in range(3):
        for _ in range(2000):
            asked = run.ask() if len(opened) < 3 else Wait()
            if isinstance(asked, Done):
                said.append(asked.reason)
                break
            if isinstance(asked, Selection):
                opened.append(asked)
                said.append(repr(asked))
                continue
            selection, number = opened.pop(0), number + 1
            if number % 7 == 0:
                run.tell(selection, failed("model"))
            else:
                run.meet(selection)
        try:
            decision = run.algorithm.decide(tree)
        except SearchError:
            break
        said += [repr(decision), to_json(tree)]
        run.algorithm.advance(tree, decision.edges[0], run.step(tree.root, tree.root.edges[decision.edges[0]]))
        if tree.root.terminated:
            break
    return said


@pytest.mark.parametrize("name", EFFECTS)
def test_a_setting_changes_what_a_search_does(name: str) -> None:
    more, one, other = EFFECTS[name]
    assert any(trace({**BASE, **more, name: one}, seed) != trace({**BASE, **more, name: other}, seed) for seed in range(40))


def test_every_setting_is_here() -> None:
    assert {field.name for field in msgspec.structs.fields(SearchConfig)} == {*EFFECTS, *ELSEWHERE}
    assert {name: {field.name for field in msgspec.structs.fields(kind)} for name, kind in OPTIONS.items()} == {
        name: set(options) for name, options in OPTION_EFFECTS.items()
    }


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, options in OPTION_EFFECTS.items() for option in options])
def test_an_option_changes_what_its_algorithm_does(name: str, option: str) -> None:
    more, *values = OPTION_EFFECTS[name][option]
    one, other = ({**BASE, **more, "algorithm": name, "options": {option: value}} for value in values)
    assert any(trace(one, seed, kind) != trace(other, seed, kind) for seed in range(20) for kind in (Judged, Harness))


def test_an_option_that_an_algorithm_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="scale"):
        algorithm(SearchConfig(algorithm="mcts", options={"scale": 1.0}))
