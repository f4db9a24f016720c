"""What a run says when it is interrupted: the one way that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from exact.cli.attempt import attempt
from exact.cli.main import main
from exact.config import Config, load_recorded
from exact.library.run import complete_reports
from exact.runs.journal.store import ResultLine, RunFolder
from tests.report.journals import SHOP, Recorder, new_run, shop_run


def paid_run(folder: Path, isolated: str, *more: str) -> tuple[RunFolder, Config]:
    """A run that was interrupted after it had paid, in an environment of which it is recorded whether it is isolated."""
    run, config = new_run(folder, "shop/tea", *more)
    recorder = Recorder(run, run.manifest.tasks[0], config, SHOP)
    recorder.begin()
    while recorder.commit():
        pass
    recorder.journal.close()
    path = run.task_folder(run.manifest.tasks[0]) / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"event":"reset"', b'"event":"reset"' + isolated.encode(), 1))
    return run, load_recorded(run.path)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is interrupted at once."""

    async def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("exact.cli.attempt._attempt", interrupt)


@pytest.mark.usefixtures("interrupted")
@pytest.mark.parametrize(
    ("isolated", "more", "said"),
    [
        (',"isolated":false', (), "exact: interrupted after shop/tea wrote outside, which resuming would repeat: start a new run"),
        (
            ',"isolated":false',
            ("shop/b",),
            "exact: interrupted; resume with: exact resume {run} (shop/tea wrote outside and needs a new run)",
        ),
        (',"isolated":true', (), "exact: interrupted; resume with: exact resume {run}"),
        ("", (), "exact: interrupted; resume with: exact resume {run}"),
    ],
)
def test_an_interrupted_run_names_the_way_that_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], isolated: str, more: tuple[str, ...], said: str
) -> None:
    run, config = paid_run(tmp_path / "run", isolated, *more)
    assert attempt(run, config, as_json=False) == 130
    assert capsys.readouterr().err.splitlines() == [said.format(run=run.path)]


@pytest.mark.parametrize(
    ("ends", "strict", "code"),
    [
        (["scored 1", "scored 0", "judged"], False, 0),
        (["scored 1", "scored 1"], True, 0),
        (["scored 1", "scored 0"], True, 3),
        (["scored 1", "stopped"], True, 3),
        (["needs_user", "scored 0"], True, 4),
        (["failed part"], False, 2),
        (["failed part", "failed model"], False, 1),
        (["failed model", "needs_user"], True, 1),
    ],
)
def test_the_exit_code_is_that_of_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: list[str], strict: bool, code: int
) -> None:
    lines = []
    for end in ends:
        status, _, more = end.partition(" ")
        score = float(more) if status == "scored" else None
        lines.append(ResultLine(task="t", seed=0, agent="a", status=status, score=score, missing=more if status == "failed" else ""))

    async def attempted(*_: object, **__: object) -> list[ResultLine]:
        return lines

    monkeypatch.setattr("exact.cli.attempt._attempt", attempted)
    assert attempt(*paid_run(tmp_path / "run", ""), as_json=False, fail_unsolved=strict) == code


@pytest.mark.parametrize(
    "command", [["show", "gone"], ["compare", "gone", "gone"], ["bench", "gone.yaml", "--agent", "react"], ["doctor", "x"]]
)
def test_what_is_not_there_is_wrong_usage(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2


@pytest.mark.usefixtures("interrupted")
def test_a_journal_that_does_not_read_is_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, config = paid_run(tmp_path / "run", "")
    (run.task_folder(run.manifest.tasks[0]) / "journal.jsonl").write_text("nonsense\n")
    assert attempt(run, config, as_json=False) == 130
    assert "resume with: exact resume" in capsys.readouterr().err


def test_reports_that_a_full_disk_prevented_are_written_when_the_run_is_resumed(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    report, index = run.task_folder(run.manifest.tasks[0]) / "report.html", run.path / "index.html"
    assert not report.exists()
    complete_reports(run)
    assert report.exists() and index.exists()
    before = report.stat().st_mtime_ns
    complete_reports(run)
    assert report.stat().st_mtime_ns == before
