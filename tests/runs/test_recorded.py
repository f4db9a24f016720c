"""A run folder that an older version recorded, under old names, is read, reported, compared and resumed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from exact.cli.main import main
from exact.config import aliases, load
from exact.errors import UsageError
from exact.report.model.model import report
from exact.runs.journal.aliases import ROUTES
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState, fold
from exact.runs.journal.store import RunFolder
from exact.runs.runner import line_of

OLD = Path(__file__).parent / "recorded" / "old_names"
"""Two tasks of MiniWoB in gVisor, two workers, at commit a9aac6c: schema 5, `worlds`, `world`, `there`, `onward`, `enact`, `contest`."""
SHOWN = OLD.with_name("old_names.show.jsonl")
"""What `exact show --json` printed of it at that commit."""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "run"))


def printed(capsys: pytest.CaptureFixture[str], *args: str) -> list[Any]:
    assert main(list(args)) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_recorded_configuration_loads() -> None:
    search = load(OLD / "config.yaml").search
    assert (search.environments, search.workers, search.commit) == (4, 2, "replan")


def test_the_recorded_journals_fold_to_the_recorded_results(run: Path) -> None:
    folder, config = RunFolder.open(run), load(run / "config.yaml")
    folded = [(task, fold(config, read_journal(folder.task_folder(task) / "journal.jsonl"))) for task in folder.manifest.tasks]
    unrecorded: dict[str, Any] = {"same_task": False, "policy": "", "value_function": ""}  # later fields
    lines = [msgspec.structs.replace(line_of(task, config, state), **unrecorded) for task, state in folded]
    assert lines == list(folder.results())
    assert [state.finished.status for _, state in folded if state.finished] == ["scored", "scored"]


def test_an_interrupted_attempt_of_it_is_where_it_was(run: Path) -> None:
    """Each event follows from the ones before it, so every prefix folds: the search asks for what it asked for then."""
    folder, config = RunFolder.open(run), load(run / "config.yaml")
    for task in folder.manifest.tasks:
        state = AttemptState(config)
        for event in read_journal(folder.task_folder(task) / "journal.jsonl"):
            state.replay(event)


def test_show_prints_the_figures_of_that_version(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = [json.loads(line) for line in SHOWN.read_text().splitlines()]
    for each in before:
        each["trained_with_reward"] = False  # no run of that version saw rewards
        each["stats"]["evaluations"] = each["stats"].pop("judgements")
        travel = each["travel"]
        travel["environments"] = travel.pop("worlds")
        for moved in travel["moved"]:
            moved["route"] = ROUTES.get(moved["route"], moved["route"])
            moved["match"] = moved.pop("verdict")
    assert rounded(printed(capsys, "show", str(run), "--json")) == rounded(before)


def rounded(found: object) -> object:
    """Return the same with twelve digits after the point: priors that sum to 1 but for rounding are not scaled since."""
    return json.loads(json.dumps(found), parse_float=lambda text: round(float(text), 12))


def test_report_cost_and_compare_read_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (reports,) = printed(capsys, "report", str(run), "--json")
    assert all("was here" in Path(page).read_text() for page in reports["reports"].values())
    (cost,) = printed(capsys, "cost", str(run), "--json")
    assert cost["total"]["calls"] == 0
    (compared,) = printed(capsys, "compare", str(run), str(run), "--json")
    assert compared["a"]["costs"]["transitions"] == 26.5 and compared["a"]["restores"] == 6.5 and compared["versus"]["ties"] == 2


def test_a_run_with_keys_that_were_removed_since_is_shown_reported_and_resumed(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = printed(capsys, "show", str(run), "--json")
    monkeypatch.setattr(aliases, "REMOVED", {"search.charm": "set search.c", "browser.wand": "leave it out", "arms.charm": "leave it out"})
    recorded = yaml.safe_load((run / "config.yaml").read_text())
    recorded["search"]["charm"], recorded["browser"]["wand"], recorded["arms"] = 0.3, {"length": 7}, [{"kind": "builtin", "charm": 1}]
    (run / "config.yaml").write_text(yaml.safe_dump(recorded))
    assert printed(capsys, "show", str(run), "--json") == before
    assert printed(capsys, "report", str(run), "--json") and printed(capsys, "resume", str(run), "--json") == []
    with pytest.raises(UsageError, match=r"'arms\.charm' was removed: leave it out"):
        load(run / "config.yaml")


def test_resume_finds_nothing_to_do(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = (run / "results.jsonl").read_bytes()
    assert printed(capsys, "resume", str(run), "--json") == []
    assert (run / "results.jsonl").read_bytes() == recorded


def test_a_report_of_it_has_its_task_and_calls_no_write_outside(run: Path) -> None:
    folder = RunFolder.open(run)
    for task in folder.manifest.tasks:
        head = report(folder, task, screenshots=False).head
        assert (head.ending, head.outside, head.answer, head.began) == ("solved", 0, None, True) and head.instruction
