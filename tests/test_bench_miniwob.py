"""The figures that bench/miniwob.py answers for."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from exact.benchmarks.miniwob.rewards import binary
from exact.evaluation.statistics import Interval, rate
from exact.evaluation.summary import grouped

BENCH = Path(__file__).parents[1] / "bench"


def test_a_value_that_knows_nothing_must_show_no_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    figures = runpy.run_path(str(BENCH / "miniwob.py"))["figures"]
    gains = {"constant": {"information": Interval(0.1, 0.02, 0.2, 8)}, "shuffled": {"information": Interval(0.1, -0.1, 0.2, 8)}}
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
