"""The same attempts on Ray, where it is installed."""

from __future__ import annotations

import asyncio
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from exact.evaluation.remote.engine import RayEngine
from exact.evaluation.schedule import Schedule
from exact.reflection.memory.open import SQLiteMemory
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from tests.evaluation.toys import learning, run, settings, toy_bench

pytest.importorskip("ray", reason="Ray is not installed: shells/setup.sh --extras")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def ray() -> Iterator[None]:
    from exact.evaluation.remote.cluster import connected

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with connected(None, {"browser": 4.0}):
            yield


async def test_attempts_on_ray_come_to_the_results_of_this_process(tmp_path: Path) -> None:
    here, there = toy_bench(tmp_path / "here"), toy_bench(tmp_path / "there")
    await run(here)
    async with RayEngine(there.path, hang=60, make="tests.evaluation.toys:worker") as engine:
        await Schedule(folder=there, engine=engine, parallel=2).run()
    assert [(each.agent, each.task, each.score, each.evaluations) for each in there.results()] == [
        (each.agent, each.task, each.score, each.evaluations) for each in here.results()
    ]
    for agent in here.plan.agents:
        assert {path.relative_to(there.path) for path in (there.path / "agents" / agent).rglob("*") if path.is_file()} == {
            path.relative_to(here.path) for path in (here.path / "agents" / agent).rglob("*") if path.is_file()
        }


@pytest.mark.parametrize("round", [0, 2])
async def test_a_memory_that_travels_holds_what_it_holds_after_a_run_in_this_process(round: int, tmp_path: Path) -> None:
    def learned(name: str) -> list[str]:
        with SQLiteMemory(tmp_path / f"{name}.sqlite") as memory:
            return [each.id for each in memory.reflections()]

    folders = {name: toy_bench(tmp_path / name, learning("one", tmp_path / f"{name}.sqlite", round=round)) for name in ("here", "there")}
    await run(folders["here"], parallel=1, learns=True)
    async with RayEngine(folders["there"].path, hang=60, make="tests.evaluation.toys:learning_worker") as engine:
        await Schedule(folder=folders["there"], engine=engine, parallel=2, rounds={"one": max(1, round)}).run()
    told = [event for path in folders["there"].path.glob("agents/*/tasks/*/journal.jsonl") for event in read_journal(path)]
    assert {event.reflection.id for event in told if isinstance(event, ev.Reflected)} >= set(learned("there"))
    assert len(learned("there")) > 2
    assert sorted(learned("there")) == sorted(learned("here"))


async def test_processes_that_are_idle_are_kept_for_later_attempts() -> None:
    """It waits for three seconds: Ray ends what is idle for one, where it has more than it keeps."""
    import ray

    @ray.remote(num_cpus=0)
    def process() -> int:
        time.sleep(2.0)
        return os.getpid()

    many = (os.cpu_count() or 1) + 3
    used = {*await asyncio.gather(*(process.remote() for _ in range(many)))}
    await asyncio.sleep(3.0)
    assert len(used) > (os.cpu_count() or 1)
    for each in used:
        os.kill(each, 0)  # raises ProcessLookupError where it has ended


async def test_a_process_that_hangs_is_killed_and_its_attempt_rerun(tmp_path: Path) -> None:
    """It waits for the 6 s after which a process counts as hung, once its attempt has begun."""
    folder = toy_bench(tmp_path / "bench", seeds=1)
    async with RayEngine(folder.path, hang=6, make="tests.evaluation.toys:blocking_worker", arguments=(str(tmp_path),)) as engine:
        await Schedule(folder=folder, engine=engine, parallel=2).run()
    assert sorted(each.attempts for each in folder.results()) == [1, 2] and all(each.status == "scored" for each in folder.results())
    assert sum(each.hung for each in folder.attempts()) == 1


async def test_an_attempt_whose_process_dies_goes_on_in_another_where_its_journal_ended(tmp_path: Path) -> None:
    folder, whole = toy_bench(tmp_path / "bench", settings("mcts"), seeds=1), toy_bench(tmp_path / "whole", settings("mcts"), seeds=1)
    await run(whole)
    async with RayEngine(folder.path, hang=60, make="tests.evaluation.toys:dying_worker", arguments=(str(tmp_path),)) as engine:
        await Schedule(folder=folder, engine=engine, parallel=1).run()
    (result,), (other,) = folder.results(), whole.results()
    assert (result.attempts, result.score, result.status) == (2, other.score, "scored")
    assert ["a process of Ray was lost on " in each.reason for each in folder.attempts()] == [True, False]
    (journal,) = folder.path.glob("agents/*/tasks/*/journal.jsonl")
    kinds = [type(event) for event in read_journal(journal)]
    assert kinds.count(ev.Opened) == kinds.count(ev.Resumed) == 1


async def test_an_error_of_an_environment_is_no_death_of_its_process_and_is_rerun_once(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("react", "react"), seeds=1)
    async with RayEngine(folder.path, hang=60, make="tests.evaluation.toys:broken_worker") as engine:
        await Schedule(folder=folder, engine=engine, parallel=1).run()
    (result,) = folder.results()
    assert (result.status, result.attempts) == ("failed", 2)
    assert result.reason.startswith("environment.step: ToyEnvironment raised ZeroDivisionError: by nothing")
