"""The headline: committed actions alone, in an environment that search never used."""

from pathlib import Path

import pytest

from exact.environments.toy.factory import Faults, ToyFactory
from exact.errors import EnvironmentFailure, UsageError
from exact.evaluation.folder import BenchFolder, Replay
from exact.evaluation.local import LocalEngine
from exact.evaluation.output import write_outputs
from exact.evaluation.replay import finished_state, replay
from exact.evaluation.schedule import Schedule
from exact.evaluation.summary import compare, open_side
from exact.task import Task
from tests.evaluation.toys import WORLD, run, settings, toy_bench, toy_engine


async def ended(path: Path, **search: object) -> BenchFolder:
    folder = toy_bench(path, settings("mcts", **search), seeds=1)
    await run(folder)
    return folder


async def test_a_promoted_attempt_is_scored_by_a_replay_beside_its_own_score(tmp_path: Path) -> None:
    (result,) = (await ended(tmp_path / "bench", commit_by="fork")).results()
    assert result.promoted and (result.replay, result.score) == ("same", result.live_score)


async def test_an_attempt_replayed_on_a_fresh_live_environment_needs_no_replay(tmp_path: Path) -> None:
    environments = ToyFactory(WORLD)
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=1)
    await run(folder, environments)
    (result,) = folder.results()
    assert not result.promoted and result.replay == "" and environments.counts.evaluations == 1


async def test_a_promoted_score_that_a_fresh_environment_does_not_give_is_not_the_headline(tmp_path: Path) -> None:
    folder = await ended(tmp_path / "bench", commit_by="fork")
    path = folder.agent_path("mcts") / "results.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"score":0.0', b'"score":1.0').replace(b'"score":1.0', b'"score":0.25'))
    (result,) = folder.gather().values()
    assert result.live_score == 0.25 and result.score != 0.25


async def broken_replays(path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchFolder:
    """Two attempts that were promoted, and whose replays break as often as they are made."""

    async def broken(self: LocalEngine, agent: str, task: Task) -> Replay:
        raise EnvironmentFailure("the browser is gone")

    monkeypatch.setattr(LocalEngine, "replay", broken)
    folder = toy_bench(path, settings("mcts", commit_by="fork"), seeds=2)
    async with toy_engine(folder, ToyFactory(WORLD)) as engine:
        await Schedule(folder=folder, engine=engine, parallel=1).run()
    return folder


async def test_a_score_whose_replay_broke_is_in_no_table_and_no_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = await broken_replays(tmp_path / "bench", monkeypatch)
    assert [(each.status, each.score) for each in folder.results()] == [("failed", None)] * 2
    assert list(folder.gather().values()) == folder.results() == open_side(folder.agent_path("mcts")).results
    write_outputs(folder)
    assert "| 0 | 2 (environment 2) | 0 | 0 |" in (folder.path / "table.md").read_text(), "scored, failed, reruns, only self-evaluated"


async def test_a_replay_that_broke_is_no_rerun_of_the_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = await broken_replays(tmp_path / "bench", monkeypatch)
    assert [(each.number, each.replay) for each in folder.attempts()] == [(1, False), (1, True), (1, True)] * 2
    assert [each.attempts for each in folder.gather().values()] == [1, 1] and folder.numbers() == {}


async def test_scores_of_a_run_that_were_never_replayed_are_compared_with_a_warning(tmp_path: Path) -> None:
    folder = await ended(tmp_path / "bench", commit_by="fork")
    alone = folder.agent_path("mcts").rename(tmp_path / "alone")
    (alone / "replays.jsonl").unlink()
    assert "1 scores of alone are of environments that search had used" in compare(open_side(alone), open_side(alone)).warnings[0]


async def test_attempts_still_to_be_replayed_count_as_unfinished(tmp_path: Path) -> None:
    folder = await ended(tmp_path / "bench", commit_by="fork")
    (folder.agent_path("mcts") / "replays.jsonl").unlink()
    write_outputs(folder)
    assert not folder.gather() and "Unfinished: 1 of 1 attempt" in (folder.path / "table.md").read_text()
    with pytest.raises(UsageError, match="no results yet"):
        open_side(folder.agent_path("mcts"))


async def test_a_replay_that_broke_is_made_when_the_benchmark_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        folder = await broken_replays(tmp_path / "bench", broken)
    await run(folder)
    assert [(each.status, each.replay, each.attempts) for each in folder.results()] == [("scored", "same", 1)] * 2


async def test_a_replay_that_was_cut_off_is_made_when_the_benchmark_is_resumed(tmp_path: Path) -> None:
    folder = await ended(tmp_path / "bench", commit_by="fork")
    whole = (folder.path / "results.jsonl").read_bytes()
    (folder.agent_path("mcts") / "replays.jsonl").unlink()
    environments = ToyFactory(WORLD)
    await run(folder, environments)
    assert (folder.path / "results.jsonl").read_bytes() == whole and environments.counts.evaluations == 1 and environments.counts.forks == 0


async def test_a_replay_says_where_it_went_another_way(tmp_path: Path) -> None:
    folder = await ended(tmp_path / "bench")
    run_folder, config = folder.agent("mcts")
    task = folder.plan.tasks[0]
    state = finished_state(run_folder, config, task)
    assert state is not None
    found = await replay(ToyFactory(WORLD, faults=Faults(drift_after=0)), task, state, run_folder.blobs)
    assert (found.match, found.reason) == ("drifted", "at the start")
    assert (await replay(ToyFactory(WORLD), task, state, run_folder.blobs)).match == "same"


async def test_writes_are_not_sent_twice_to_a_site_that_keeps_them(tmp_path: Path) -> None:
    folder = await ended(tmp_path / "bench")
    run_folder, config = folder.agent("mcts")
    task = folder.plan.tasks[0]
    state = finished_state(run_folder, config, task)
    assert state is not None
    wrote = state.live.committed[0]
    from msgspec.structs import replace

    from exact.environments.base import SideEffect

    state.live.committed[0] = replace(wrote, effects=(SideEffect(kind="request", method="POST"),))
    with pytest.raises(UsageError, match="not sent twice"):
        await replay(ToyFactory(WORLD, isolated=False), task, state, run_folder.blobs)


async def test_search_cannot_reach_an_evaluator(tmp_path: Path) -> None:
    environments = ToyFactory(WORLD)
    folder = toy_bench(tmp_path / "bench", settings("mcts", commit_by="fork"), seeds=3)
    await run(folder, environments)
    assert environments.counts.evaluations == 6, "once an attempt where it ended, once its replay"
