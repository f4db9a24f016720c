"""Answers of models in each role, kept without their questions, and what the parser of now reads of them, for bench/roles.py."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import _common
import msgspec
from _records import read_records, write_records
from _role_states import State, Step

from exact.agents.agent import build_agent
from exact.agents.rank import LLMComparator
from exact.config import Config, parse
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.errors import InfrastructureError, ModelError
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Choice, Text, Usage, WrappedModel
from exact.models.open import Models
from exact.models.tokens import count
from exact.observation import Observation
from exact.prompts.library import use_folder
from exact.reflection.base import Surprise
from exact.runs.runner import open_models

RECORDS = _common.ROOT / "bench" / "results" / "roles.jsonl.gz"
Prompts = Literal["v0.1", "v0.2", "now"]


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer of a model."""

    prompts: Prompts
    """Prompts of a release, or those of the day of the record. Those of 0.2 differ from these by marks of hex digits."""
    model: str
    role: str
    """Role and form, such as `policy_label_grammar`."""
    state: int
    """Index among the recorded states."""
    part: str
    """Part of the role and its prompt: `value.judge judge`."""
    question: str = ""
    """Digest of the question's messages, without those that ask again."""
    attempt: int = 0
    """Times that the question had been asked before."""
    choices: tuple[Choice, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    """Tokens of the prompt and of the answer."""

    @property
    def of(self) -> tuple[Prompts, str, str, int]:
        return self.prompts, self.model, self.role, self.state


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
    asked: tuple[tuple[int, str], ...] = ()
    """Attempt and answer of each time that a question was asked, question by question."""
    tokens: tuple[tuple[int, int], ...] = ()
    """Tokens of the prompt and of the answer of each first question."""
    before_page: int = 0
    """Tokens of the longest prompt up to its first page, as bench/tokens.py counts them."""


POLICIES: dict[str, dict[str, Any]] = {
    "policy_id": {},
    "policy_label": {"elements": "label"},
    "policy_id_grammar": {"grammar": "action"},
    "policy_label_grammar": {"elements": "label", "grammar": "action"},
    "policy_label_answer": {"elements": "label", "grammar": "answer"},
    "policy_list": {"form": "list"},
    "conversation": {"form": "conversation"},
}
CHANGES = "_changes"
"""End of a role that is shown a state by its changes (`value.changes`)."""
VALUES = ("llm", "single_debate", "debate", "rubric", "logprob", "cascade", f"llm{CHANGES}", f"debate{CHANGES}", f"logprob{CHANGES}")
JUDGES = (*VALUES, "siblings", "compare")
ROLES = (*POLICIES, *JUDGES, "reflect_policy", "reflect_value")
FREE = tuple(role for role in ROLES if not POLICIES.get(role, {}).get("grammar"))
"""Roles without a grammar."""


def records() -> list[Asked]:
    return read_records(RECORDS, Asked) if RECORDS.exists() else []


def keep(more: Sequence[Asked]) -> None:
    """Write records beside those that are kept."""
    write_records(RECORDS, [*records(), *more])


def part_of(request: ChatRequest) -> str:
    return f"{request.role} {request.prompt.partition('@')[0]}"


def question_of(request: ChatRequest) -> str:
    """Return the digest of a question, which is the same each time that it is asked."""
    first = request.messages[:-2] if request.attempt else request.messages
    return hashlib.blake2b(msgspec.json.encode([request.draw, *first]), digest_size=6).hexdigest()


class Recorder(WrappedModel):
    """A model whose answers are kept."""

    def __init__(self, model: ChatModel, about: Asked, into: list[Asked]) -> None:
        super().__init__(model)
        self._about, self._into = about, into

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        answer = await self._model.complete(request)
        choices = tuple(msgspec.structs.replace(each, token_ids=None, logprobs=None, ends=None, items=()) for each in answer.choices)
        tokens = answer.usage.input_tokens, answer.usage.output_tokens
        kept = msgspec.structs.replace(self._about, part=part_of(request), attempt=request.attempt, choices=choices, tokens=tokens)
        self._into.append(msgspec.structs.replace(kept, question=question_of(request)))
        return answer


class Tape:
    """The answers of one role about a state. Each is given once, to its own question, or to the next one of its part if that is new."""

    def __init__(self, kept: Sequence[Asked], page: str = "URL: ") -> None:
        self._left, self._page = list(kept), page
        self.before_page = 0
        self.given: list[Asked] = []
        self.asked: dict[str, list[tuple[int, str]]] = defaultdict(list)
        """Attempt and answer each time that a question was asked. The answer is empty if none was recorded."""

    def answer(self, request: ChatRequest) -> Asked:
        text = "\n".join(part.text for each in request.messages for part in each.parts if isinstance(part, Text))
        self.before_page = max(self.before_page, count(text[: max(0, text.find(self._page))]))
        question = question_of(request)
        fit = [each for each in self._left if (each.part, each.attempt) == (part_of(request), request.attempt)]
        kept = next((each for each in fit if each.question == question), fit[0] if fit else None)
        self.asked[question].append((request.attempt, kept.choices[0].text if kept else ""))
        if kept is None:
            raise ModelError("no answer to this question was recorded")
        self._left.remove(kept)
        self.given.append(kept)
        return kept


class Replayer(WrappedModel):
    """A model that answers as it did when it was recorded."""

    def __init__(self, model: ChatModel, tape: Tape) -> None:
        super().__init__(model)
        self._tape = tape

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        kept = self._tape.answer(request)
        usage = Usage(input_tokens=kept.tokens[0], output_tokens=kept.tokens[1])
        return ChatAnswer(choices=kept.choices, usage=usage, model=kept.model, raw="{}")


def settings(role: str, base_url: str) -> Config:
    """Return the configuration of a role, with one sample. No policy is asked for a thought."""
    served = {"model": "local", "provider": "llamacpp", "base_url": base_url, "price": {"input": 0, "output": 0}}
    kind = role.removesuffix(CHANGES) if role in VALUES else "llm"
    value = {"kind": kind, "samples": 1, "most": 1, "changes": role.endswith(CHANGES)}
    return parse(
        {
            "models": {"policy": served | {"temperature": 0.3, "max_tokens": 200, "timeout": 1200.0}},
            "view": {"observation_tokens": 1500},
            "policy": {"kind": "llm", "samples": 1, "thoughts": False} | POLICIES.get(role, {}),
            "value": value,
            "reflection": {"kind": "llm"},
        }
    )


def surprise(state: State, wrong: Step, right: Step) -> Surprise:
    after: Observation | None = None if wrong.after.terminated else wrong.after.observation
    return Surprise(
        step=wrong.after.history[-1], after=after, expected=0.7, real=0.1, value_before=0.6, alternative=right.action.key,
        alternative_value=0.8, node=state.context.node, signal="sibling",
    )  # fmt: skip


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


async def answered(about: Asked, state: State, base_url: str) -> list[Asked]:
    """Ask a model in the role, and with the prompts, of a record about a state. Return its answers."""
    into = list[Asked]()
    await _asked(about, state, base_url, lambda model: Recorder(model, about, into))
    return into


async def replayed(kept: Sequence[Asked], state: State) -> Came:
    """Return what the parser of now reads of the answers of one role about a state."""
    tape = Tape(kept, f"URL: {state.context.observation.url}")
    came = await _asked(kept[0], state, "http://127.0.0.1:9/v1", lambda model: Replayer(model, tape))
    asked = tuple(each for tries in tape.asked.values() for each in tries)
    first = tuple(each.tokens for each in tape.given if not each.attempt)
    return msgspec.structs.replace(came, asked=asked, tokens=first, before_page=tape.before_page)


async def _asked(about: Asked, state: State, base_url: str, wrapped: Any) -> Came:
    config = settings(about.role, base_url)
    opened = Models(config.models, folder=_common.ROOT / ".bench")
    models = {key: wrapped(each) for key, each in open_models(config, opened).items()}
    agent = build_agent(config, models.__getitem__)
    try:
        with use_folder("v0.1" if about.prompts == "v0.1" else ""):
            return await ask(about.role, about.state, state, agent, next(iter(models.values())), config)
    except InfrastructureError as error:
        return Came(role=about.role, state=about.state, failed=str(error))
    finally:
        await opened.close()


def by_question(kept: Sequence[Asked]) -> dict[tuple[Prompts, str, str, int], list[Asked]]:
    """Return the answers by prompts, model, role and state."""
    found: dict[tuple[Prompts, str, str, int], list[Asked]] = {}
    for each in kept:
        found.setdefault(each.of, []).append(each)
    return found


def read_all(kept: Sequence[Asked], states: Sequence[State]) -> dict[tuple[Prompts, str], list[Came]]:
    """Return what the parser of now reads of all answers, by prompts and model."""

    async def everything() -> dict[tuple[Prompts, str], list[Came]]:
        found = defaultdict[tuple[Prompts, str], list[Came]](list)
        for (prompts, model, _, index), some in by_question(kept).items():
            found[prompts, model].append(await replayed(some, states[index]))
        return found

    return asyncio.run(everything())


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


def row(came: Sequence[Came], states: Sequence[State]) -> Row:
    """Return the row of one role."""
    firsts, again = (sum(attempt == at for each in came for attempt, _ in each.asked) for at in (0, 1))
    sent = [each for one in came for each in one.tokens]
    right = [first_right(each, states) for each in came if each.role in POLICIES]
    pairs = [each.values for each in came if each.values]
    return Row(
        states=len(came),
        parsed_first=1 - again / max(1, firsts),
        right=sum(right) / len(right) if right else None,
        auc=above(pairs) if pairs else None,
        within=sum(_won(one, other) for one, other in pairs) / len(pairs) if pairs else None,
        tokens=tuple(sum(each[at] for each in sent) / max(1, len(sent)) for at in (0, 1)),  # type: ignore[arg-type]
    )


def first_right(came: Came, states: Sequence[State]) -> bool:
    steps = states[came.state].steps
    return bool(came.actions) and any(step.right and step.action.key == came.actions[0] for step in steps)


def above(pairs: Sequence[Sequence[float]]) -> float:
    """Return the AUC of values of right and of wrong steps."""
    if not pairs:
        return math.nan
    return sum(_won(one, other) for one, _ in pairs for _, other in pairs) / len(pairs) ** 2


def _won(one: float, other: float) -> float:
    return 1.0 if one > other else 0.5 if one == other else 0.0


_SAID = re.compile(r"\[(\d+)\]|\b([A-E])\b|\"([^\"]+)\"|\b(first|second|yes|no)\b", re.IGNORECASE)


def kept_when_repaired(came: Sequence[Came]) -> list[bool]:
    """Return, for each answer that was asked again once, whether the second names something that the first had named.

    Elements, grades, quoted texts and choices count. An answer that names nothing is left out.
    """
    found = list[bool]()
    for each in came:
        for (_, said), (attempt, again) in zip(each.asked, each.asked[1:], strict=False):
            if attempt == 1 and (named := _named(said)) and again:
                found.append(bool(named & _named(again)))
    return found


def _named(text: str) -> set[str]:
    return {next(filter(None, found)).lower() for found in _SAID.findall(text)}
