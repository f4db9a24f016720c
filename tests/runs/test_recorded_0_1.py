"""Every run folder of version 0.1 opens, reports, is rescored and is resumed, or refuses in one line with a way out. Needs no browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import exact
from exact.benchmarks import open as environments_of
from exact.cli.main import main
from exact.config import RecordedConfig, load_recorded
from exact.environments.base import EnvironmentFactory
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.environments.own import factory_of
from exact.evaluation.replay import finished_state
from exact.runs.journal.store import RunFolder

FOLDER = Path(__file__).parent / "recorded"
ENDED = {"old_names": FOLDER / "old_names", **{name: FOLDER / "before_0_2" / name for name in ("run", "settings", "debate")}}
KILLED = {name: FOLDER / "before_0_2" / name for name in ("interrupted", "debate_interrupted")}
AGENTS = {f"bench {name}": FOLDER / "before_0_2" / "bench" / "agents" / name for name in ("rmcts", "react")}
ALL = {**ENDED, **KILLED, **AGENTS}


@pytest.fixture(params=ALL)
def any_run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ALL[request.param], tmp_path / "run"))


@pytest.fixture(params={**ENDED, **AGENTS})
def ended(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ALL[request.param], tmp_path / "run"))


@pytest.fixture(params=KILLED)
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ALL[request.param], tmp_path / "run"))


def test_every_fixture_is_a_run_of_0_1() -> None:
    assert {exact.open_run(path)._folder.manifest.versions["exact"] for path in ALL.values()} == {"0.1.0"}
    assert set(ALL.values()) == {path.parent for path in FOLDER.rglob("run.json")}


def test_it_opens_with_its_tasks_results_and_trees(any_run: Path) -> None:
    run = exact.open_run(any_run)
    begun = [task.id for task in run.tasks if run._folder.task_folder(task).exists()]
    assert begun and all(run.journal(task) and run.tree(task).nodes and run.graph(task) for task in begun)
    assert {line["task"] for line in run.results()} <= set(begun) and f"{len(run.tasks)} task" in repr(run)


def test_the_library_reports_it(any_run: Path) -> None:
    run = exact.open_run(any_run)
    begun = [task.id for task in run.tasks if run._folder.task_folder(task).exists()]
    assert all("<title>" in run.report(task).read_text() for task in begun)


def test_a_task_that_was_not_started_is_named_with_the_way_out(tmp_path: Path) -> None:
    run = exact.open_run(shutil.copytree(KILLED["interrupted"], tmp_path / "run"))
    for call in (run.journal, run.tree, run.report):
        with pytest.raises(exact.JournalError) as error:
            call("miniwob/click-collapsible?seed=1")
        assert str(error.value).endswith(f"it was not started: `exact resume {tmp_path / 'run'}` starts it") and "\n" not in str(
            error.value
        )


class Again(exact.BaseEnvironment):
    """Shows what a recorded attempt showed, action by action."""

    capabilities = exact.Capabilities(fidelity="replay", isolated=True)
    actions = BROWSER_ACTIONS

    def __init__(self, folder: RunFolder, task: exact.Task) -> None:
        state = finished_state(folder, load_recorded(folder.path), task)
        assert state is not None and state.live.scored is not None
        self.score = state.live.scored.score
        self.start, *_ = state.search.tree.nodes
        self.steps, self.blobs = list(state.live.carried_out), folder.blobs

    async def reset(self, task: exact.Task) -> exact.Observation:
        return self.blobs.get_observation(self.start.observation)

    async def step(self, action: exact.Action) -> exact.Transition:
        step = self.steps.pop(0)
        assert action.key == step.action
        came = self.blobs.get_observation(step.observation) if step.observation else None
        return exact.Transition(observation=came, terminated=step.terminated)

    async def evaluate(self, outcome: exact.Outcome) -> exact.Score:
        assert not self.steps
        return self.score


def test_its_actions_are_rescored_to_the_recorded_scores(
    ended: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @asynccontextmanager
    async def opened(task: exact.Task, *rest: object, **options: object) -> AsyncIterator[EnvironmentFactory]:
        yield factory_of(Again(RunFolder.open(ended), task))

    monkeypatch.setattr(environments_of, "open_environments", opened)
    monkeypatch.setattr(environments_of, "environment_kind", lambda task, **options: task.id)
    assert main(["trust", str(ended), "--yes"]) == 0
    capsys.readouterr()
    assert main(["rescore", str(ended), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["replay"]["match"], line["replay"]["score"]) for line in lines] == [("same", line["before"]) for line in lines]
    assert len(lines) == len(exact.open_run(ended).tasks)


def test_rescoring_what_has_not_ended_names_the_way_out(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", str(killed), "--yes"]) == 0
    capsys.readouterr()
    assert main(["rescore", str(killed)]) == 1
    (said,) = capsys.readouterr().out.splitlines()
    assert said.startswith("! run miniwob/") and said.endswith(f": its attempt has not ended: `exact resume {killed}` ends it")


def test_an_attempt_of_a_benchmark_that_has_not_ended_names_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Path(shutil.copytree(FOLDER / "before_0_2" / "bench", tmp_path / "bench"))
    one = list(bench.glob("agents/*/tasks/miniwob_click-test-2_seed=1-*"))
    for folder in one:
        (folder / "journal.jsonl").write_bytes(b"".join((folder / "journal.jsonl").read_bytes().splitlines(keepends=True)[:3]))
    rescore = ["rescore", str(bench), "--task", "miniwob/click-test-2?seed=1"]
    assert main(rescore) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and all(each.endswith(f"not ended: `exact bench --resume --out {bench}` ends it") for each in said)
    for folder in one:
        shutil.rmtree(folder)
    assert main(rescore) == 2
    assert f"none was started: `exact bench --resume --out {bench}` starts them" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["rescore", "resume"])
def test_without_a_browser_it_is_refused_in_one_line_and_can_be_tried_again(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EXACT_BROWSER", "/nonexistent/chrome")
    run = Path(shutil.copytree(ALL["run" if command == "rescore" else "interrupted"], tmp_path / "run"))
    assert main([command, str(run)]) == 1
    said = capsys.readouterr().out
    assert "EXACT_BROWSER=/nonexistent/chrome is not an executable: correct it or unset it" in said and "Traceback" not in said
    assert command == "rescore" or f"When the cause is fixed, run: exact resume {run}" in said


def test_a_run_that_sends_a_key_is_not_resumed_before_it_is_trusted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(shutil.copytree(KILLED["debate_interrupted"], tmp_path / "run"))
    for command in ("resume", "rescore"):
        assert main([command, str(run)]) == 2
        said = capsys.readouterr().err.strip()
        assert said.endswith(f"(models.policy.base_url): if you trust it, exact trust {run}") and "\n" not in said


def test_one_that_has_ended_resumes_with_nothing_to_do(ended: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", str(ended), "--yes"]) == 0
    before = (ended / "results.jsonl").read_bytes()
    assert main(["resume", str(ended), "--json"]) == 0
    assert (ended / "results.jsonl").read_bytes() == before


def test_one_with_settings_that_were_removed_opens_and_says_which() -> None:
    config = exact.open_run(ENDED["settings"]).config
    assert isinstance(config, RecordedConfig) and config.removed["search.mix"] == 0.3
