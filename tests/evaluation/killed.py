"""A benchmark over toy environments as a process that can be killed: `python -m tests.evaluation.killed FOLDER FIDELITY`."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

from exact.config import Config, parse
from exact.environments.toy.factory import ToyFactory
from exact.evaluation.folder import BenchFolder
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Price
from exact.models.script import Question
from exact.models.scripted import ScriptedModel
from exact.runs import runner
from tests.evaluation.toys import WORLD, run, settings, toy_bench

LATENCY = 0.004
ASKING = parse(
    {
        "name": "asking",
        "search": {"iterations": 6, "k": 3, "depth": 4},
        "policy": {"kind": "llm", "samples": 4},
        "value": {"kind": "llm", "samples": 2, "threshold": 1},
        "reflection": {"kind": "none"},
        "models": {"policy": {"model": "scripted"}},
        "limits": {"actions": 4},
    }
)
"""Return a search whose policy and value function are language models."""
AGENTS = (settings("react", "react"), ASKING, settings("mcts"), settings("promoting", commit_by="fork"))


def answers(question: Question, sample: int) -> str:
    """Answer as a policy that names the links in turn and stops after a refused one, or as a value function that reads the page.

    Both need two calls, so that a kill between them loses a paid answer.
    """
    told, last = question.messages[1][1], question.messages[-1][1]
    if "Answer again" not in last:
        return "Let me think."
    if "Verdict" in question.messages[0][1]:
        return f"So it looks.\nVerdict: {'E' if 'nowhere' in told else 'ABCD'[(len(told) + sample) % 4]}"
    if "was refused" in last:
        return 'A dead end.\nAction: stop "nowhere"'
    links = re.findall(r'\] link "([^"]+)"', told)
    return f'One of them.\nAction: go "{links[sample % len(links)]}"'


class Slow(ScriptedModel):
    """A model that answers slowly, so that a kill can come first."""

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        await asyncio.sleep(LATENCY)
        return await super().complete(request)


def models(config: Config, opened: object) -> dict[str, ChatModel]:
    """Return stand-ins for the models of a configuration."""
    model = Slow(answers, price=Price(input=2.5, output=10.0))
    return {"policy": model, "value": model}


async def slowly(path: Path, fidelity: Any) -> None:
    async def latency() -> None:
        await asyncio.sleep(LATENCY)

    folder = BenchFolder(path) if (path / "bench.json").exists() else toy_bench(path, *AGENTS, seeds=4)
    await run(folder, ToyFactory(WORLD, latency=latency, fidelity=fidelity))


if __name__ == "__main__":
    runner.open_models = models
    asyncio.run(slowly(Path(sys.argv[1]), sys.argv[2]))
