"""The same attempts on Ray, where it is installed."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from exact.evaluation.ray_engine import RayEngine
from exact.evaluation.schedule import Schedule
from exact.reflection.memory import SQLiteMemory
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from tests.evaluation.toys import learning, run, settings, toy_bench

pytest.importorskip("ray", reason="Ray is not installed: shells/setup.sh --extras")


@pytest.mark.filterwarnings("ignore")
async def test_attempts_on_ray_come_to_the_results_of_this_process(tmp_path: Path) -> None:
    here, there = toy_bench(tmp_path / "here"), toy_bench(tmp_path / "there")
    await run(here)
    async with RayEngine(there.path, lanes=2, hang=60, make="tests.evaluation.toys:lane") as engine:
        await Schedule(folder=there, engine=engine, parallel=2).run()
    assert [(each.agent, each.task, each.score) for each in there.results()] == [
        (each.agent, each.task, each.score) for each in here.results()
    ]


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    """Ray runs already, as it does where a user has started it; an engine that starts and ends its own is in the test above."""
    import ray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")
async def test_lanes_write_to_one_memory_at_once_and_no_reflection_is_lost(ray: None, tmp_path: Path) -> None:
    shared = tmp_path / "memory.sqlite"
    folder = toy_bench(tmp_path / "bench", *(learning(f"agent{n}", shared) for n in range(4)))
    async with RayEngine(folder.path, lanes=4, hang=60, make="tests.evaluation.toys:learning_lane") as engine:
        await Schedule(folder=folder, engine=engine, parallel=4).run()
    journals = [list(read_journal(path)) for path in folder.path.glob("agents/*/tasks/*/journal.jsonl")]
    told = {event.reflection.id for events in journals for event in events if isinstance(event, ev.Reflected)}
    writers = sum(any(isinstance(event, ev.Reflected) for event in events) for events in journals)
    with SQLiteMemory(shared) as memory:
        stored = [entry.reflection.id for entry in memory.entries(None)]
    assert len(stored) == len(set(stored)) and set(stored) == told and writers > 4


@pytest.mark.filterwarnings("ignore")
async def test_a_process_that_hangs_is_killed_and_its_attempt_rerun(ray: None, tmp_path: Path) -> None:
    """It waits for the 15 s after which a process counts as hung; on a busy machine a process may take most of that to start."""
    folder = toy_bench(tmp_path / "bench", seeds=1)
    async with RayEngine(folder.path, lanes=2, hang=15, make="tests.evaluation.toys:blocking_lane") as engine:
        await Schedule(folder=folder, engine=engine, parallel=2).run()
    assert sorted(each.attempts for each in folder.results()) == [1, 2] and all(each.status == "scored" for each in folder.results())
    assert sum(each.hung for each in folder.attempts()) == 1


@pytest.mark.filterwarnings("ignore")
async def test_a_process_that_dies_is_replaced_and_its_attempt_rerun(ray: None, tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", seeds=1)
    async with RayEngine(folder.path, lanes=1, hang=60, make="tests.evaluation.toys:dying_lane") as engine:
        await Schedule(folder=folder, engine=engine, parallel=1).run()
    assert sorted(each.attempts for each in folder.results()) == [1, 2] and all(each.status == "scored" for each in folder.results())
    assert ["a lane of Ray died" in each.reason for each in folder.attempts()] == [True, False, False]


@pytest.mark.filterwarnings("ignore")
async def test_an_error_of_an_agent_is_no_death_of_its_lane_and_is_not_rerun(ray: None, tmp_path: Path) -> None:
    folder = toy_bench(tmp_path / "bench", settings("react", "react"), seeds=1)
    async with RayEngine(folder.path, lanes=1, hang=60, make="tests.evaluation.toys:broken_lane") as engine:
        await Schedule(folder=folder, engine=engine, parallel=1).run()
    assert [(each.status, each.reason, each.attempts) for each in folder.results()] == [("failed", "ZeroDivisionError: by nothing", 1)]
