"""The same attempts on Ray, where it is installed."""

from pathlib import Path

import pytest

from exact.evaluation.ray_engine import RayEngine
from exact.evaluation.schedule import Schedule
from tests.evaluation.toys import run, toy_bench

pytest.importorskip("ray", reason="the extra `ray` is not installed")


@pytest.mark.filterwarnings("ignore")
async def test_attempts_on_ray_come_to_the_results_of_this_process(tmp_path: Path) -> None:
    here, there = toy_bench(tmp_path / "here"), toy_bench(tmp_path / "there")
    await run(here)
    async with RayEngine(there.path, lanes=2, hang=60, make="tests.evaluation.toys:lane") as engine:
        await Schedule(folder=there, engine=engine, parallel=2).run()
    assert [(each.agent, each.task, each.score) for each in there.results()] == [
        (each.agent, each.task, each.score) for each in here.results()
    ]
