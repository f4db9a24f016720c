"""One search through the driver: journal, budgets, real HTTP to a slow server, one environment of the tree for each
worker."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from _noisy import action

from exact.agents.value.samples import grade_scale
from exact.config import parse
from exact.context import Proposal
from exact.environments.toy.agents import NoisyJudge, NoisyPolicy
from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.factory import ToyFactory, decision_graph
from exact.environments.toy.known import toy_task
from exact.models.scripted import LateAnswer, Question, ScriptedServer
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.runner import Runner, create, reopen

STATE = re.compile(r'StaticText "At ([\d.]+|the start)"')


EVEN = grade_scale("even")
SAMPLES, GRADED = 8, "ABCD"
"""Answers drawn for one expansion; the grades that the judge gives, for quarters of [0, 1]."""


class Script:
    """Answers prompts of policy and judge as the noisy ones of a tree would."""

    def __init__(self, tree: DecisionTree) -> None:
        self.tree, self.policy, self.judge = tree, NoisyPolicy(tree, sd=0.3), NoisyJudge(tree, sd=0.2)

    def grade(self, state: str) -> str:
        """Return the judge's answer."""
        return GRADED[min(3, int((1 - self.judge.value(state)) * 4))]

    def __call__(self, question: Question, sample: int) -> str:
        state = STATE.findall(question.messages[-1][1])[-1]
        state = "" if state == "the start" else state
        if "Verdict" in question.messages[0][1]:
            return f"Looks like it.\nVerdict: {self.grade(state)}"
        return f'A way on.\nAction: go "{self.policy.draw(state, sample)}"'


class Scripted:
    """The same as a game for the simulated clock."""

    start = ""

    def __init__(self, script: Script) -> None:
        self._script = script

    def step(self, state: str, action: str) -> tuple[str, bool]:
        after = self._script.tree.child(state, int(action[4:-1]))
        return after, self._script.tree.is_end(after)

    def proposals(self, state: str, k: int) -> tuple[Proposal, ...]:
        drawn = Counter(self._script.policy.draw(state, sample) for sample in range(SAMPLES)).most_common(k)
        total = sum(count for _, count in drawn)
        return tuple(Proposal(action=action(index), prior=count / total) for index, count in drawn)

    def value(self, state: str, draw: int) -> float:
        return EVEN.value(self._script.grade(state))


def tree() -> DecisionTree:
    """Return the game that is searched through the real driver."""
    return DecisionTree(6, 6, seed=1, rate=0.003)


def configured(iterations: int, workers: int) -> dict[str, Any]:
    """Return the configuration of the search: the defaults, without merging, because no states of a tree are equal."""
    return {"iterations": iterations, "workers": workers, "depth": 6, "merging": "none", "evaluations": 1}


async def search(delay: float, iterations: int, workers: int) -> dict[str, float]:
    """Seconds until the first commit, and the calls that were made by then: of the judge (`values`) and of the policy (`proposals`)."""
    made = tree()
    async with ScriptedServer(Script(made), faults=lambda question, times: LateAnswer(delay)) as server:
        model = {"model": "scripted", "base_url": server.base_url, "price": {"input": 0, "output": 0}}
        settings = {
            "search": configured(iterations, workers),
            "policy": {"kind": "llm", "samples": SAMPLES},
            "value": {"kind": "llm", "samples": 1},
            "reflection": {"kind": "none"},
            "models": {"policy": model},
            "limits": {"actions": 1},
        }
        with tempfile.TemporaryDirectory() as folder:
            return await _run(Path(folder) / "run", settings, made)


async def _run(folder: Path, settings: dict[str, object], tree: DecisionTree) -> dict[str, float]:
    environment = decision_graph(tree)
    create(folder, (toy_task(environment),), parse(settings))
    run, config = reopen(folder)
    began = time.monotonic()
    await Runner(folder=run, config=config, open_environments=lambda task: nullcontext(ToyFactory(environment))).run()
    seconds = time.monotonic() - began
    return {"seconds": seconds, **_calls(folder)}


def _calls(folder: Path) -> dict[str, float]:
    """Return the number of calls of each role in the journal."""
    [journal] = folder.glob("tasks/*/journal.jsonl")
    calls = [event.role for event in read_journal(journal) if isinstance(event, ev.Called)]
    return {"values": calls.count("value"), "proposals": calls.count("policy")}
