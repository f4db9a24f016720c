"""The LLM path through everything: `exact run` with models over HTTP in a real browser."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import msgspec

from exact.models.base import ChatAnswer
from exact.models.scripted import Question, ScriptedServer, Status
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import RunFolder

CONFIG = """
name: scripted
search: {algorithm: mcts, iterations: 4, k: 3}
view: {images: true}
policy: {kind: llm, samples: 4}
value: {kind: llm, samples: 2}
reflection: {kind: llm}
models: {policy: {model: scripted, base_url: "%s", logprobs: true, retries: 3, temperature: 0.7, price: {input: 1, output: 2}}}
limits: {money: 1, calls: 60, actions: 4, transitions: 60}
"""


def answers(question: Question, sample: int) -> str:
    """Answer as a model that reads the goal and finds the button of that name, with a judge that approves."""
    text = question.messages[-1][1]
    if "Verdict" in question.messages[0][1]:
        return "It is clear from the page.\nVerdict: B"
    wanted = re.search(r"[Cc]lick button (\w+)", text)
    assert wanted, text
    buttons = {name: id for id, name in re.findall(r'\[(\d+)\] button "(\w+)"', text)}
    other = next(id for name, id in buttons.items() if name != wanted[1])
    return f"The goal names it.\nAction: click [{buttons[wanted[1]] if sample else other}]"


async def exact(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "exact.cli", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def run(folder: Path, server: ScriptedServer) -> tuple[int, str]:
    config = folder.parent / "scripted.yaml"
    config.write_text(CONFIG % server.base_url)
    return await exact("run", "miniwob/click-test-2?seed=3", "--config", str(config), "--out", str(folder))


def calls(folder: Path) -> list[ev.Called]:
    (path,) = folder.glob("tasks/*/journal.jsonl")
    return [event for event in read_journal(path) if isinstance(event, ev.Called)]


async def test_a_language_model_solves_a_task_and_every_call_is_journalled_whole(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    async with ScriptedServer(answers) as server:
        code, output = await run(folder, server)
    assert code == 0, output
    (line,) = RunFolder.open(folder).results()
    made = calls(folder)
    assert line.score == 1.0, output
    assert {body["temperature"] for body in server.bodies} == {0.7}
    assert line.calls == len(made) and line.cost and line.cost < 1
    assert line.tokens == server.input_tokens + server.output_tokens
    blobs = RunFolder.open(folder).blobs
    raw = msgspec.json.decode(blobs.get(made[0].answer), type=ChatAnswer).raw
    assert msgspec.json.decode(raw)["model"] == "scripted"
    assert {event.role for event in made} >= {"policy", "value"}
    assert any("image" in str(blobs.get(event.request)) for event in made if event.role == "policy")


async def test_a_server_that_fails_now_and_then_changes_nothing(tmp_path: Path) -> None:
    def faults(question: Question, times: int) -> Status | None:
        return None if times else Status(429, retry_after=0.01) if question.seed and question.seed % 2 else Status(500)

    async with ScriptedServer(answers) as server:
        code, output = await run(tmp_path / "good", server)
        assert code == 0, output
    async with ScriptedServer(answers, faults=faults) as server:
        code, output = await run(tmp_path / "bad", server)
        assert code == 0, output
    good, bad = ([(event.role, event.node) for event in calls(tmp_path / name)] for name in ("good", "bad"))
    assert good == bad


async def test_a_server_that_is_down_is_a_failure_with_a_way_out_and_no_score(tmp_path: Path) -> None:
    async with ScriptedServer(answers) as server:
        pass_by = server.base_url
    config = tmp_path / "scripted.yaml"
    config.write_text((CONFIG % pass_by).replace("retries: 3", "retries: 0"))
    code, output = await exact("run", "miniwob/click-test-2?seed=3", "--config", str(config), "--out", str(tmp_path / "run"))
    (line,) = RunFolder.open(tmp_path / "run").results()
    assert (code, line.status, line.score) == (1, "failed", None)
    assert pass_by in line.reason and "Traceback" not in output


async def test_a_price_that_is_unknown_refuses_a_money_cap_before_anything_is_called(tmp_path: Path) -> None:
    async with ScriptedServer(answers) as server:
        config = tmp_path / "scripted.yaml"
        config.write_text((CONFIG % server.base_url).replace(", price: {input: 1, output: 2}", ""))
        code, output = await exact("run", "miniwob/click-test-2?seed=3", "--config", str(config), "--out", str(tmp_path / "run"))
    assert code == 2 and "price of" in output
    assert not server.bodies and not (tmp_path / "run").exists()
