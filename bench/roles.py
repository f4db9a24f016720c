"""Read what instruct models answer in each role, in states whose right and wrong next steps are known.

States are of 20 tasks of MiniWoB++, 10 of Trac and 10 of Wagtail. A next step is right if the score is 1 after the steps of the built-in
policy, or on a site after the rest of a known way, else wrong. Half of the tasks of each, by the digests of their names, are for
development; the others are for the test.

    python bench/roles.py --states SUITE ...                       find the states of some suites anew (browser, minutes)
    python bench/roles.py --record MODEL [--role NAME ...] [-n N]  ask a model of .bench/instruct, N states a role, and keep its answers
    python bench/roles.py --table FOLDER ...                       print what each role's answers came to, folder by folder
    python bench/roles.py                                          read the labelled answers again with the parser as it is

Some recorded answers, labelled by hand, are fixtures of tests/agents/test_answers.py.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import _common
import _llamacpp
import msgspec
from _instruct import FOLDER
from _role_states import SITES, State, Step, make, recorded, spread

from exact.agents.agent import build_agent
from exact.agents.rank import LLMComparator
from exact.config import Config, parse
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.errors import InfrastructureError
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Text, WrappedModel
from exact.models.open import Models
from exact.observation import Observation
from exact.prompts.library import use_folder
from exact.reflection.base import Surprise
from exact.runs.runner import open_models

ANSWERS = _common.ROOT / ".bench" / "roles"
SLOTS = 8
"""Slots of the server: the beginnings of as many roles' prompts stay in its cache."""


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


class Came(msgspec.Struct, frozen=True, kw_only=True):
    """What one question of a role came to, after the answers that were asked again."""

    role: str
    state: int
    actions: tuple[str, ...] = ()
    """Keys of the actions that a policy proposed, heaviest first."""
    values: tuple[float, ...] = ()
    """Values of the state after a right step and of that after a wrong one, if the role judges."""
    failed: str = ""
    """Why nothing could be read."""


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


async def ask(role: str, index: int, state: State, agent: Any, model: ChatModel, config: Config) -> Came:
    """Return what a model in one role says about a state. Its answers may be unreadable."""
    right, wrong = state.first(right=True), state.first(right=False)
    came = Came(role=role, state=index)
    if role in POLICIES:
        proposed = await agent.policy.propose(state.context, BROWSER_ACTIONS, 4)
        return msgspec.structs.replace(came, actions=tuple(each.action.key for each in proposed))
    if role in VALUES:
        judged = [await agent.value.evaluate(step.after) for step in (right, wrong)]
        return msgspec.structs.replace(came, values=tuple(each.value for each in judged))
    if role == "siblings":
        judged = await agent.value.evaluate_all([right.after, wrong.after])
        return msgspec.structs.replace(came, values=tuple(each.value for each in judged))
    if role == "compare":
        shares = await LLMComparator(model, config.value, config.view).compare([right.after, wrong.after])
        return msgspec.structs.replace(came, values=tuple(shares))
    await agent.reflector.reflect(state.context, surprise(state, wrong, right), role.removeprefix("reflect_"))
    return came


def surprise(state: State, wrong: Step, right: Step) -> Surprise:
    after: Observation | None = None if wrong.after.terminated else wrong.after.observation
    return Surprise(
        step=wrong.after.history[-1], after=after, expected=0.7, real=0.1, value_before=0.6, alternative=right.action.key,
        alternative_value=0.8, node=state.context.node, signal="sibling",
    )  # fmt: skip


class Asking(NamedTuple):
    """How a model is asked."""

    prompts: str
    """Folder of prompts; empty for the package's."""
    structured: str
    """When answers are asked for by a schema: `models.ROLE.structured`."""
    thoughts: bool
    """Whether policies are asked for a thought."""


def settings(role: str, base_url: str, asking: Asking) -> Config:
    """Return the configuration of a role, with one sample."""
    served = {"model": "local", "provider": "llamacpp", "base_url": base_url, "structured": asking.structured}
    model = served | {"temperature": 0.3, "max_tokens": 200, "timeout": 1200.0}
    value = {"kind": role if role in VALUES else "llm", "samples": 1, "most": 1}
    return parse(
        {
            "models": {"policy": model | {"price": {"input": 0, "output": 0}}},
            "policy": {"kind": "llm", "samples": 1, "thoughts": asking.thoughts} | POLICIES.get(role, {}),
            "value": value,
            "reflection": {"kind": "llm"},
        }
    )


async def record(name: str, roles: Sequence[str], count: int, threads: int, folder: Path, half: str, asking: Asking) -> None:
    """Ask a model in each role, in states of one half or of both, and keep its answers. Questions that were asked are not asked again."""
    file = folder / f"{name}.jsonl"
    done = {(each.role, each.state) for each in results(file)}
    states = [(index, state) for index, state in spread(recorded()) if half in ("both", state.half)]
    with _llamacpp.serving(slots=SLOTS, context=4096, threads=threads, weights=FOLDER / f"{name}.gguf") as server:
        for index, state in states[:count]:
            for role in roles:
                if (role, index) not in done:
                    await record_one(name, role, index, state, server.base_url, file, asking)
            print(f"state {index}: {len(read(file))} answers", file=sys.stderr, flush=True)


async def record_one(name: str, role: str, index: int, state: State, base_url: str, file: Path, asking: Asking) -> None:
    """Ask a model in one role about the state of an index, and keep its answers."""
    config = settings(role, base_url, asking)
    opened = Models(config.models, folder=_common.ROOT / ".bench")
    recorders = {key: Recorder(each, name, role, index, file) for key, each in open_models(config, opened).items()}
    agent = build_agent(config, recorders.__getitem__)
    try:
        with use_folder(asking.prompts):
            came = await ask(role, index, state, agent, next(iter(recorders.values())), config)
    except InfrastructureError as error:
        came = Came(role=role, state=index, failed=str(error))
    finally:
        await opened.close()
    with file.with_suffix(".came.jsonl").open("ab") as out:
        out.write(msgspec.json.encode(came) + b"\n")


def read(file: Path) -> list[Asked]:
    return [msgspec.json.decode(line, type=Asked) for line in file.read_bytes().splitlines()] if file.exists() else []


def results(file: Path) -> list[Came]:
    kept = file.with_suffix(".came.jsonl")
    return [msgspec.json.decode(line, type=Came) for line in kept.read_bytes().splitlines()] if kept.exists() else []


class Row(NamedTuple):
    """What one model's answers in one role came to."""

    states: int
    parsed_first: float
    """Share of the questions whose first answer could be read."""
    right: float | None
    """Share of the states in which the heaviest proposal is a right step. A step that was not tried is not right."""
    auc: float | None
    """Probability that a state after a right step is valued above one after a wrong step of any of these states."""
    within: float | None
    """The same of two steps from one state."""
    tokens: tuple[float, float]
    """Mean tokens of a prompt and of an answer."""


def row(answers: Sequence[Asked], came: Sequence[Came], states: Sequence[State]) -> Row:
    """Return the row of one role."""
    counted = {each.state for each in came}
    asked = [each for each in answers if each.state in counted]
    first = [each for each in asked if not each.attempt]
    again = sum(1 for each in asked if each.attempt == 1)
    proposed = [(states[each.state], each.actions) for each in came if each.role in POLICIES]
    right = [bool(acts) and any(step.right and step.action.key == acts[0] for step in state.steps) for state, acts in proposed]
    pairs = [each.values for each in came if each.values]
    return Row(
        states=len(came),
        parsed_first=1 - again / max(1, len(first)),
        right=sum(right) / len(right) if right else None,
        auc=_above([one for one, _ in pairs], [other for _, other in pairs]) if pairs else None,
        within=sum(_won(one, other) for one, other in pairs) / len(pairs) if pairs else None,
        tokens=tuple(sum(each.tokens[at] for each in first) / max(1, len(first)) for at in (0, 1)),  # type: ignore[arg-type]
    )


def _won(one: float, other: float) -> float:
    return 1.0 if one > other else 0.5 if one == other else 0.0


def _above(ones: Sequence[float], others: Sequence[float]) -> float:
    return sum(_won(one, other) for one in ones for other in others) / (len(ones) * len(others))


def table(folders: Sequence[Path], half: str) -> None:
    """Print a row for each model and role, with the same columns for each folder of answers, over the states that all of them have."""
    states, rows = recorded(), list[list[str]]()
    for name in sorted({file.name.removesuffix(".came.jsonl") for folder in folders for file in folder.glob("*.came.jsonl")}):
        for role in ROLES:
            kept = [[each for each in results(folder / f"{name}.jsonl") if each.role == role] for folder in folders]
            common = set.intersection(*({each.state for each in came} for came in kept))
            common = {index for index in common if half in ("both", states[index].half)}
            if not common:
                continue
            cells = list[str]()
            for folder, came in zip(folders, kept, strict=True):
                answers = [each for each in read(folder / f"{name}.jsonl") if each.role.partition(":")[0] == role]
                found = row(answers, [each for each in came if each.state in common], states)
                shares = (found.parsed_first, found.right, found.auc, found.within)
                cells += [*("" if each is None else f"{each:.2f}" for each in shares), " / ".join(f"{each:.0f}" for each in found.tokens)]
            rows.append([f"{name}, {role}", str(len(common)), *cells])
    _common.table(["model and role", "states", *(["read at first", "right", "AUC", "in a state", "tokens"] * len(folders))], rows)


def parsed() -> argparse.Namespace:
    parser = _common.parser(__doc__ or "")
    parser.add_argument("--states", nargs="+", choices=("miniwob", *SITES), help="find the states of these suites anew")
    parser.add_argument("--record", metavar="MODEL", help="model of .bench/instruct to ask, such as qwen2.5-coder-0.5b")
    parser.add_argument("--role", nargs="+", choices=ROLES, default=ROLES)
    parser.add_argument("-n", type=int, default=8, help="states a role")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--half", choices=("development", "test", "both"), default="both", help="states to ask about, or to print")
    parser.add_argument("--prompts", default="", help="folder of prompts")
    parser.add_argument("--structured", choices=("auto", "always", "never"), default="auto", help="when answers are asked for by a schema")
    parser.add_argument("--no-thoughts", action="store_true", help="ask policies for the action alone")
    parser.add_argument("--into", type=Path, default=ANSWERS, help="folder of the answers that are recorded")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FOLDER", help="print what the answers in these folders came to")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    if options.states:
        asyncio.run(make(options.states))
    if options.record:
        if not _llamacpp.available() or not (FOLDER / f"{options.record}.gguf").exists():
            _common.lacks("llama.cpp or the instruct models are not installed: run shells/setup.sh --instruct")
        options.into.mkdir(parents=True, exist_ok=True)
        asking = Asking(options.prompts, options.structured, not options.no_thoughts)
        asyncio.run(record(options.record, options.role, options.n, options.threads, options.into, options.half, asking))
    if options.table:
        table(options.table, options.half)
    if not options.states and not options.record and not options.table:
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
