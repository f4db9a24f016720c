"""Benchmarks on nodes of Ray with a scripted model, killed and resumed. Used by a test and by bench/scale.py."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from exact.evaluation.folder import BenchFolder
from exact.models.scripted import Question
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from tests.e2e.kills import EXACT
from tests.e2e.ray_nodes import RayNodes

CONFIG = """
name: scripted
search: {algorithm: react}
policy: {kind: llm, samples: 1}
value: {kind: constant}
reflection: {kind: none}
models: {policy: {model: scripted, base_url: "%s", api_key_env: EXACT_TEST_KEY, retries: 3, price: {input: 1, output: 2}}}
limits: {money: 1, calls: 20, actions: 4}
"""
KEY = {"EXACT_TEST_KEY": "a-key-that-only-nodes-have"}
TASK = "miniwob/click-test-2"


def answers(question: Question, sample: int) -> str:
    """Answer as a model that reads the goal and finds the button of that name."""
    text = question.messages[-1][1]
    wanted = re.search(r"[Cc]lick button (\w+)", text)
    assert wanted, text
    buttons = {name: id for id, name in re.findall(r'\[(\d+)\] button "(\w+)"', text)}
    return f"The goal names it.\nAction: click [{buttons[wanted[1]]}]"


async def bench(
    folder: Path, tasks: str, config: Path, cluster: RayNodes | None = None, *, parallel: int = 2, resume: bool = False,
    kill_at: Callable[[], bool] = lambda: False, kill: Callable[[], Awaitable[None]] | None = None,
    more: tuple[str, ...] = (), client: bool = False,
) -> tuple[int, str]:  # fmt: skip
    """Run `exact bench`. Return its exit code and its messages. `client`: connect to the cluster by Ray's client.

    Once `kill_at` is true, `kill` is called, or without it the command itself is killed by `kill -9`.
    """
    words = ["--resume"] if resume else [tasks, "--agent", str(config)]
    words += [*more, "--out", str(folder), "--parallel", str(parallel), "--no-reports", "--hang", "60"]
    words += ["--engine", "ray", "--address", cluster.client_address if client else cluster.address] if cluster else []
    process = await asyncio.create_subprocess_exec(
        *EXACT, "bench", *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **KEY} if cluster is None else cluster.variables,
    )  # fmt: skip
    reading = asyncio.ensure_future(process.communicate())
    while not (await asyncio.wait({reading}, timeout=0.1))[0]:
        if kill_at():
            if kill is not None:
                await kill()
            else:
                process.send_signal(signal.SIGKILL)
            break
    _, said = await reading
    assert process.returncode is not None
    return process.returncode, said.decode()


def ended(folder: Path) -> int:
    """Return the number of attempts that have ended."""
    path = folder / "attempts.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def outcomes(folder: Path) -> list[tuple[str, str, int, str, float | None, int, int]]:
    """Return what does not depend on timing of each result, in the order of the plan."""
    found = BenchFolder.open(folder).results()
    return [(each.agent, each.task, each.seed, each.status, each.score, each.actions, each.calls) for each in found]


def repeated(folder: Path) -> list[str]:
    """Return lines of results that stand twice, and committed actions and scores that a journal holds twice."""
    bench = BenchFolder.open(folder)
    lines = Counter(
        (agent, line.task) for agent in bench.plan.agents for line in bench.agent(agent)[0].results() if line.status == "scored"
    )
    wrong = [f"{pair} has {count} lines" for pair, count in lines.items() if count > 1]
    for path in folder.glob("agents/*/tasks/*/journal.jsonl"):
        facts = Counter[object]()
        for event in read_journal(path):
            if isinstance(event, ev.Committed):
                facts["commit", event.step] += 1
            elif isinstance(event, ev.Scored):
                facts["score"] += 1
        wrong += [f"{path.parent.name}: {fact} {count} times" for fact, count in facts.items() if count > 1]
    return wrong


async def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether a condition came true in at most so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.2)
    return True
