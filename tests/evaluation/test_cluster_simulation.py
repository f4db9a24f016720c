"""The simulated cluster of bench/scale.py, against makespans that are known."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_PATH = Path(__file__).parents[2] / "bench" / "_cluster_simulation.py"
_SPEC = importlib.util.spec_from_file_location("cluster_simulation", _PATH)
assert _SPEC and _SPEC.loader
simulated = importlib.util.module_from_spec(_SPEC)
sys.modules["cluster_simulation"] = simulated
_SPEC.loader.exec_module(simulated)


def cluster(**more: object) -> object:
    return simulated.Cluster(**{"workers": 4, "durations": [10.0], **more})


def test_equal_attempts_take_as_many_rounds_as_processes_need() -> None:
    assert simulated.makespan(cluster(), 8) == 20.0
    assert simulated.makespan(cluster(start=5.0, gap=1.0), 8) == 26.0


def test_the_driver_serves_one_attempt_after_the_other() -> None:
    assert simulated.makespan(cluster(workers=100, driver=1.0), 100) == 110.0


def test_a_rate_limit_is_a_bound_however_many_processes_there_are() -> None:
    spans = [simulated.makespan(cluster(workers=workers, calls=10, calls_per_minute=60.0), 50) for workers in (50, 500)]
    assert spans == [500.0, 500.0]


def test_lost_attempts_go_on_and_each_ends_once() -> None:
    ends = simulated.ends(cluster(failure=0.3), 200)
    assert len(ends) == 200
    assert ends[-1] == pytest.approx(500.0, rel=0.1), "what was done before the loss is not done again"


def test_scaling_stops_where_the_provider_says() -> None:
    useful, spans = simulated.largest_useful(cluster(calls=10, calls_per_minute=600.0), 1000, (1, 2, 4, 8, 16, 32, 64))
    assert useful in (8, 16) and spans[64] == pytest.approx(1000.0, rel=0.05)


def test_processes_of_one_machine_start_as_many_at_once_as_it_has_processors() -> None:
    assert simulated.ends(cluster(start=5.0, together=2), 4) == [15.0, 15.0, 20.0, 20.0]
    assert simulated.ends(cluster(start=5.0), 4) == [15.0] * 4
