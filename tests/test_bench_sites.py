"""bench/sites.py: which tasks its figures are of, and what an oracle that was told nothing is called."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from exact.benchmarks import registry
from exact.config import parse

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture
def sites(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location("bench_sites", BENCH / "sites.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_sites", module)
    spec.loader.exec_module(module)
    return module


def test_the_halves_are_of_all_sixty_tasks_and_have_none_in_common(sites: ModuleType) -> None:
    kinds = sites.groups(registry.expand(["trac/*", "wagtail/*"]))
    assert (len(kinds["held out"]), len(kinds["development"])) == (38, 22)
    assert not kinds["held out"] & kinds["development"]
    assert kinds["multi-step"] < kinds["held out"] and kinds["that write"] < kinds["held out"]


def test_an_uninformed_oracle_is_void_and_gives_no_headroom(sites: ModuleType) -> None:
    told, void = ({"told": count, "scores": {"trac/9": 1.0}, "success": (1.0,)} for count in (3, 0))
    react = {"told": None, "scores": {"trac/9": 0.0}, "success": (0.0,)}
    assert [sites.label("oracle", each) for each in (told, void)] == ["oracle (ORACLE)", "oracle (ORACLE, VOID)"]
    kinds = {"held out": {"trac/9"}, "multi-step": {"trac/9"}}
    names = [[each.name for each in sites.figures({"react": react, "oracle": one}, kinds, claims=True)] for one in (told, void)]
    assert names == [["headroom_multi_step"], []]


def test_every_arm_is_a_configuration_and_what_is_capped_for_each_action_differs_in_nothing_else(sites: ModuleType) -> None:
    found = {name: parse({"name": name, **settings}) for name, settings in sites.arms().items()}
    for name in ("world", "constant", "oracle"):
        one, each = found[name], found[f"{name}_each"]
        assert (one.limits.transitions, one.search.limits.transitions) == (sites.STEPS, None)
        assert (each.limits.transitions, each.search.limits.transitions) == (None, sites.EACH)
        assert (one.value, one.browser, one.limits.actions, one.search.iterations) == (
            each.value,
            each.browser,
            each.limits.actions,
            each.search.iterations,
        )


def test_a_gain_where_each_action_has_its_own_cap_is_a_figure_of_its_own(sites: ModuleType) -> None:
    rows = {name: {"told": 1, "scores": {"trac/9": score}} for name, score in (("world_each", 1.0), ("oracle_each", 1.0), ("react", 0.0))}
    found = sites.figures(rows, {"multi-step": {"trac/9"}}, claims=True)
    assert [(each.name, each.met) for each in found] == [("gain_multi_step_each_low", False), ("headroom_multi_step_each", True)]


def test_an_arm_that_ran_a_part_of_the_tasks_says_of_how_many_its_success_is(sites: ModuleType) -> None:
    row = {"scores": {"trac/9": 1.0, "trac/10": 1.0}}
    assert not sites.share(row, {"trac/9", "trac/10"}).endswith("of 2")
    assert sites.share(row, {"trac/9", "trac/11"}).endswith("of 1")
    assert sites.share(row, {"trac/11"}) == ""
