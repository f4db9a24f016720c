"""An API that refuses half of the requests and is gone for a while: the benchmark completes, and nothing is scored for it."""

from __future__ import annotations

import time
from pathlib import Path

from exact.evaluation.folder import BenchFolder
from exact.models.scripted import Fault, Question, ScriptedServer, Status
from tests.e2e.ray_runs import CONFIG, TASK, answers, bench

GONE = 6.0
"""Seconds. A call gives up after one retry, and reruns wait for 2, 4 and 8 seconds."""


async def test_a_benchmark_outlives_an_api_that_is_gone_for_a_while(tmp_path: Path) -> None:
    began = list[float]()

    def faults(question: Question, times: int) -> Fault | None:
        began.append(time.monotonic())
        if began[-1] - began[0] < GONE:
            return Status(503, "gone")
        return Status(429, retry_after=0.05) if times % 2 == 0 else None

    config = tmp_path / "scripted.yaml"
    async with ScriptedServer(answers, faults=faults) as server:
        config.write_text((CONFIG % server.base_url).replace("retries: 3", "retries: 1"))
        code, said = await bench(tmp_path / "bench", f"{TASK}?seed=1..4", config, more=("--pause", "2"))
    folder = BenchFolder.open(tmp_path / "bench")
    assert code == 0, said
    assert [(each.status, each.score) for each in folder.results()] == [("scored", 1.0)] * 4
    failed = [each for each in folder.attempts() if each.status == "failed"]
    assert failed and all(each.score is None and each.missing == "model" for each in failed)
