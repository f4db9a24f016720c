"""exact in inspect_ai: a solver that attempts a sample's task, a dataset of benchmark tasks, and a scorer of the attempts.

inspect_ai's models as chat models of exact.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import LimitExceededError

from exact.config import Config, ModelConfig, load
from exact.errors import InfrastructureError, ModelError, UsageError
from exact.interop.cancellation import apart
from exact.library.run import Run, Runner
from exact.library.tasks import page_task, task_of
from exact.machine import scratch
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Choice, Image, Message, Price, Tariff, TokenChance, Usage
from exact.models.open import Models, model_for
from exact.models.providers import providers
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


class InspectModel:
    """A chat model that asks a model of inspect_ai, so that inspect's log, cache, retries and limits hold for its calls."""

    def __init__(self, model: Model, config: ModelConfig) -> None:
        """Wrap a model. `config`: the settings of its role, of which the price counts."""
        self._model = model
        known, provider = providers(), str(model).partition("/")[0]
        provider = provider if provider in known else "compatible"
        self._price = Tariff(msgspec.structs.replace(config, model=model.name, provider=provider), known[provider])

    @property
    def name(self) -> str:
        """Provider and model: `openai/gpt-4o`."""
        return str(self._model)

    @property
    def price(self) -> Price | None:
        """Price by the configuration or the price list; None if it is unknown."""
        return self._price.price

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Return an answer with `sampling.n` choices, by further calls if a provider gives one at a time.

        Raises ModelError; a limit of inspect's is raised as it is.
        """
        messages, wanted = [_message(each) for each in request.sent()], request.sampling.n
        outputs = [await self._asked(messages, request, wanted)]
        missing = wanted - len(outputs[0].choices)
        if missing > 0 and outputs[0].choices:
            outputs += await asyncio.gather(*(self._asked(messages, request, 1) for _ in range(missing)))
        choices = [choice for output in outputs for choice in output.choices][:wanted]
        if not choices:
            raise ModelError(f"{self.name} gave no answer: {outputs[0].error or outputs[0].model_dump_json()[:200]}")
        usage = _usage(outputs)
        usage = msgspec.structs.replace(usage, cost=self._price.cost(usage))
        raw = outputs[0].model_dump_json()
        return ChatAnswer(choices=tuple(map(_choice, choices)), usage=usage, model=outputs[0].model, raw=raw, notes=_notes(request))

    async def close(self) -> None:
        """Do nothing: inspect closes its models."""

    async def _asked(self, messages: list[ChatMessage], request: ChatRequest, n: int) -> ModelOutput:
        settings = request.sampling
        top = settings.top_logprobs
        config = GenerateConfig(
            num_choices=n if n > 1 else None, temperature=settings.temperature, top_p=settings.top_p, max_tokens=settings.max_tokens,
            seed=settings.seed, logprobs=settings.logprobs or None, top_logprobs=None if isinstance(top, msgspec.UnsetType) else top,
        )  # fmt: skip
        try:
            return await self._model.generate(messages, config=config)
        except LimitExceededError:
            raise
        except Exception as error:
            raise ModelError(f"{self.name} did not answer: {' '.join(str(error).split())[:300] or type(error).__name__}") from error


class InspectModels(Models):
    """The models of all roles, asked through inspect: a role of inspect's by that name, else the model that is evaluated."""

    def chat(self, role: str) -> ChatModel:
        """Return the chat model of a role."""
        return InspectModel(get_model(role=role), model_for(self._config, role))


def with_models(config: Config, name: str) -> Config:
    """Return a configuration that names a model, by default the one that inspect evaluates. Sampling settings and prices stay.

    Raises UsageError if the agent needs a feature that inspect's models lack.
    """
    if any(each.actions == "computer" for each in (config.policy, *config.arms)):
        raise UsageError("policy.actions: computer needs a provider's own tool, which cannot be asked through inspect_ai: use elements")
    if config.models.policy is not None:
        return config
    return msgspec.structs.replace(config, models=msgspec.structs.replace(config.models, policy=ModelConfig(model=name)))


def _message(message: Message) -> ChatMessage:
    text = "\n".join(part.text for part in message.parts if not isinstance(part, Image))
    match message.role:
        case "system":
            return ChatMessageSystem(content=text)
        case "assistant":
            return ChatMessageAssistant(content=text)
        case _:
            content: list[Content] = [
                ContentImage(image=f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}")
                if isinstance(part, Image)
                else ContentText(text=part.text)
                for part in message.parts
            ]
            return ChatMessageUser(content=content)


def _choice(choice: ChatCompletionChoice) -> Choice:
    text, tokens = choice.message.text, choice.logprobs.content if choice.logprobs else []
    spelled = "".join(token.token for token in tokens) == text
    return Choice(
        text=text,
        finish="refusal" if choice.stop_reason == "content_filter" else "length" if choice.stop_reason == "max_tokens" else "stop",
        logprobs=tuple(token.logprob for token in tokens) if tokens else None,
        ends=tuple(accumulate(len(token.token) for token in tokens)) if tokens and spelled else None,
        top_logprobs=tuple(tuple(TokenChance(top.token, top.logprob) for top in token.top_logprobs or []) for token in tokens)
        if any(token.top_logprobs for token in tokens)
        else None,
    )


def _usage(outputs: list[ModelOutput]) -> Usage:
    found = [output.usage for output in outputs if output.usage is not None]
    read, written = (sum(getattr(each, f"input_tokens_cache_{name}") or 0 for each in found) for name in ("read", "write"))
    return Usage(
        input_tokens=sum(each.input_tokens for each in found) + read + written,
        cached_tokens=read,
        cache_write_tokens=written,
        output_tokens=sum(each.output_tokens for each in found),
        reasoning_tokens=sum(each.reasoning_tokens or 0 for each in found),
    )


def _notes(request: ChatRequest) -> tuple[str, ...]:
    return tuple(f"{name} is not sent through inspect_ai" for name in ("schema", "form", "grammar") if getattr(request, name))
