from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from werkzeug import Request, Response

from exact.cli import doctor
from exact.cli.doctor import HealthCheck
from exact.cli.main import main
from exact.cli.model_check import check_model
from exact.config import ModelConfig, PriceConfig
from exact.models.base import TokenChance
from exact.models.script import completion, question
from exact.models.scripted import Hang, Reply, ScriptedServer, Status
from tests.http_server import BriefServer

RED = '{"colour": "red"}'


class Refusing:
    """A server that refuses requests with a field, and has further pages."""

    def __init__(self, field: str, message: str, pages: Mapping[str, object] | None = None, status: int = 400) -> None:
        self.field, self.refusal, self.status, self.http = field, message, status, BriefServer(host="127.0.0.1")
        for path, page in (pages or {}).items():
            self.http.expect_request(path).respond_with_json(page)
        self.http.expect_request("/v1/chat/completions").respond_with_handler(self.answer)

    def answer(self, request: Request) -> Response:
        body = json.loads(request.data)
        pictures = isinstance(body["messages"][-1]["content"], list)
        if self.field in body or (self.field == "pictures" and pictures):
            return Response(json.dumps({"error": {"message": self.refusal}}), status=self.status)
        reply = CONSTRAINED if "logprobs" in body else Reply(text=CONSTRAINED.text)
        said = completion(question(body), [reply] * body.get("n", 1))
        return Response(json.dumps(said), content_type="application/json")

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.http.port}/v1"

    async def __aenter__(self) -> Refusing:
        self.http.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.http.stop()


def found(checks: list[HealthCheck]) -> dict[str, HealthCheck]:
    return {check.name: check for check in checks}


def config(server: ScriptedServer | Refusing) -> ModelConfig:
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
    assert not found(doctor.checks())["browser"].ok


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
        "osworld",
    }


def test_a_missing_key_is_optional_and_its_value_is_never_shown(browser: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    key = found(doctor.checks())["OPENAI_API_KEY"]
    assert (key.ok, key.required) == (False, False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert "sk-secret" not in str(doctor.checks())


def test_a_folder_that_is_a_file_is_no_run_directory(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    assert doctor._run_directory(tmp_path / "new" / "runs").ok
    assert not doctor._run_directory(tmp_path / "runs").ok


def test_free_memory_is_what_the_container_leaves(tmp_path: Path) -> None:
    proc = tmp_path / "meminfo"
    proc.write_text("MemTotal: 9000 kB\nMemAvailable: 5000 kB\n")
    assert doctor._free_memory(proc, tmp_path) == 5000 * 1024
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert doctor._free_memory(proc, tmp_path) == 2000


def test_too_little_of_what_is_required_is_missing() -> None:
    assert not doctor._amount("memory", 2**29, "", required=True).ok
    assert doctor._amount("memory", 2**31, "", required=True).ok


CONSTRAINED = Reply(text='{"word": "qx7"} red', logprobs=(-0.1, -0.2), token_ids=(1, 2), top_logprobs=((TokenChance("a", -0.1),) * 20,) * 2)


async def test_each_feature_is_asked_for_by_itself() -> None:
    async with ScriptedServer(lambda question, sample: CONSTRAINED) as server:
        report = await check_model(config(server))
    assert (report.n, report.logprobs, report.token_ids, report.top_logprobs) == (8, True, True, 20)
    assert (report.images, report.json_schema, report.grammar) == ("seen", "yes", "yes")
    optional = [{"logprobs", "response_format", "grammar", "n"} & set(body) for body in server.bodies]
    forms = [set(), {"response_format"}]
    assert sorted(map(len, optional[:-2])) == [0, 0, 1, 1, 1, 1] and optional[-2:] == forms and report.seconds > 0


async def test_the_form_in_which_answers_are_read_is_shown_with_what_to_set() -> None:
    async with ScriptedServer(lambda question, sample: LISTED if "response_format" in server.bodies[-1] else "Hello!") as server:
        rows = dict((await check_model(config(server))).rows())
    assert rows["answers"] == "lines are not read, JSON by a schema is read: set models.policy.structured to always"


LISTED = '{"thought": "", "actions": [{"why": "", "action": "click [1]", "percent": 70}]}'


@pytest.mark.parametrize(("answer", "code", "mark"), [(LISTED, 0, "ok"), ("Hello!", 1, "MISSING")])
async def test_a_model_whose_answers_no_policy_can_read_gives_1(
    browser: Path, capsys: pytest.CaptureFixture[str], answer: str, code: int, mark: str
) -> None:
    async with ScriptedServer(lambda question, sample: answer) as server:
        assert await asyncio.to_thread(main, ["doctor", "--model", "m", "--base-url", server.base_url]) == code
    rows = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()[:-1]}
    assert rows["answers"].startswith(mark) and " tokens out a second" in rows["speed"]


async def test_the_model_of_a_configuration_is_tested_with_its_timeout(
    browser: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedServer(lambda question, sample: "Hello!", faults=lambda question, times: Hang()) as server:
        file = tmp_path / "agent.yaml"
        file.write_text(f"models: {{policy: {{model: m, base_url: '{server.base_url}', timeout: 0.2, retries: 0}}}}\n")
        assert await asyncio.to_thread(main, ["doctor", "--config", str(file)]) == 1
    assert "0.2 s" in next(line for line in capsys.readouterr().out.splitlines() if line.startswith("MISSING"))


def test_a_configuration_and_a_name_of_a_model_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--config", "x.yaml", "--provider", "openai"]) == 2
    assert "--provider excludes --config" in capsys.readouterr().err


@pytest.mark.parametrize("field", ["n", "logprobs", "response_format", "grammar", "pictures"])
@pytest.mark.parametrize("message", ["Bad Request", "Unsupported: {field}"])
async def test_what_is_refused_is_reported_and_nothing_else(field: str, message: str) -> None:
    async with Refusing(field, message.format(field="image" if field == "pictures" else field)) as server:
        report = await check_model(config(server))
    refused = {
        "n": report.n == 1,
        "logprobs": not report.logprobs,
        "response_format": report.json_schema == "refused",
        "grammar": report.grammar == "refused",
        "pictures": report.images == "refused",
    }
    assert report.error == "" and [name for name, found in refused.items() if found] == [field]


async def test_a_schema_and_a_grammar_that_are_ignored_are_no_support() -> None:
    async with ScriptedServer(lambda question, sample: "Hello!") as server:
        rows = dict((await check_model(config(server))).rows())
    assert (rows["json_schema"], rows["grammar"], rows["images"]) == ("ignored", "ignored", "accepted, colour not recognised")


async def test_an_answer_that_was_cut_off_tells_nothing_of_a_grammar() -> None:
    async with ScriptedServer(lambda question, sample: Reply(text="Well", finish="length")) as server:
        assert (await check_model(config(server))).grammar.startswith("not known")


async def test_what_a_providers_entry_rules_out_is_asked_for_too() -> None:
    async with ScriptedServer(lambda question, sample: CONSTRAINED) as server:
        report = await check_model(ModelConfig(model="m", provider="lmstudio", base_url=server.base_url, retries=0))
    assert (report.n, report.logprobs, report.grammar) == (8, True, "yes")


async def test_a_known_price_is_shown_with_the_calls_cost() -> None:
    async with ScriptedServer(lambda question, sample: RED) as server:
        priced = ModelConfig(model="m", base_url=server.base_url, price=PriceConfig(input=2.0, output=8.0))
        rows = dict((await check_model(priced)).rows())
        assert rows["price"].startswith("$2 in, $8 out for a million tokens; this check $0.0")
        assert dict((await check_model(config(server))).rows())["price"].startswith("unknown")


async def test_the_first_refusal_is_the_error_of_a_model_that_never_answers() -> None:
    async with ScriptedServer(lambda question, sample: RED, faults=lambda question, times: Status(404, "no such model")) as server:
        report = await check_model(config(server))
    assert "no such model" in report.error
    assert len(server.bodies) == 1, "the plainest request tells the cause"


LLAMACPP = {
    "/props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 4},
    "/v1/models": {"data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}]},
}
VLLM = {"/v1/models": {"data": [{"id": "other", "max_model_len": 9}, {"id": "m", "owned_by": "vllm", "max_model_len": 32768}]}}
OLLAMA = {
    "/v1/models": {"data": [{"id": "m", "owned_by": "library"}]},
    "/api/show": {"model_info": {"qwen3.context_length": 40960, "qwen3.embedding_length": 9}},
    "/api/ps": {"models": [{"name": "other", "context_length": 1}, {"name": "m:latest", "model": "m:latest", "context_length": 8192}]},
}
STUDIO = {"/v1/models": {"data": [{"id": "m", "loaded_context_length": 6000}, {"id": "n"}]}}


@pytest.mark.parametrize(
    ("pages", "context"),
    [
        (LLAMACPP, "4096 tokens in each of 4 slots, trained for 8192 tokens"),
        (VLLM, "32768 tokens"),
        (OLLAMA, "8192 tokens, trained for 40960 tokens"),
        (OLLAMA | {"/api/ps": {}}, "trained for 40960 tokens; the server does not say how many it takes"),
        (STUDIO, "6000 tokens"),
        ({"/v1/models": "no", "/props": [1], "/api/show": {"model_info": 3}}, None),
        ({}, None),
    ],
)
async def test_the_context_length_is_the_one_that_the_server_tells(pages: dict[str, object], context: str | None) -> None:
    async with Refusing("", "", pages) as server:
        rows = dict((await check_model(config(server))).rows())
    assert rows.get("context") == context


async def test_a_model_that_is_not_served_is_shown_with_those_that_are() -> None:
    async with Refusing("model", "The model `m` does not exist.", VLLM, status=404) as server:
        report = await check_model(config(server))
    assert "does not exist" in report.error and dict(report.rows())["serves"] == "other, m"


async def test_doctor_shows_the_model_below_the_rest(browser: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with ScriptedServer(lambda question, sample: LISTED) as server:
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


@pytest.mark.parametrize("api", ["responses", "messages"])
async def test_an_api_without_grammars_is_not_said_to_ignore_one(api: str) -> None:
    async with ScriptedServer(lambda question, sample: Reply(text="Hello.")) as server:
        report = await check_model(ModelConfig(model="m", base_url=server.base_url, retries=0, api=api))  # type: ignore[arg-type]
    assert (report.error, report.grammar) == ("", "refused")
