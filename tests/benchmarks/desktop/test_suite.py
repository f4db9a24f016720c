"""The tasks of the suite `desktop`, and their evaluators."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pytest

from exact.benchmarks import registry
from exact.benchmarks.desktop.problem import resolved
from exact.benchmarks.desktop.suite import DesktopSuite, programs
from exact.benchmarks.osworld.format import parse
from exact.config import BrowserConfig
from exact.environments.base import Environment
from exact.environments.desktop.factory import absent
from exact.errors import ActionError, UsageError
from exact.task import Outcome

SUITE = DesktopSuite()
HERE = ("multiply", "rename-file", "copy-sentence", "play-film")
"""Tasks that are solved in this test: one of each kind of application."""


def test_a_seed_draws_the_task_and_equal_seeds_draw_the_same() -> None:
    for name in SUITE.ids():
        drawn = {SUITE.task(f"{name}?seed={seed}").private["desktop"] for seed in range(6)}
        words = {SUITE.task(f"{name}?seed={seed}").instruction for seed in range(6)}
        assert len(drawn) > 1 or len(words) > 1, f"{name} does not vary"
        assert SUITE.task(f"{name}?seed=1") == registry.task(f"{name}?seed=1")
    with pytest.raises(UsageError, match="did you mean 'desktop/multiply'"):
        SUITE.task("desktop/multiplay")


def test_the_tasks_are_task_files_of_osworld_over_six_applications() -> None:
    used = Counter(program for name in SUITE.ids() for program in programs(SUITE.task(name)))
    assert len(SUITE.ids()) >= 30 and len(used) == 6 and min(used.values()) >= 2
    files = [parse(json.loads(str(SUITE.task(f"{name}?seed=2").private["osworld"])), name) for name in SUITE.ids()]
    assert sum(not each.possible for each in files) >= 3 and sum(len(each.related_apps) > 1 for each in files) >= 5
    assert len({each.id for each in files}) == len(files)


def test_a_task_whose_application_is_missing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exact.benchmarks.desktop.suite.absent", lambda: "")
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "evince" else f"/usr/bin/{name}")
    SUITE.check(SUITE.task("desktop/multiply"))
    with pytest.raises(UsageError, match=r"amount-due.* needs evince, not installed"):
        SUITE.check(SUITE.task("desktop/amount-due"))


async def attempted(environment: Environment, name: str, other: str) -> bool:
    """Reset to a task, carry out the reference of another one as far as it goes, and return the evaluator's judgement."""
    seen, done = await environment.reset(SUITE.task(name)), list[str]()
    for written in SUITE.problem(other).reference:
        try:
            action = environment.actions.parse(resolved(written, seen))
            seen = (await environment.step(action)).observation or seen
        except ActionError:
            break
        done.append(action.key)
    return (await environment.evaluate(Outcome(actions=tuple(done)))).success


async def test_a_reference_solves_its_task_and_neither_nothing_nor_another_seed_s_does() -> None:
    if lack := absent() or ", ".join(name for name in ("galculator", "pcmanfm", "evince", "mousepad") if not shutil.which(name)):
        pytest.skip(f"no desktop: {lack}")
    async with (
        SUITE.environments(BrowserConfig(sandbox="never", screenshots=False)) as environments,
        environments.open(simulation=False) as environment,
    ):
        for name in HERE:
            id = f"desktop/{name}?seed=1"
            wrong = f"desktop/{name}?seed=2" if name != "play-film" else "desktop/multiply?seed=1"
            assert not await attempted(environment, id, wrong), name
            await environment.reset(SUITE.task(id))
            assert not (await environment.evaluate(Outcome(actions=()))).success, name
            assert await attempted(environment, id, id), name
            assert not (await environment.evaluate(Outcome(actions=("fail",)))).success or name == "play-film"


async def test_a_task_with_a_terminal_is_refused_outside_a_sandbox() -> None:
    if lack := absent():
        pytest.skip(f"no desktop: {lack}")
    async with SUITE.environments(BrowserConfig(sandbox="never")) as environments, environments.open(simulation=False) as environment:
        with pytest.raises(UsageError, match="it runs in a sandbox only"):
            await environment.reset(SUITE.task("desktop/count-log"))
