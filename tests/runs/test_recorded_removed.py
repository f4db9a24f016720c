"""A run that was recorded with settings which are gone opens and reports, and no search continues it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from exact.cli.main import main
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal

RECORDED = Path(__file__).parent / "recorded" / "before_0_2" / "settings"


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """A copy of the run without the end of its journal: some searching is left to do."""
    run = Path(shutil.copytree(RECORDED, tmp_path / "settings"))
    journal = next(run.glob("tasks/*/journal.jsonl"))
    lines = journal.read_bytes().splitlines(keepends=True)
    decided = next(number for number, event in enumerate(read_journal(journal)) if isinstance(event, ev.Decided))
    journal.write_bytes(b"".join(lines[: decided - 3]))
    (run / "results.jsonl").unlink()
    return run


def test_an_interrupted_one_is_not_resumed_and_its_journal_stays(interrupted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", str(interrupted), "--yes"]) == 0
    before = next(interrupted.glob("tasks/*/journal.jsonl")).read_bytes()
    assert main(["resume", str(interrupted)]) == 2
    said = capsys.readouterr().err
    assert "search.mix 0.3 (set search.backup to mean or max)" in said and "no search continues it: start a new run" in said
    assert next(interrupted.glob("tasks/*/journal.jsonl")).read_bytes() == before


def test_an_interrupted_one_is_shown_and_reported(interrupted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(interrupted)]) == 0
    assert main(["report", str(interrupted)]) == 0
    assert "click-tab-2" in capsys.readouterr().out


def test_its_configuration_starts_no_other_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = RECORDED / "config.yaml"
    assert main(["run", "miniwob/click-tab-2?seed=2", "--config", str(config), "--out", str(tmp_path / "new")]) == 2
    assert "search.c_schedule cosine (set search.c, which is constant)" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_journal_that_names_work_which_is_not_there_is_followed_up_to_it(interrupted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = next(interrupted.glob("tasks/*/journal.jsonl"))
    journal.write_bytes(journal.read_bytes().replace(b'"id":3,"node":0,"edge":0', b'"id":3,"node":0,"edge":9'))
    assert main(["show", str(interrupted)]) == 0
    assert "at 0.392 s the search asks for work that is not there: state 0 has no action 9" in capsys.readouterr().out


def test_a_run_whose_removed_settings_are_neutral_is_continued(interrupted: Path) -> None:
    from exact.config import RecordedConfig, aliases, load_recorded

    recorded = yaml.safe_load((interrupted / "config.yaml").read_text())
    recorded["search"] |= {path.removeprefix("search."): value for path, value in aliases.NEUTRAL.items() if path.startswith("search.")}
    recorded["search"] |= {"first_play": "parent", "backup": "mean"}
    (interrupted / "config.yaml").write_text(yaml.safe_dump(recorded))
    assert not isinstance(load_recorded(interrupted), RecordedConfig)
