import asyncio
import json
from pathlib import Path

import pytest

from exact.cli import health
from exact.cli.health import HealthCheck
from exact.cli.main import main
from exact.cli.model_check import check_model
from exact.config import ModelConfig, PriceConfig
from exact.models.scripted import Question, Reply, ScriptedServer, Status

RED = '{"colour": "red"}'


def found(checks: list[HealthCheck]) -> dict[str, HealthCheck]:
    return {check.name: check for check in checks}


def config(server: ScriptedServer) -> ModelConfig:
    return ModelConfig(model="m", base_url=server.base_url, retries=0)


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a stand-in for a browser that prints a version."""
    program = tmp_path / "browser"
    program.write_text("#!/bin/sh\necho Chromium 1.2.3\n")
    program.chmod(0o755)
    monkeypatch.setenv("EXACT_BROWSER", str(program))
    return program


def test_a_place_with_all_that_is_needed_gives_0(browser: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert f"Chromium 1.2.3 in {browser}" in capsys.readouterr().out


def test_a_missing_browser_gives_1_and_the_way_to_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("EXACT_BROWSER", "/nowhere")
    assert main(["doctor"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("MISSING")]
    assert "/nowhere" in line and "apt-get install chromium-headless-shell" in line


def test_a_browser_that_does_not_start_is_missing(browser: Path) -> None:
    browser.write_text("#!/bin/sh\nexit 3\n")
    assert not found(health.checks())["browser"].ok


def test_json_says_the_same(browser: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] is True
    assert {check["name"] for check in said["checks"]} >= {
        "python",
        "browser",
        "playwright",
        "miniwob",
        "runsc",
        "dot",
        "desktop",
        "browsergym",
    }


def test_a_missing_key_is_optional_and_its_value_is_never_shown(browser: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    key = found(health.checks())["OPENAI_API_KEY"]
    assert (key.ok, key.required) == (False, False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert "sk-secret" not in str(health.checks())


def test_a_folder_that_is_a_file_is_no_run_directory(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    assert health._run_directory(tmp_path / "new" / "runs").ok
    assert not health._run_directory(tmp_path / "runs").ok


def test_free_memory_is_what_the_container_leaves(tmp_path: Path) -> None:
    proc = tmp_path / "meminfo"
    proc.write_text("MemTotal: 9000 kB\nMemAvailable: 5000 kB\n")
    assert health._free_memory(proc, tmp_path) == 5000 * 1024
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert health._free_memory(proc, tmp_path) == 2000


def test_too_little_of_what_is_required_is_missing() -> None:
    assert not health._amount("memory", 2**29, "", required=True).ok
    assert health._amount("memory", 2**31, "", required=True).ok


async def test_a_model_that_can_all_is_asked_once() -> None:
    reply = Reply(text=RED, logprobs=(-0.1, -0.2), token_ids=(1, 2))
    async with ScriptedServer(lambda question, sample: reply) as server:
        report = await check_model(config(server))
    assert (report.n, report.logprobs, report.token_ids, report.images, report.json) == (2, True, True, "seen", True)
    assert len(server.bodies) == 1
    assert report.seconds > 0


async def test_a_model_without_pictures_is_asked_without() -> None:
    def no_pictures(question: Question, times: int) -> Status | None:
        return Status(400, "no image input") if question.images else None

    async with ScriptedServer(lambda question, sample: Reply(text="red?", logprobs=(-0.1,)), faults=no_pictures) as server:
        report = await check_model(config(server))
    assert (report.error, report.images, report.logprobs, report.json) == ("", "refused", True, False)


async def test_a_model_that_gives_one_choice_a_call_is_reported() -> None:
    def one(question: Question, times: int) -> Status | None:
        return Status(400, "n must be 1", param="n") if question.n > 1 else None

    async with ScriptedServer(lambda question, sample: RED, faults=one) as server:
        report = await check_model(config(server))
    assert report.n == 1
    assert "1 of 2 answers in one request" in dict(report.rows())["n"]


async def test_a_known_price_is_shown_with_the_calls_cost() -> None:
    async with ScriptedServer(lambda question, sample: RED) as server:
        priced = ModelConfig(model="m", base_url=server.base_url, price=PriceConfig(input=2.0, output=8.0))
        rows = dict((await check_model(priced)).rows())
        assert rows["price"].startswith("$2 in, $8 out for a million tokens; this call $0.0")
        assert dict((await check_model(config(server))).rows())["price"].startswith("unknown")


async def test_the_first_refusal_is_the_error_of_a_model_that_never_answers() -> None:
    async with ScriptedServer(lambda question, sample: RED, faults=lambda question, times: Status(404, "no such model")) as server:
        report = await check_model(config(server))
    assert "no such model" in report.error
    assert len(server.bodies) == 2


async def test_doctor_shows_the_model_below_the_rest(browser: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with ScriptedServer(lambda question, sample: RED) as server:
        code = await asyncio.to_thread(main, ["doctor", "--model", "m", "--base-url", server.base_url])
    said = capsys.readouterr().out
    assert code == 0
    assert said.index("run directory") < said.index("latency")


def test_an_unreachable_model_gives_1(browser: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]) == 1
    assert "cannot reach http://127.0.0.1:9/v1" in capsys.readouterr().out


def test_a_base_url_without_a_model_is_wrong_usage() -> None:
    assert main(["doctor", "--base-url", "http://127.0.0.1:9/v1"]) == 2


def test_an_old_runsc_is_named_with_the_way_to_a_new_one_and_nothing_is_missing(
    browser: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "runsc"
    program.write_text("#!/bin/sh\necho runsc version 0.0~20221219.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("EXACT_RUNSC", str(program))
    assert main(["doctor"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("optional runsc")]
    assert "0.0~20221219.0" in line and "shells/setup.sh --sandbox" in line
