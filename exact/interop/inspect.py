"""exact in inspect_ai: a solver that attempts a sample's task, a dataset of benchmark tasks, and a scorer of the attempts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from exact.config import Config, load
from exact.errors import InfrastructureError, UsageError
from exact.interop.cancellation import apart
from exact.interop.inspect_model import InspectModels, with_models
from exact.library.run import Run, Runner
from exact.library.tasks import page_task, task_of
from exact.machine import scratch
from exact.runs.journal.store import ResultLine
from exact.runs.runner import create
from exact.task import Task

KEY = "exact"
"""Name of the attempt's outcome in a sample's store."""


@solver
def rmcts(config: str = "rmcts_builtin", settings: Sequence[str] = (), runs: str = "") -> Solver:
    """Return a solver that attempts the task of a sample with a tree search in a real environment.

    The metadata of a sample names `task`, the id of a benchmark's task, or `url`, the page from which its input is followed. The agent's
    models are asked through inspect: a model role of the same name (`policy`, `value`, `value.judge`, `reflection`), else the evaluated
    model. The answer becomes the output; the store gets the result, the actions and the run under `exact`.

    Args:
        config: Name of a shipped configuration, or the path of one. Its models give sampling settings and prices.
        settings: Overrides of its keys: `["search.iterations=8", "limits.money=null"]`.
        runs: Folder for run folders, with journals and reports. Empty: nothing is kept.

    Raises UsageError if the configuration or a sample cannot be used, and InfrastructureError, which is never a score, if an attempt
    failed: inspect's `retry_on_error` and `fail_on_error` decide how to continue.
    """
    loaded = load(Path(config) if config.endswith((".yaml", ".yml")) else config, tuple(settings))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = get_model()
        configured = with_models(loaded, str(model))
        task, benchmark = _task(state)
        line, actions, run = await apart(_attempt(task, configured, Path(runs) if runs else None, benchmark=benchmark))
        if line.status == "failed":
            raise InfrastructureError(f"the attempt of {task.id} failed without a score: {line.reason}")
        state.store.set(KEY, {**msgspec.to_builtins(line), "actions_committed": actions, "run": run})
        state.output = ModelOutput.from_content(model=str(model), content=line.answer or "")
        state.messages.append(state.output.message)
        state.completed = True
        return state

    return solve


@scorer(metrics=[accuracy(), stderr()])
def benchmark_score() -> Scorer:
    """Return a scorer that reports the score of the benchmark's own evaluator, in [0, 1].

    An attempt whose task has no evaluator is unscored.
    """

    async def score(state: TaskState, target: Target) -> Score:
        found: dict[str, Any] = state.store.get(KEY) or {}
        facts = {name: found.get(name) for name in ("status", "value", "transitions", "calls", "cost", "seconds", "run")}
        if found.get("score") is None:
            return Score(value=float("nan"), answer=found.get("answer"), explanation=found.get("reason") or "not attempted", metadata=facts)
        explanation = found.get("score_reason") or found.get("reason")
        return Score(value=found["score"], answer=found.get("answer"), explanation=explanation, metadata=facts)

    return score


def tasks(*patterns: str) -> MemoryDataset:
    """Return a dataset with a sample for each benchmark task of some patterns: `tasks("miniwob/click-*?seed=1")`. Raises UsageError."""
    from exact.benchmarks import registry

    found = [
        Sample(id=task.id, input=task.instruction or f"(the page of {task.id} says what to do)", metadata={"task": task.id})
        for task in registry.expand(registry.own_suites(patterns))
    ]
    return MemoryDataset(found, name=", ".join(patterns))


def _task(state: TaskState) -> tuple[Task, bool]:
    """Return the task of a sample, and whether it is a benchmark's."""
    named, url = state.metadata.get("task"), state.metadata.get("url")
    if named and not url:
        return task_of(str(named)), True
    if url and not named:
        return page_task(str(url), state.input_text), False
    raise UsageError(f"sample {state.sample_id!r} names no environment: its metadata needs either task (an id) or url")


async def _attempt(task: Task, config: Config, runs: Path | None, *, benchmark: bool) -> tuple[ResultLine, list[str], str]:
    """Attempt a task. Return its result, the committed actions, and the run folder; empty if none is kept."""
    from exact.benchmarks.open import open_environments

    with _folder(runs, task) as path:
        folder = create(path, (task,), config, benchmark=benchmark)
        models = InspectModels(config.models, folder=path)
        runner = Runner(
            folder=folder,
            config=config,
            open_environments=lambda each: open_environments(each, config, benchmark=benchmark),
            models=models,
            reports=runs is not None,
        )
        try:
            [line] = await runner.run()
        finally:
            await models.close()
        tree = await asyncio.to_thread(Run(path).tree, task.id)
        return line, [edge.action.key for edge in tree.root.path()], str(path) if runs else ""


@contextmanager
def _folder(runs: Path | None, task: Task) -> Iterator[Path]:
    """Yield a new folder for a run, which is deleted afterwards unless a place for it is given."""
    if runs is None:
        with scratch("run") as folder:
            yield folder / "run"
        return
    runs.mkdir(parents=True, exist_ok=True)
    name, number = re.sub(r"[^A-Za-z0-9_.=-]+", "_", task.id)[:80], 1
    while True:
        try:
            (runs / f"{name}-{number}").mkdir()
            break
        except FileExistsError:
            number += 1
    yield runs / f"{name}-{number}"
