"""Runs over toy environments, recorded for the tests of exports."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from exact.config import Config, parse
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.graph import ToyGraph
from exact.environments.toy.known import deceptive_chain, maze, toy_task
from exact.models.base import ChatModel
from exact.models.script import Question, Reply
from exact.models.scripted import ScriptedModel
from exact.runs import runner
from exact.runs.runner import Runner, create, reopen
from exact.task import Task
from tests.runs.toys import config, toy_agent

ASKING = parse(
    {
        "search": {"iterations": 8, "k": 3, "depth": 4},
        "policy": {"kind": "llm", "samples": 4, "weigh": "logprobs"},
        "value": {"kind": "llm", "samples": 2, "threshold": 1},
        "reflection": {"kind": "none"},
        "models": {"policy": {"model": "scripted"}},
        "limits": {"actions": 4},
    }
)


def task_of(graph: ToyGraph, seed: int) -> Task:
    return msgspec.structs.replace(toy_task(graph), id=f"toy/{graph.name}?seed={seed}", seed=seed)


async def toy_run(folder: Path, *graphs: ToyGraph, settings: Config | None = None) -> Path:
    """Attempt one task on each graph, the n-th with seed n, and return the run folder."""
    graphs = graphs or (maze(), deceptive_chain())
    known = [(task_of(graph, seed), graph) for seed, graph in enumerate(graphs)]
    create(folder, tuple(task for task, _ in known), settings or config())
    run, settings = reopen(folder)
    for task, graph in known:
        await Runner(
            folder=with_task(run, task),
            config=settings,
            open_environments=lambda _, graph=graph: nullcontext(ToyFactory(graph)),  # type: ignore[misc]
            build_agent=toy_agent(graph),
        ).run()
    return folder


def with_task(run: runner.RunFolder, task: Task) -> runner.RunFolder:
    """Return the run folder with one task in its manifest."""

    class One(runner.RunFolder):
        @property
        def manifest(self) -> runner.Manifest:
            return msgspec.structs.replace(super().manifest, tasks=(task,))

    return One(run.path)


def answers(question: Question, sample: int) -> Reply:
    """Answer as a policy that names the links in turn, with token ids, and as a judge."""
    text = question.messages[-1][1]
    if "Verdict" in question.messages[0][1]:
        return Reply(text=f"So it looks.\nVerdict: {'ABCDE'[(len(text) + sample) % 5]}")
    links = re.findall(r'\] link "([^"]+)"', text)
    said = f'One of them.\nAction: go "{links[sample % len(links)]}"'
    tokens = tuple(re.findall(r"\S+\s*", said))
    return Reply(text=said, tokens=tokens, token_ids=tuple(100 + len(each) for each in tokens), logprobs=tuple(-0.1 for _ in tokens))


async def model_run(folder: Path, reply: Callable[[Question, int], str | Reply] = answers, graph: ToyGraph | None = None) -> Path:
    """Attempt a graph, a maze by default, with a scripted language model, and return the run folder."""
    environment = graph or maze()
    create(folder, (toy_task(environment),), ASKING)
    opened, settings = reopen(folder)
    model = ScriptedModel(reply)

    def models(config: Config, opened: object) -> dict[str, ChatModel]:
        return {"policy": model, "value": model}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_models", models)
        await Runner(folder=opened, config=settings, open_environments=lambda task: nullcontext(ToyFactory(environment))).run()
    return folder
