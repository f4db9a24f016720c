"""The figures that bench/miniwob.py answers for."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exact.benchmarks.miniwob.suite import binary
from exact.evaluation.statistics import Estimate, rate
from exact.evaluation.summary import grouped

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Return the names of a script of bench/."""
    monkeypatch.syspath_prepend(str(BENCH))
    return lambda name: runpy.run_path(str(BENCH / name))


def test_a_value_that_knows_nothing_must_show_no_gain(bench: Callable[[str], dict[str, Any]]) -> None:
    figures = bench("miniwob.py")["figures"]
    gains = {"constant": {"information": Estimate(0.1, 0.02, 0.2, 8)}, "shuffled": {"information": Estimate(0.1, -0.1, 0.2, 8)}}
    found = figures({"success": {}, "gain": gains}, ["click-test"])
    assert [(figure.name, figure.value, figure.met) for figure in found] == [
        ("gain_constant_information_low", 0.02, False),
        ("gain_shuffled_information_low", -0.1, True),
    ]
    assert figures({"success": {}, "gain": {}}, ["click-test"]) == []


def test_the_page_says_what_the_attempts_came_to_in_both_readings_of_the_reward() -> None:
    found = json.loads((BENCH / "results" / "miniwob.json").read_text())
    lines = (BENCH.parent / "docs" / "results" / "miniwob.md").read_text().splitlines()
    table = [line.strip("| ").split(" | ") for line in lines[lines.index(next(line for line in lines if line.startswith("| success |"))) :]]
    head, rows = table[0], {row[0].partition(" ")[0]: row for row in table[2 : 2 + len(found["agents"])]}
    tasks = {f"miniwob/{name}?seed={seed}" for name in found["groups"]["held out"] for seed in found["seeds"]}
    for agent, results in found["results"].items():
        kept = {id: (score, raw) for id, (score, raw, *_) in results.items() if id in tasks}
        success = str(rate(grouped({id: score for id, (score, _) in kept.items()})))
        full = str(rate(grouped({id: binary(raw or 0.0) for id, (_, raw) in kept.items()})))
        assert [rows[agent][head.index(name)] for name in ("held out (55)", "held out, binary")] == [success, full]


@pytest.mark.parametrize(
    ("names", "steps", "told"),
    [
        (["react", "mcts"], 40, "15 actions, 40 transitions"),
        (["react", "mcts"], 25, "15 actions, 25 transitions"),
        (["react", "mcts@15"], 40, "15 actions, 100 transitions, 15 evaluations"),
        (["mcts", "mcts@15"], 40, "each agent its own (not equal)"),
        (["react"], 40, "15 actions"),
    ],
)
def test_the_budget_that_tables_state_is_that_of_the_agents(
    names: list[str], steps: int, told: str, bench: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    script = bench("miniwob.py")
    configs = {name: script["settings"](name, steps) for name in names}
    folder = script["folder_of"](tmp_path / "work", script["tasks_of"](["click-test"], [120]), configs)
    assert folder.plan.stated_budget == told
    assert script["folder_of"](tmp_path / "work", folder.plan.tasks, configs).plan.agents == tuple(names), "it is gone on with"


def test_agents_with_other_caps_are_not_added_to_what_states_one_budget(bench: Callable[[str], dict[str, Any]], tmp_path: Path) -> None:
    script = bench("miniwob.py")
    tasks = script["tasks_of"](["click-test"], [120])
    script["folder_of"](tmp_path, tasks, {"mcts": script["settings"]("mcts")})
    with pytest.raises(SystemExit, match="says 15 actions, 40 transitions, which is not what"):
        script["folder_of"](tmp_path, tasks, {"mcts@15": script["settings"]("mcts@15")})
    assert len(script["folder_of"](tmp_path, tasks, {"tot": script["settings"]("tot")}).plan.agents) == 2


def test_first_light_states_the_steps_that_its_agents_have(bench: Callable[[str], dict[str, Any]], tmp_path: Path) -> None:
    script = bench("first_light.py")
    configs = {name: script["parse"]({**each, "name": name}) for name, each in script["agents"](200).items()}
    folder = script["folder_of"](tmp_path, script["tasks_of"](["click-test"], [12]), configs)
    assert folder.plan.stated_budget == "15 actions, 200 transitions"
