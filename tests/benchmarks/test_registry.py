import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from exact.benchmarks import registry
from exact.benchmarks.miniwob import MiniWob
from exact.errors import UsageError


@pytest.fixture
def installed_suites(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    found: list[EntryPoint] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry for entry in found if entry.group == group])
    registry.suites.cache_clear()
    yield found
    registry.suites.cache_clear()


def test_a_task_is_found_by_its_id() -> None:
    task = registry.task("miniwob/click-test?seed=3")
    assert (task.id, task.seed, task.start) == ("miniwob/click-test?seed=3", 3, "http://miniwob.test/miniwob/click-test.html")


def test_an_unknown_task_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="'miniwob/clik-tset': did you mean 'miniwob/click-test'"):
        registry.task("miniwob/clik-tset?seed=1")


def test_an_unknown_suite_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="unknown suite 'minwob' in 'minwob/click-test': did you mean 'miniwob'"):
        registry.task("minwob/click-test")


def test_a_pattern_expands_to_tasks_then_seeds() -> None:
    ids = [task.id for task in registry.expand(["miniwob/click-tab-2-*?seed=1..2"])]
    assert ids == [f"miniwob/click-tab-2-{kind}?seed={seed}" for kind in ("easy", "hard", "medium") for seed in (1, 2)]


def test_a_task_named_twice_is_expanded_once() -> None:
    ids = [task.id for task in registry.expand(["miniwob/tic-tac-toe", "miniwob/tic*?seed=0..1"])]
    assert ids == ["miniwob/tic-tac-toe?seed=0", "miniwob/tic-tac-toe?seed=1"]


def test_a_named_list_expands_to_its_tasks() -> None:
    assert len(registry.expand(["miniwob/@browsergym?seed=0..4"])) == 625


@pytest.mark.parametrize("pattern", ["miniwob/nothing-*", "miniwob/click-tets", "miniwob/@browsergim", "minwob/*", "miniwob"])
def test_a_pattern_that_names_nothing_is_an_error(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"did you mean|no task matches"):
        registry.expand([pattern])


def test_an_installed_package_adds_a_suite(installed_suites: list[EntryPoint]) -> None:
    installed_suites.append(EntryPoint("other", "exact.benchmarks.miniwob:MiniWob", "exact.suites"))
    assert isinstance(registry.suites()["other"], MiniWob)


def test_two_suites_of_one_name_are_refused(installed_suites: list[EntryPoint]) -> None:
    installed_suites.append(EntryPoint("miniwob", "exact.benchmarks.miniwob:MiniWob", "exact.suites"))
    with pytest.raises(UsageError, match="two suites are named 'miniwob'"):
        registry.suites()


def test_listing_tasks_loads_no_browser_and_no_gymnasium() -> None:
    code = (
        "import sys; from exact.benchmarks import registry; registry.expand(['miniwob/*']);"
        "unwanted = {'playwright', 'gymnasium', 'selenium', 'numpy', 'miniwob', 'exact.environments.browser', 'exact.benchmarks.webarena'};"
        "print(unwanted & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
