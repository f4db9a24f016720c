"""A run of an earlier version may hold secrets: copies that are made of it today do not."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import exact
from exact.cli.main import main
from tests.library.number import Both, Near, Number

WORD = "Kiwi-Zebra-77"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A run that repeats a secret, which its configuration holds literally."""
    task = exact.Task(id="number/5", instruction=f"Log in with {WORD}, then with {' '.join(WORD)}.")
    run = tmp_path / "run"
    exact.solve_sync(task, agent=exact.Agent(policy=Both(), value=Near()), environments=Number, out=run, config=exact.Config())
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["browser"]["login"]["secrets"] = {"word": WORD}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    return run


def test_a_shared_report_of_an_old_run_holds_no_secret_that_the_run_names(old: Path, tmp_path: Path) -> None:
    assert main(["report", str(old), "--share", "--out", str(tmp_path / "shared.html")]) == 0
    text = (tmp_path / "shared.html").read_text()
    assert "Log in with" in text
    assert WORD not in text
    assert " ".join(WORD) not in text


@pytest.mark.parametrize("kind", ["json", "graphml", "playwright", "dot"])
def test_an_export_of_an_old_run_holds_no_secret_that_the_run_names(old: Path, tmp_path: Path, kind: str) -> None:
    assert main(["export", kind, str(old), "--out", str(tmp_path / "out")]) == 0
    assert WORD not in (tmp_path / "out").read_text()
