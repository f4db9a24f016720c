"""The figures that bench/miniwob.py answers for."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from exact.evaluation.statistics import Interval

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
