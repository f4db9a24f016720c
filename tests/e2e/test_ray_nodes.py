"""Benchmarks on two nodes of Ray without a shared folder: a node is lost, and the command is killed. Each takes a minute and more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from exact.models.scripted import LateAnswer, ScriptedServer
from tests.e2e.ray_nodes import RayNodes, possible, ray_nodes
from tests.e2e.ray_runs import CONFIG, KEY, TASK, answers, bench, ended, outcomes, repeated

pytest.importorskip("ray", reason="Ray is not installed: shells/setup.sh --extras")
pytestmark = pytest.mark.skipif(bool(possible()), reason=possible() or "-")
TASKS = f"{TASK}?seed=1..6"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayNodes]:
    with ray_nodes({"one": {"browser": 1}, "two": {"browser": 1}}, KEY) as made:
        yield made


async def test_a_benchmark_goes_on_when_a_node_is_lost_and_when_its_command_is_killed_also_by_rays_client(
    cluster: RayNodes, tmp_path: Path
) -> None:
    whole, lost, killed, far = (tmp_path / name for name in ("whole", "lost", "killed", "far"))
    config = tmp_path / "scripted.yaml"
    async with ScriptedServer(answers, faults=lambda question, times: LateAnswer(1.0), host=cluster.here) as server:
        config.write_text(CONFIG % server.base_url)

        code, said = await bench(killed, TASKS, config, cluster, kill_at=lambda: ended(killed) >= 2)
        assert code == -9 and 2 <= ended(killed) < 6, said
        code, said = await bench(killed, TASKS, config, cluster, resume=True)
        assert code == 0, said

        async def kill() -> None:
            await asyncio.to_thread(cluster.kill, "two")

        code, said = await bench(lost, TASKS, config, cluster, kill_at=lambda: ended(lost) >= 2, kill=kill)
        assert code == 0, said
        keys = {each.get("authorization") for each in server.headers}
        code, said = await bench(far, TASKS, config, cluster, client=True, kill_at=lambda: ended(far) >= 2)
        assert code == -9 and 2 <= ended(far) < 6, said
        code, said = await bench(far, TASKS, config, cluster, client=True, resume=True)
        assert code == 0, said
        code, said = await bench(whole, TASKS, config)
        assert code == 0, said
    assert keys == {f"Bearer {KEY['EXACT_TEST_KEY']}"}
    assert len(outcomes(whole)) == 6 and outcomes(lost) == outcomes(whole) == outcomes(killed) == outcomes(far)
    assert [repeated(folder) for folder in (lost, killed, far)] == [[], [], []]
    assert cluster.browsers(20) == []
