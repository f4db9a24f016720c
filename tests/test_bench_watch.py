"""Ratios of two commits count as changes where all rounds agree, and a bench that one side lacks is named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    monkeypatch.delitem(sys.modules, "watch", raising=False)
    import watch

    return watch


@pytest.mark.parametrize(
    ("ratios", "better", "found"),
    [
        ([1.2, 1.1, 1.3], 1, "better"),
        ([1.2, 1.1, 1.3], -1, "worse"),
        ([0.8, 0.9, 0.7], -1, "better"),
        ([0.8, 0.9, 0.9], 0, "changed"),
        ([1.2, 0.9, 1.3], 1, ""),
        ([1.01, 1.04, 1.03], -1, ""),
        ([2.0, 2.0], 1, ""),
    ],
)
def test_a_change_is_one_on_which_all_rounds_agree(watch: Any, ratios: list[float], better: int, found: str) -> None:
    assert watch.verdict(ratios, better) == found


@pytest.mark.parametrize(("value", "met", "better"), [(3.0, True, 1), (3.0, False, -1), (1.0, True, -1), (1.0, False, 1)])
def test_the_direction_is_that_of_the_goal(watch: Any, value: float, met: bool, better: int) -> None:
    assert watch.direction({"value": value, "goal": 2.0, "met": met}) == better
    assert watch.direction({"value": value, "goal": None, "met": True}) == 0


def test_a_bench_that_is_missing_or_fails_is_named(watch: Any, tmp_path: Path) -> None:
    assert watch.figures_of("startup", tmp_path) == "is not there"
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "startup.py").write_text("raise SystemExit('no browser')")
    assert watch.figures_of("startup", tmp_path) == "fails: no browser"


def test_a_commit_is_measured_in_a_folder_of_its_own_that_is_removed(watch: Any) -> None:
    with watch.tree("HEAD") as there:
        assert (there / "bench" / "_common.py").is_file() and there != ROOT
    assert not there.exists()
    with watch.tree("") as there:
        assert there == ROOT
