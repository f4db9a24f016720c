"""A missing answer, an unreachable page and an unavailable evaluator model are three different results, in each line and in tables."""

from pathlib import Path

import pytest

from exact.environments.toy.environment import Operation, ToyEnvironment
from exact.environments.toy.factory import ToyFactory
from exact.errors import AnswerError, EnvironmentFailure, InfrastructureError, ModelError
from exact.evaluation.folder import BenchFolder, Result
from exact.evaluation.local import LocalEngine
from exact.evaluation.output import write_outputs
from exact.runs.attempt import ending
from exact.task import Outcome, Score, Task
from tests.evaluation.toys import WORLD, run, settings, toy_bench


async def benchmark(
    path: Path, error: InfrastructureError | None = None, at: Operation = "evaluate", *, isolated: bool = True, **more: object
) -> BenchFolder:
    """Run one attempt, in which this error occurs in every try."""

    async def wait(operation: Operation) -> None:
        if operation == at and error is not None:
            raise error

    folder = toy_bench(path, settings("mcts", **more), seeds=1, reruns=0)
    await run(folder, ToyFactory(WORLD, wait=wait, isolated=isolated))
    return folder


def only(folder: BenchFolder) -> Result:
    (result,) = folder.results()
    assert list(folder.gather().values()) == [result]
    return result


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (ModelError("out of quota"), "judge"),
        (AnswerError("no verdict"), "judge"),
        (EnvironmentFailure("the shop is down"), "environment"),
    ],
)
async def test_missing_parts_of_an_evaluation_are_recorded(error: InfrastructureError, missing: str, tmp_path: Path) -> None:
    folder = await benchmark(tmp_path / "bench", error)
    result = only(folder)
    assert (result.status, result.score, result.missing) == ("failed", None, missing)
    assert [each.missing for each in folder.attempts()] == [missing]


async def test_an_environment_that_broke_on_the_way_is_no_judge(tmp_path: Path) -> None:
    assert only(await benchmark(tmp_path / "bench", EnvironmentFailure("the browser is gone"), "reset")).missing == "environment"


async def test_a_missing_answer_is_a_score_that_is_counted_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unanswered(self: ToyEnvironment, outcome: Outcome) -> Score:
        return Score(value=0.0, success=False, reason="no final answer was given", unanswered=True)

    monkeypatch.setattr(ToyEnvironment, "evaluate", unanswered)
    for name, commit_by in (("replayed", "replay"), ("forked", "fork")):
        folder = await benchmark(tmp_path / name, commit_by=commit_by)
        result = only(folder)
        assert (result.status, result.score, result.missing) == ("scored", 0.0, "answer")
        write_outputs(folder)
        table = (folder.path / "table.md").read_text()
        assert "| scored | unanswered | failed |" in table and "| 1 | 1 | 0 |" in table
        assert "1 (1 unanswered)" in (folder.path / "index.html").read_text()


async def test_a_judge_that_is_out_in_a_replay_is_a_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def out(self: LocalEngine, agent: str, task: Task) -> object:
        raise ModelError("out of quota")

    monkeypatch.setattr(LocalEngine, "replay", out)
    folder = await benchmark(tmp_path / "bench", commit_by="fork")
    assert (only(folder).status, only(folder).missing) == ("failed", "judge")
    write_outputs(folder)
    assert "| 0 | 1 (judge 1) | 0 | 0 |" in (folder.path / "table.md").read_text()


async def test_an_attempt_that_waits_for_a_person_is_in_no_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "needs_user", lambda seen: "a captcha")
    folder = await benchmark(tmp_path / "bench", isolated=False)
    assert (only(folder).status, only(folder).score) == ("needs_user", None)
    write_outputs(folder)
    table, page = (folder.path / "table.md").read_text(), (folder.path / "index.html").read_text()
    assert "| only self-evaluated | wait for a person |" in table and "| 0 | 0 | 0 | 0 | 1 |" in table
    assert "Wait for a person" in page and "what only a person can do" in page
