"""What a benchmark has done so far is read from its folder, also while it runs."""

import asyncio
import re
import shutil
import time
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from exact.cli.show import duration, show
from exact.environments.toy.factory import ToyFactory
from exact.errors import JournalError, UsageError
from exact.evaluation.status import AgentStatus, OpenAttempt, money_an_hour, seconds_left, status_of
from exact.runs.journal.costs import CallCost
from exact.runs.journal.store import ResultLine
from exact.runs.storage import stored_folder
from tests.evaluation.toys import WORLD, run, toy_bench, toy_engine


async def test_a_finished_benchmark_has_nothing_left(tmp_path: Path) -> None:
    await run(toy_bench(tmp_path))
    agents = status_of(tmp_path)
    assert [(each.agent, each.tasks, each.done, each.waiting, each.open) for each in agents] == [
        ("react", 3, 3, 0, ()),
        ("mcts", 3, 3, 0, ()),
    ]
    assert seconds_left(agents) is None and money_an_hour(agents) == 0
    assert CliRunner().invoke(show, [str(tmp_path), "--progress"]).output.endswith("complete\n")


async def test_a_running_attempt_is_told_from_an_interrupted_one(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path)
    async with toy_engine(folder, ToyFactory(WORLD)) as engine:
        task = folder.plan.tasks[0]
        journal = folder.agent("mcts")[0].task_folder(task) / "journal.jsonl"
        attempt = asyncio.ensure_future(engine.attempt("mcts", task))
        while not (journal.exists() and journal.stat().st_size):  # noqa: ASYNC110 (the attempt runs in this loop: no clock is waited for)
            await asyncio.sleep(0)
        assert [(each.running, each.waiting) for each in status_of(tmp_path)] == [(0, 3), (1, 2)]
        said = CliRunner().invoke(show, [str(tmp_path), "--progress"]).output
        assert re.search(rf"running: mcts {re.escape(task.id)}, [\d.]+ s in, \d+ calls?, [\d,]+ tokens", said)
        attempt.cancel()
        await asyncio.gather(attempt, return_exceptions=True)
    assert [each.open[0].running for each in status_of(tmp_path) if each.open] == [False]
    said = CliRunner().invoke(show, [str(tmp_path), "--progress"]).output
    assert f"interrupted: mcts {task.id}" in said and f"exact bench --resume --out {tmp_path}" in said


def test_attempts_that_another_machine_writes_to_storage_are_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec", reason="the extra storage is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, system, url = toy_bench(tmp_path / "bench"), fsspec.filesystem("memory"), "memory://status/bench"
    asyncio.run(run(folder))
    (folder.agent("mcts")[0].path / "results.jsonl").unlink()  # as before the attempts had ended
    try:
        with stored_folder(url, write=True, interval=0.02) as copy:
            shutil.copytree(tmp_path / "bench", copy, dirs_exist_ok=True)
            files = {f"/status/bench/{path.relative_to(copy)}" for path in copy.rglob("*") if path.is_file()}
            while not files <= set(system.find("/status/bench")):
                time.sleep(0.02)
            said = CliRunner().invoke(show, [url, "--progress"]).output
            assert said.count("running: mcts") == 3 and "interrupted" not in said
        assert CliRunner().invoke(show, [url, "--progress"]).output.count("interrupted: mcts") == 3
    finally:
        system.store.clear()
        system.pseudo_dirs[:] = [""]


def test_a_damaged_line_hides_only_what_follows_it(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path)
    asyncio.run(run(folder))
    agent = folder.agent("mcts")[0]
    journal = agent.task_folder(folder.plan.tasks[0]) / "journal.jsonl"
    (agent.path / "results.jsonl").unlink()
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:5]) + b"{broken\n" + b"".join(lines[5:]))
    found = {each.task: each for each in status_of(tmp_path)[1].open}
    assert len(found) == 3 and not any(each.running for each in found.values())


def test_failed_attempts_are_no_results_and_their_unknown_cost_is_said(tmp_path: Path) -> None:
    folder = toy_bench(tmp_path)
    run_folder, tasks = folder.agent("react")[0], folder.plan.tasks
    run_folder.add_result(ResultLine(task=tasks[0].id, seed=0, agent="react", status="failed", cost=None, seconds=4.0))
    run_folder.add_result(ResultLine(task=tasks[1].id, seed=1, agent="react", status="scored", score=1.0, cost=0.5, seconds=6.0))
    found = status_of(tmp_path)[0]
    assert (found.done, found.solved, found.failed, found.waiting) == (1, 1, 1, 1)
    assert (found.cost, found.unknown, found.seconds, found.cost_rate) == (0.5, True, 6.0, 0.05)


def agent(tasks: int, done: int, *running: float, seconds: float = 0.0, rate: float = 0.0) -> AgentStatus:
    at_work = tuple(OpenAttempt(task=str(number), running=True, seconds=each, spent=CallCost()) for number, each in enumerate(running))
    return AgentStatus(
        agent="a", tasks=tasks, done=done, solved=0, failed=0, open=at_work, cost=0.0, unknown=False, seconds=seconds, cost_rate=rate
    )


def test_the_time_left_is_what_attempts_took_shared_among_those_that_run() -> None:
    one, other = agent(5, 2, 4.0, seconds=10.0, rate=0.001), agent(3, 0, 12.0)
    assert seconds_left([one, other]) == (2 * 10 + 6 + 2 * 10 + 0) / 2
    assert money_an_hour([one, other]) == pytest.approx(3.6)
    assert seconds_left([agent(3, 0, 1.0)]) is None and seconds_left([agent(3, 1, seconds=2.0)]) is None


def test_json_says_what_the_table_says(tmp_path: Path) -> None:
    asyncio.run(run(toy_bench(tmp_path)))
    found = msgspec.json.decode(CliRunner().invoke(show, [str(tmp_path), "--json", "--progress"]).output)
    assert [each["waiting"] for each in found["agents"]] == [0, 0] and found["seconds_left"] is None


@pytest.mark.parametrize("name", ["../../elsewhere", "..", "/tmp"])
def test_an_agent_whose_name_leads_out_of_the_benchmark_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "bench.json").write_text(
        toy_bench(tmp_path / "bench").path.joinpath("bench.json").read_text().replace('"react"', f'"{name}"')
    )
    with pytest.raises(JournalError, match="invalid agent name"):
        status_of(tmp_path)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no run in .*run\.json"):
        status_of(tmp_path)


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (89, "89 s"), (150, "2 min"), (3 * 3600 + 300, "3 h 05 min")])
def test_a_duration_has_the_unit_of_its_size(seconds: float, words: str) -> None:
    assert duration(seconds) == words
