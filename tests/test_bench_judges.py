"""bench/judges.py with models behind HTTP: every value function runs on recorded states, and its cost is counted."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from exact.models.base import TokenChance
from exact.models.script import Question, Reply
from exact.models.scripted import ScriptedServer

ROOT = Path(__file__).parents[1]
KINDS = ("llm", "single_debate", "debate", "rubric", "comparative", "logprob", "cascade", "ensemble", "trained")
STATES = 4


def answers(question: Question, sample: int) -> str | Reply:
    text = question.text
    if question.model == "classifier":
        return "0.75"
    if "Answer yes or no." in text:
        return Reply(text="yes", finish="length", top_logprobs=((TokenChance("yes", -0.1), TokenChance("no", -2.4)),))
    if "Write your case." in text:
        return "It is so."
    if "Write the checks." in text:
        return "Check 1: Is it done?"
    if "The checks:" in text:
        return "Check 1: no"
    return "So.\nBetter: second" if "The second way." in text else "So.\nVerdict: B"


def written(folder: Path, url: str) -> list[str]:
    """Write a configuration for each kind; the first one's model has no known price."""
    paths = []
    for kind in KINDS:
        model = {"model": "classifier" if kind == "trained" else "m", "base_url": url, "api": "classify" if kind == "trained" else "chat"}
        priced = model | ({} if kind == "llm" else {"price": {"input": 1000, "output": 1000}})
        members = [{"kind": "llm", "samples": 1}, {"kind": "rubric", "samples": 1}] if kind == "ensemble" else []
        value = {"kind": kind, "samples": 2, "members": members}
        (folder / f"{kind}.yaml").write_text(json.dumps({"value": value, "models": {"policy": priced}, "reflection": {"kind": "none"}}))
        paths.append(str(folder / f"{kind}.yaml"))
    return paths


async def test_each_value_function_is_judged_with_a_model_over_http(tmp_path: Path) -> None:
    async with ScriptedServer(answers) as server:
        command = [str(ROOT / "bench" / "judges.py"), "--states", str(STATES), "--json", str(tmp_path / "found.json"), "--config"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, *written(tmp_path, server.base_url), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        asked, took = len(server.bodies), server.input_tokens + server.output_tokens
    assert process.returncode == 0, err.decode()
    rows = {
        line.split()[0]: line
        for line in out.decode().splitlines()
        if line.split()[:1] and line.split()[0] in KINDS and "(simulated)" not in line
    }
    assert set(rows) == set(KINDS)
    found = {kind: re.split(r"  +", row)[5:] for kind, row in rows.items()}
    assert all(figures[0] == "0" for figures in found.values()), "none failed"
    assert sum(int(figures[1]) for figures in found.values()) == asked and sum(int(figures[2]) for figures in found.values()) == took
    assert found["llm"][3] == f"0.0000 + {STATES} unknown" and "unknown" not in found["debate"][3]
    assert int(found["debate"][1]) == 4 * STATES and int(found["trained"][1]) == int(found["logprob"][1]) == STATES
    assert found["logprob"][4].split(", ")[0].endswith(" + 1"), "one token each"


@pytest.mark.parametrize("kind", ["llm"])
async def test_a_judge_that_cannot_be_heard_is_counted_as_failed_and_not_scored(kind: str, tmp_path: Path) -> None:
    async with ScriptedServer(lambda question, sample: "who knows") as server:
        command = [str(ROOT / "bench" / "judges.py"), "--states", "2", "--config", written(tmp_path, server.base_url)[0]]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
    row = next(line for line in out.decode().splitlines() if re.match(rf"{kind}  ", line))
    assert re.split(r"  +", row)[1:6] == ["-", "-", "-", "-", "2"]
