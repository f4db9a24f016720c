"""Read what instruct models answer in each role, in states whose right and wrong next steps are known.

States are of 20 tasks of MiniWoB++. A next step is right if the built-in policy's steps after it end with the score 1, else wrong. Half of
the tasks, by the digests of their names, are for development; the others are for the test.

    python bench/roles.py --states                                 find the states anew (browser, minutes)
    python bench/roles.py --record MODEL [--role NAME ...] [-n N]  ask a model of .bench/instruct, N states a role, and keep its answers
    python bench/roles.py                                          read the labelled answers again with the parser as it is

Some recorded answers, labelled by hand, are fixtures of tests/agents/test_answers.py.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Literal

import _common
import _llamacpp
import msgspec
from _greedy import follow, started, stepped
from _instruct import FOLDER

from exact.action import Action
from exact.agents.agent import build_agent
from exact.agents.builtin.policy import LexicalPolicy
from exact.agents.policy.prior import RandomPolicy
from exact.agents.rank import LLMComparator
from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig, Config, parse
from exact.context import Context, Taken
from exact.environments.base import Environment
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.errors import ActionError, InfrastructureError
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Text, WrappedModel
from exact.models.open import Models
from exact.observation import Observation
from exact.reflection.base import Surprise
from exact.runs.runner import open_models
from exact.task import Outcome

STATES = _common.ROOT / "bench" / "roles_states.jsonl.gz"
ANSWERS = _common.ROOT / ".bench" / "roles"
TASKS = (
    *("click-button", "click-link", "click-tab", "click-tab-2", "enter-text", "enter-password", "login-user", "click-checkboxes"),
    *("choose-list", "click-collapsible", "click-dialog", "focus-text", "click-option", "click-widget", "navigate-tree"),
    *("search-engine", "click-color", "count-shape", "use-autocomplete", "email-inbox"),
)
SEEDS = (1, 2)
ACTIONS, TRIED, DEEPEST = 8, 6, 3
"""Most actions of an episode, most steps that are tried in a state, and the deepest state of an episode."""
SLOTS = 8
"""Slots of the server: the beginnings of as many roles' prompts stay in its cache."""
Half = Literal["development", "test"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One next step from a state, and the state that it led to."""

    action: Action
    right: bool
    after: Context


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A state with at least one right and one wrong next step."""

    context: Context
    steps: tuple[Step, ...]

    @property
    def half(self) -> Half:
        """Half that the task belongs to, by the order of the digests of the tasks' names."""
        ordered = sorted(TASKS, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
        return "development" if ordered.index(self.context.task.id.partition("/")[2].partition("?")[0]) < len(TASKS) // 2 else "test"

    def first(self, *, right: bool) -> Step:
        return next(step for step in self.steps if step.right == right)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a model."""

    model: str
    role: str
    """Role and form, such as `policy_label_grammar`."""
    state: int
    """Index among the recorded states."""
    attempt: int
    """Times that the question had been asked before."""
    prompt: str
    question: str
    """The system message and the last one of the user."""
    answer: str
    finish: str
    tokens: tuple[int, int]
    """Tokens of the prompt and of the answer."""


def recorded() -> list[State]:
    return [msgspec.json.decode(line, type=State) for line in gzip.decompress(STATES.read_bytes()).splitlines()]


async def ending(environment: Environment, context: Context) -> float:
    """Let the built-in policy finish an episode. Return its score."""
    seen = (await follow(environment, LexicalPolicy(), context))[-1]
    actions = tuple(taken.action.key for taken in seen.history)
    return (await environment.evaluate(Outcome(actions=actions, answer=seen.answer or None))).value


async def at(environment: Environment, task: Any, steps: Sequence[Taken]) -> Context:
    """Return the context after some steps from a task's start."""
    seen = await started(environment, task, ACTIONS)
    for taken in steps:
        seen = await stepped(environment, seen, msgspec.structs.replace(taken, observation=seen.observation))
    return seen


async def find(environment: Environment, name: str, seed: int) -> AsyncIterator[State]:
    """Yield the states on the built-in policy's way through an episode that it wins."""
    task = MiniWob().task(f"miniwob/{name}?seed={seed}")
    way = await follow(environment, LexicalPolicy(), await started(environment, task, ACTIONS))
    won = (
        await environment.evaluate(Outcome(actions=tuple(each.action.key for each in way[-1].history), answer=way[-1].answer or None))
    ).value
    if won < 1.0:
        return
    for depth, seen in enumerate(way[:-1][:DEEPEST]):
        taken = way[depth + 1].history[-1]
        proposals = await LexicalPolicy().propose(seen, environment.actions, TRIED)
        proposals = (*proposals, *await RandomPolicy().propose(seen, environment.actions, TRIED // 2))
        actions = {each.key: each for each in (taken.action, *(proposal.action for proposal in proposals))}
        steps = list[Step]()
        for action in list(actions.values())[: TRIED + 1]:
            came = await at(environment, task, seen.history)
            try:
                after = await stepped(environment, came, Taken(observation=came.observation, action=action))
            except ActionError:
                continue
            steps.append(Step(action=action, right=await ending(environment, after) == 1.0, after=after))
        if {step.right for step in steps} == {True, False}:
            yield State(context=seen, steps=tuple(steps))


async def make() -> None:
    """Find the states and keep them."""
    states = list[State]()
    async with MiniWob().environments(BrowserConfig(screenshots=False)) as environments:
        for name in TASKS:
            for seed in SEEDS:
                async with environments.open(simulation=False) as environment:
                    states += [state async for state in find(environment, name, seed)]
            print(f"{name}: {len(states)} states", file=sys.stderr, flush=True)
            STATES.write_bytes(gzip.compress(b"\n".join(map(msgspec.json.encode, states)), mtime=0))


class Recorder(WrappedModel):
    """A model whose answers are kept."""

    def __init__(self, model: ChatModel, name: str, role: str, state: int, file: Path) -> None:
        super().__init__(model)
        self._served, self._role, self._state, self._file = name, role, state, file

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        answer = await self._model.complete(request)
        texts = ["".join(part.text for part in message.parts if isinstance(part, Text)) for message in request.messages]
        with self._file.open("ab") as out:
            for choice in answer.choices:
                kept = Asked(
                    model=self._served, role=f"{self._role}:{request.role}", state=self._state, attempt=request.attempt,
                    prompt=request.prompt, question=f"{texts[0]}\n\n{texts[-1]}", answer=choice.text, finish=choice.finish,
                    tokens=(answer.usage.input_tokens, answer.usage.output_tokens),
                )  # fmt: skip
                out.write(msgspec.json.encode(kept) + b"\n")
        return answer


POLICIES: dict[str, dict[str, Any]] = {
    "policy_id": {},
    "policy_label": {"elements": "label"},
    "policy_id_grammar": {"grammar": "action"},
    "policy_label_grammar": {"elements": "label", "grammar": "action"},
    "policy_label_answer": {"elements": "label", "grammar": "answer"},
    "policy_list": {"form": "list"},
    "conversation": {"form": "conversation"},
}
VALUES = ("llm", "single_debate", "debate", "rubric", "logprob")
ROLES = (*POLICIES, *VALUES, "siblings", "compare", "reflect_policy", "reflect_value")


async def ask(role: str, state: State, agent: Any, model: ChatModel, config: Config) -> None:
    """Ask a model in one role about a state. Its answers may be unreadable."""
    right, wrong = state.first(right=True), state.first(right=False)
    if role in POLICIES:
        await agent.policy.propose(state.context, BROWSER_ACTIONS, 4)
    elif role in VALUES:
        await agent.value.evaluate((right if state.context.node % 2 else wrong).after)
    elif role == "siblings":
        await agent.value.evaluate_all([right.after, wrong.after])
    elif role == "compare":
        await LLMComparator(model, config.value, config.view).compare([right.after, wrong.after])
    else:
        await agent.reflector.reflect(state.context, surprise(state, wrong, right), role.removeprefix("reflect_"))


def surprise(state: State, wrong: Step, right: Step) -> Surprise:
    after: Observation | None = None if wrong.after.terminated else wrong.after.observation
    return Surprise(
        step=wrong.after.history[-1], after=after, expected=0.7, real=0.1, value_before=0.6, alternative=right.action.key,
        alternative_value=0.8, node=state.context.node, signal="sibling",
    )  # fmt: skip


def settings(role: str, base_url: str) -> Config:
    """Return the configuration of a role, with one sample."""
    model = {"model": "local", "provider": "llamacpp", "base_url": base_url, "temperature": 0.3, "max_tokens": 200, "timeout": 1200.0}
    value = {"kind": role if role in VALUES else "llm", "samples": 1, "most": 1}
    return parse(
        {
            "models": {"policy": model | {"price": {"input": 0, "output": 0}}},
            "policy": {"kind": "llm", "samples": 1} | POLICIES.get(role, {}),
            "value": value,
            "reflection": {"kind": "llm"},
        }
    )


async def record(name: str, roles: Sequence[str], count: int, threads: int) -> None:
    """Ask a model in each role, in states of both halves, and keep its answers. Questions that were asked are not asked again."""
    ANSWERS.mkdir(parents=True, exist_ok=True)
    file = ANSWERS / f"{name}.jsonl"
    done = {(each.role.partition(":")[0], each.state) for each in read(file)}
    states = spread(recorded())
    with _llamacpp.serving(slots=SLOTS, context=4096, threads=threads, weights=FOLDER / f"{name}.gguf") as server:
        for index, state in states[:count]:
            for role in roles:
                if (role, index) not in done:
                    await record_one(name, role, index, state, server.base_url, file)
            print(f"state {index}: {len(read(file))} answers", file=sys.stderr, flush=True)


async def record_one(name: str, role: str, index: int, state: State, base_url: str, file: Path) -> None:
    """Ask a model in one role about the state of an index, and keep its answers."""
    config = settings(role, base_url)
    opened = Models(config.models, folder=_common.ROOT / ".bench")
    recorders = {key: Recorder(each, name, role, index, file) for key, each in open_models(config, opened).items()}
    agent = build_agent(config, recorders.__getitem__)
    numbered = msgspec.structs.replace(state, context=msgspec.structs.replace(state.context, node=index))
    try:
        await ask(role, numbered, agent, next(iter(recorders.values())), config)
    except InfrastructureError as error:
        print(f"{role}, state {index}: {error}", file=sys.stderr, flush=True)
    finally:
        await opened.close()


def spread(states: Sequence[State]) -> list[tuple[int, State]]:
    """Return the states with their indices: the first of each task, then the second of each, ..."""
    seen, ranked = dict[str, int](), list[tuple[int, int, State]]()
    for index, state in enumerate(states):
        task = state.context.task.id.partition("?")[0]
        seen[task] = seen.get(task, 0) + 1
        ranked.append((seen[task], index, state))
    return [(index, state) for _, index, state in sorted(ranked, key=lambda each: each[:2])]


def read(file: Path) -> list[Asked]:
    return [msgspec.json.decode(line, type=Asked) for line in file.read_bytes().splitlines()] if file.exists() else []


def parsed() -> argparse.Namespace:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--states", action="store_true", help="find the states anew")
    parser.add_argument("--record", metavar="MODEL", help="model of .bench/instruct to ask, such as qwen2.5-coder-0.5b")
    parser.add_argument("--role", nargs="+", choices=ROLES, default=ROLES)
    parser.add_argument("-n", type=int, default=8, help="states a role")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main() -> int:
    options = parsed()
    if options.states:
        asyncio.run(make())
    if options.record:
        if not _llamacpp.available() or not (FOLDER / f"{options.record}.gguf").exists():
            _common.lacks("llama.cpp or the instruct models are not installed: run shells/setup.sh --instruct")
        asyncio.run(record(options.record, options.role, options.n, options.threads))
    if not options.states and not options.record:
        noise = _common.Noise()
        figures = asyncio.run(read_again())
        _common.finish(options, figures, noise, _common.versions("exact-agent"), {})
    return 0


async def read_again() -> list[_common.Figure]:
    """Read the labelled answers with the parser as it is, and print the table by model and kind."""
    sys.path.insert(0, str(_common.ROOT))
    from tests.agents.test_answers import ANSWERS as LABELLED
    from tests.agents.test_answers import agrees
    from tests.agents.test_answers import read as read_as_agents

    found = [(each, await read_as_agents(each)) for each in LABELLED]
    rows = list[list[str]]()
    for model, kind in sorted({(each["model"], each["kind"]) for each, _ in found}):
        some = [(each, said) for each, said in found if (each["model"], each["kind"]) == (model, kind)]
        parsed, right = (sum(1 for each, said in some if wanted(each, said)) for wanted in (lambda _, said: said is not None, agrees))
        rows.append([f"{model}, {kind}", *map(str, (len(some), parsed, right))])
    _common.table(["model and kind of answer", "answers", "read", "read right"], rows)
    return [_common.Figure("read_right", sum(agrees(*each) for each in found) / len(found), goal=0.99)]


if __name__ == "__main__":
    sys.exit(main())
