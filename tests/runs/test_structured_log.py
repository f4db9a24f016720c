"""A log of JSON lines tells what attempts do, and no text of a page, a prompt or an answer."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import maze
from exact.errors import EnvironmentFailure, UsageError
from exact.runs.runner import Runner
from exact.runs.telemetry import LOG
from tests.runs.toys import config, toy_runner

GRAPH = maze()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LOG, str(tmp_path / "log.jsonl"))
    return tmp_path / "log.jsonl"


def journals(folder: Path) -> list[Path]:
    return list((folder / "run").rglob("journal.jsonl"))


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


async def test_the_log_tells_how_an_attempt_went(tmp_path: Path, log: Path) -> None:
    await toy_runner(tmp_path / "run", ToyFactory(GRAPH)).run()
    found = lines(log)
    events = [line["event"] for line in found]
    assert events[0] == "opened" and "committed" in events and events[-2:] == ["scored", "finished"]
    assert {line["task"] for line in found} == {f"toy/{GRAPH.name}?seed=0"} and found[-1]["status"] == "scored"
    assert all({"time", "level", "process", "agent"} <= set(line) for line in found)


async def test_the_log_holds_no_text_of_a_page(tmp_path: Path, log: Path) -> None:
    await toy_runner(tmp_path / "run", ToyFactory(GRAPH)).run()
    shown = {name for state in GRAPH.states.values() for name in state.edges} | {state.text for state in GRAPH.states.values()}
    actions = {line["action"] for line in lines(log) if line["event"] == "committed"}
    assert actions <= {"go", "stop"}
    assert not [text for text in shown if len(text) > 4 and text in json.dumps(lines(log))]


async def test_a_failed_attempt_and_the_packages_warnings_stand_in_the_log(tmp_path: Path, log: Path) -> None:
    def broken(task: object) -> Any:
        logging.getLogger("exact.browser").warning("the browser is slow: \x1b[1mnow")
        raise EnvironmentFailure("no browser starts here")

    toy_runner(tmp_path / "run", ToyFactory(GRAPH))
    runner = toy_runner(tmp_path / "run", ToyFactory(GRAPH))
    await Runner(folder=runner.folder, config=config(), open_environments=broken, build_agent=runner.build_agent).run()
    found = lines(log)
    assert [(line["level"], line["status"]) for line in found if line["event"] == "finished"] == [("error", "failed")]
    (first, *_) = [line for line in found if line["event"] == "warning"]
    assert first["logger"] == "exact.browser" and first["message"].startswith("the browser is slow") and "\x1b" not in first["message"]


async def test_a_log_that_cannot_be_written_is_said_before_the_first_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOG, str(tmp_path))
    with pytest.raises(UsageError, match=r"EXACT_LOG=.*: Is a directory: name a file"):
        await toy_runner(tmp_path / "run", ToyFactory(GRAPH)).run()
    assert not journals(tmp_path)


async def test_without_the_variable_nothing_is_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await toy_runner(tmp_path / "run", ToyFactory(GRAPH)).run()
    assert journals(tmp_path) and capsys.readouterr() == ("", "")


async def test_a_dash_logs_to_standard_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(LOG, "-")
    await toy_runner(tmp_path / "run", ToyFactory(GRAPH)).run()
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()][-1] == "finished"


async def test_a_pipe_that_nobody_reads_is_said_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv(LOG, str(tmp_path / "pipe"))
    with pytest.raises(UsageError, match=r"EXACT_LOG=.*pipe: .*: name a file"):
        await toy_runner(tmp_path / "run", ToyFactory(GRAPH)).run()
    assert not journals(tmp_path)
