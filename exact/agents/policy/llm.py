"""A policy that asks a chat model.

Solved example steps that a policy's prompt shows, loaded from YAML.

Grammars (GBNF) of a policy's answers: verbs, elements that are there, and texts that a verb takes.

Servers such as llama.cpp, vLLM and SGLang constrain the answers of a model by them, so that each answer parses. They mend the form of an
answer, not the choice.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from exact.action import ActionSpace, Parameter, Verb
from exact.agents.form import ACTION, ACTION_ALONE, ACTIONS
from exact.agents.parse import ParsedAction, parse_action, parse_actions, reader
from exact.agents.policy.computer import GESTURES, on_screen, parse_call
from exact.agents.policy.conversation import conversation_request
from exact.agents.policy.prior import merge_proposals
from exact.agents.request import check_view, state_request
from exact.config import PolicyConfig, ViewConfig
from exact.context import Context, Proposal, Taken
from exact.environments.browser.act.grammar import can_type, holds, options_of, suited
from exact.environments.tools.schema import JSON_GRAMMAR
from exact.errors import UsageError
from exact.models.base import ChatModel, ChatRequest, Choice, Sampling, reasons
from exact.observation import Element, Observation, same_state
from exact.prompts.ask import read, read_choices
from exact.untrusted import read_yaml
from exact.views.labels import describe, element_label, made_names
from exact.views.view import PromptView

COMPUTER = "policy_computer"
"""Name of the prompt whose answers are calls of the computer tool."""
WeightedAction = tuple[ParsedAction, float]


class LLMPolicy:
    """Asks a model for actions and weighs the answers as `PolicyConfig` says. `prompt_family` selects the prompt.

    With `form: samples`, an action's weight is the sum over the answers that name it. Answers agree when their actions have the same key.
    With `form: list`, the weight is the confidence that the single answer states. With `weigh: logprobs` it is the geometric mean of the
    probabilities of the tokens of the answer, or of the action in the list, if the server gives them for all. With `actions: computer` the
    model's own computer tool is offered, and an answer is a call of it, or a line with another action.
    """

    def __init__(
        self,
        model: ChatModel,
        config: PolicyConfig,
        view: ViewConfig = ViewConfig(),  # noqa: B008 (frozen)
        *,
        sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
        several: bool = True,
    ) -> None:
        """Configure the policy.

        `sampling` sets how answers are drawn; their number is `config.samples`. `several` says whether the server returns several answers
        to one request. Raises UsageError if the view shows nothing of a state.
        """
        check_view(view)
        if config.form == "likeliest":
            raise UsageError("policy.form: likeliest is a policy of its own: make a LikeliestPolicy")
        self._points = config.actions == "computer"
        if self._points and not view.images:
            raise UsageError("policy.actions: computer aims at points of the screenshot: set view.images: true")
        if self._points and config.form in ("list", "conversation"):
            raise UsageError("policy.actions: computer gives one action an answer: set policy.form: samples")
        if config.weigh == "logprobs":
            sampling = msgspec.structs.replace(sampling, logprobs=True)
        self._model, self._config, self._sampling = model, config, sampling
        self._view = msgspec.structs.replace(view, marks=False) if self._points else view
        self._labels = config.elements == "label"
        self._lists = not self._points and (config.form == "list" or (config.form == "auto" and not several and config.samples > 1))

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Return at most `k` distinct actions that the observation admits, heaviest first, ties in order of first mention.

        Raises ModelError.
        """
        context = msgspec.structs.replace(context, tried=(*context.tried, *in_vain(context)))
        if self._points and context.observation.screenshot is not None and actions.code is None:
            weighted = await self._sampled(context, actions, points=True)
            return merge_proposals(weighted, k)
        if not self._view.text and not self._view.marks:
            actions = actions.pointing()
        weighted = await (self._listed(context, actions, k) if self._lists else self._sampled(context, actions))
        return merge_proposals(weighted, k)

    async def _listed(self, context: Context, actions: ActionSpace, k: int) -> list[WeightedAction]:
        parse = reader(parse_actions, context, actions, labels=self._labels)
        [(choice, listed)] = await read(self._model, self._request("_list", context, actions, samples=1, k=k), parse, seed=context.seed)
        weights = [span_probability(choice, one.span) for one in listed] if self._config.weigh == "logprobs" else []
        known = [weight for weight in weights if weight is not None]
        stated = [one.confidence for one in listed]
        return [(one.chosen, weight) for one, weight in zip(listed, known if len(known) == len(listed) else stated, strict=True)]

    async def _sampled(self, context: Context, actions: ActionSpace, *, points: bool = False) -> list[WeightedAction]:
        """Return weighted actions from answers with one action each."""
        return [(chosen, self._weight(choice)) for choice, chosen in await self._answers(context, actions, points=points)]

    async def _answers(self, context: Context, actions: ActionSpace, *, points: bool) -> list[tuple[Choice, ParsedAction]]:
        said = actions if not points or self._view.text else actions.pointing()
        parse = reader(parse_action, context, said, labels=self._labels)
        seed, samples = context.seed, self._config.samples
        if not points:
            return await read(self._model, self._request("", context, actions, samples=samples), parse, seed=seed, repair=True)
        request = on_screen(self._request("", context, said.without(GESTURES), samples=samples), actions)

        def call(choice: Choice) -> ParsedAction:
            return parse_call(choice, parse, request, context, actions)

        return await read_choices(self._model, request, call, seed=seed, repair=True)

    def _weight(self, choice: Choice) -> float:
        """Return the weight of an answer: 1, or the geometric mean of its token probabilities."""
        if self._config.weigh == "frequency" or not choice.logprobs:
            return 1.0
        return _geometric_mean(choice.logprobs)

    def _request(self, form: str, context: Context, actions: ActionSpace, *, samples: int, **inputs: Any) -> ChatRequest:
        name, labels = prompt_family(self._config, self._view, context, actions) + form, self._labels
        by_call = name == COMPUTER

        def grammar(seen: PromptView) -> str:
            thought, most = self._config.grammar == "answer", inputs.get("k", 0)
            made = made_names(seen.context.observation) if labels else {}
            files = [Path(file).name for file in context.task.files]
            offered, tried = useful(actions, context, pictured=self._view.images), (*context.tried, *given(context))
            return answer_grammar(offered, seen.elements, labels=labels, thought=thought, most=most, made=made, tried=tried, files=files)

        constrained = None if self._config.grammar == "none" or by_call else grammar
        if self._config.form == "conversation":
            return conversation_request(
                context,
                self._config,
                self._view,
                self._sampling,
                actions,
                samples=samples,
                model=self._model.name,
                grammar=constrained,
            )
        thinks = self._config.thoughts and not reasons(self._model)
        return state_request(
            name, context, self._view, self._sampling, role=self._config.role, samples=samples, model=self._model.name,
            grammar=constrained, labels=labels, examples=self._examples,
            form=None if by_call else ACTIONS if form else ACTION if thinks else ACTION_ALONE,
            **policy_inputs(self._config, actions, context, thinks=thinks, pictured=self._view.images), **inputs,
        )  # fmt: skip

    @cached_property
    def _examples(self) -> tuple[Example, ...]:
        return load_examples(self._config.examples) if self._config.examples else ()


def prompt_family(config: PolicyConfig, view: ViewConfig, context: Context, actions: ActionSpace) -> str:
    """Return the name of the prompt for the format of observations and actions. The suffix `_list` selects its list form.

    `policy`: accessibility tree, with or without a plain screenshot. `policy_marks`: a screenshot marked with the ids of the tree.
    `policy_screenshot`: a screenshot alone, acted on by coordinates. `policy_code`: actions are code. `policy_computer`: actions are
    calls of the model's own computer tool.
    """
    if actions.code is not None:
        return "policy_code"
    if config.actions == "computer" and context.observation.screenshot is not None:
        return COMPUTER
    if view.images and view.marks and context.observation.screenshot is not None:
        return "policy_marks"
    return "policy" if view.text else "policy_screenshot"


def policy_inputs(config: PolicyConfig, actions: ActionSpace, context: Context, *, thinks: bool, pictured: bool) -> dict[str, Any]:
    """Return inputs of a policy's prompt for a state: the verbs that it has a use for, the style, and whether a thought is asked for.

    `pictured`: whether the prompt has a screenshot.
    """
    offered = useful(actions, context, pictured=pictured)
    shown = describe(offered) if config.elements == "label" else offered.describe()
    return {"actions": shown, "style": config.style, "thinks": thinks}


_OF_DIALOGS, _OF_TABS = frozenset(("accept", "dismiss", "answer")), frozenset(("tab", "close_tab"))
_BY_SIGHT = frozenset(("click_at", "drag_at", "wheel"))
"""Verbs for what elements do not tell: a picture, a game, a map."""
_DRAWN = frozenset(("Canvas", "application", "graphics-document", "graphics-object", "graphics-symbol"))
"""Roles of elements that are drawn."""


def useful(actions: ActionSpace, context: Context, *, pictured: bool = False) -> ActionSpace:
    """Return the verbs that a state has a use for: those of fields, lists, files, dialogs and tabs only if there are some.

    Points are of use if the prompt is `pictured` or the page draws something; going back, after another page; going forward, after going
    back; typing, if what has the focus cannot be filled or holds lines. All verbs if actions are code or the state lists no elements.
    """
    seen = context.observation
    if not seen.elements or actions.code is not None:
        return actions
    drawn = pictured or any(each.role in _DRAWN for each in seen.elements)

    def typed(focused: Element) -> bool:
        return "\n" in (focused.value or "") or not ("fill" in actions.verbs and suited(actions.verbs["fill"], [focused]))

    def has_a_use(verb: Verb) -> bool:
        if verb.name in _OF_DIALOGS:
            return any(each.role == "alertdialog" for each in seen.elements)
        if verb.name in _OF_TABS:
            return bool(seen.tabs)
        if verb.name in _BY_SIGHT:
            return drawn
        if verb.name == "go_back":
            return bool(seen.tabs) or any(each.observation.url != seen.url for each in context.history)
        if verb.name == "go_forward":
            return any(each.action.name == "go_back" for each in context.history)
        if verb.name == "type":
            return can_type(seen.elements) and (drawn or any("focused" in each.states and typed(each) for each in seen.elements))
        has_files = verb.name != "upload" or bool(context.task.files)
        return has_files and (Parameter.ELEMENT not in verb.form or bool(suited(verb, seen.elements)))

    return ActionSpace([verb for verb in actions.verbs.values() if has_a_use(verb)])


def given(context: Context) -> tuple[Taken, ...]:
    """Return the steps that gave a field what it still holds. The state shows that; a grammar has no use for them again."""
    held = [taken for taken in context.history if holds(taken.action, context.observation.elements)]
    return tuple(msgspec.structs.replace(taken, error="the element holds this already") for taken in held)


def in_vain(context: Context) -> tuple[Taken, ...]:
    """Return the actions that twice changed nothing that can be seen since this state stands, as refused ones; waiting is none."""
    here = context.observation
    still = list(takewhile(lambda taken: not taken.error and _stands(taken.observation, here), reversed(context.history)))
    taken = {each.action.key: each for each in still}
    times = Counter(each.action.key for each in still if each.action.name != "wait")
    error = "done twice here, and nothing changed that can be seen"
    return tuple(msgspec.structs.replace(taken[key], observation=here, error=error) for key, count in times.items() if count >= _IN_VAIN)


def _stands(before: Observation, now: Observation) -> bool:
    return bool(now.fingerprint) and same_state(before.fingerprint, now.fingerprint)


_IN_VAIN = 2
"""Times that an action may change nothing that can be seen: a goal may need a step twice."""


def span_probability(choice: Choice, span: tuple[int, int] | None) -> float | None:
    """Return the geometric mean of the probabilities of the tokens in a part of an answer. None if the server does not give them.

    A token that is partly outside counts.
    """
    if span is None or choice.logprobs is None or choice.ends is None or len(choice.logprobs) != len(choice.ends):
        return None
    first, last = span
    starts = (0, *choice.ends)
    inside = [
        logprob for logprob, start, end in zip(choice.logprobs, starts, choice.ends, strict=False) if max(start, first) < min(end, last)
    ]
    return _geometric_mean(inside) if inside else None


def _geometric_mean(logprobs: Sequence[float]) -> float:
    """Return the geometric mean of probabilities, above 0."""
    return max(sys.float_info.min, math.exp(math.fsum(logprobs) / len(logprobs)))


class Example(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One correct step of another task."""

    goal: str
    observation: str
    thought: str
    action: str
    """Action text in the environment's grammar, such as `click [3]`."""


def load_examples(path: str) -> tuple[Example, ...]:
    """Return the examples in a YAML file, in order.

    Raises UsageError if the file cannot be read or holds no list of examples.
    """
    try:
        return msgspec.convert(read_yaml(Path(path)), tuple[Example, ...])
    except OSError as error:
        raise UsageError(f"cannot read examples {path}: {error.strerror}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} holds no list of examples: {' '.join(str(error).split())}") from error


THOUGHT = 240
"""Most characters of a thought, which stands on one line."""
TEXT = 200
"""Most characters of a text."""

_TEXT = r"""text ::= "\"" ([^"\\\r\n\t] | "\\" ["\\nt]){0,""" + str(TEXT) + r"""} "\"" """
_NUMBER = "number ::= [0-9]{1,4}"


def answer_grammar(
    actions: ActionSpace,
    elements: Sequence[Element],
    *,
    labels: bool,
    thought: bool,
    most: int = 0,
    made: Mapping[str, str] = MappingProxyType({}),
    tried: Sequence[Taken] = (),
    files: Sequence[str] = (),
) -> str:
    """Return the grammar of an answer that names one action of these elements, or with `most` a list of at most so many.

    A verb names the elements that it has a use for, a list its options, and an upload one of `files`. An element is out for a verb that was
    refused with it, as `tried` says. `labels`: elements are named by label and id, else by id; `made` names those without a name.
    `thought`: a line of thought stands before each action. Empty: the actions are code, or none is possible.
    """
    refused = {(taken.action.name, taken.action.elements) for taken in tried if taken.error}
    named = {each.id: element_label(each, made.get(each.id, "")) if labels else f"[{each.id}]" for each in elements}
    ways = [
        way
        for verb in actions.verbs.values()
        if not (verb.name == "type" and not can_type(elements))
        if (way := _ways(verb, elements, named, refused, files))
    ]
    if actions.code is not None or not ways:
        return ""
    before = rf'"Thought: " [^\r\n]{{1,{THOUGHT}}} "\n" ' if thought else ""
    one = f'{before}"Action: " action'
    listed = rf'line ("\n" line){{0,{most - 1}}}' if most > 1 else "line"
    return "\n".join(
        [
            f"root ::= {listed if most else one}",
            *([rf'line ::= {before}"Action (" [1-9] [0-9]? "%): " action'] if most else []),
            f"action ::= {' | '.join(f'verb-{place}' for place in range(len(ways)))}",
            *(f"verb-{place} ::= {way}" for place, way in enumerate(ways)),
            *([f"element ::= {_alternatives([*named.values()])}"] if named else []),
            _TEXT.strip(),
            _NUMBER,
            *([JSON_GRAMMAR] if any(Parameter.OBJECT in verb.form for verb in actions.verbs.values()) else []),
        ]
    )


def _ways(
    verb: Verb, elements: Sequence[Element], named: Mapping[str, str], refused: set[tuple[str, tuple[str, ...]]], files: Sequence[str]
) -> str:
    """Return the ways in which an action of a verb is written; empty if there is none."""
    if Parameter.ELEMENT not in verb.form:
        return "" if not verb.form and (verb.name, ()) in refused else _form(verb, "")
    if verb.name == "upload" and not files:
        return ""
    some = [each for each in suited(verb, elements) if (verb.name, (each.id,)) not in refused]
    if verb.name == "select":
        return " | ".join(_form(verb, _literal(named[each.id]), _texts(options_of(each, elements))) for each in some)
    if len(some) == len(elements):
        return _form(verb, "element") if some else ""
    texts = _texts(files) if verb.name == "upload" else ""
    return _form(verb, f"({_alternatives([named[each.id] for each in some])})", texts) if some else ""


def _form(verb: Verb, element: str, texts: str = "") -> str:
    """Return the written form of a verb. `element`, `texts`: grammars of its elements and of its texts, if these are known."""
    parts = [json.dumps(verb.name)]
    for parameter in verb.form:
        known = element if parameter is Parameter.ELEMENT else texts if parameter is Parameter.TEXT else ""
        parts.append(f'" " {known or _parameter(parameter, verb)}')
    return " ".join(parts)


def _texts(known: Sequence[str]) -> str:
    """Return the grammar of one of some texts in quotation marks; empty if there are none."""
    return f"({_alternatives([json.dumps(text, ensure_ascii=False) for text in known])})" if known else ""


def _parameter(parameter: Parameter | str, verb: Verb) -> str:
    if isinstance(parameter, Parameter):
        kinds = {Parameter.TEXT: "text", Parameter.OBJECT: "json-object"}
        return f"({verb.grammar})" if verb.grammar else kinds.get(parameter, "number")
    return f"({_alternatives(parameter.split('|'))})"


def _alternatives(texts: Sequence[str]) -> str:
    return " | ".join(map(_literal, dict.fromkeys(texts)))


def _literal(text: str) -> str:
    """Return a text as a literal of the grammar."""
    escaped = "".join({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character, character) for character in text)
    return f'"{escaped}"'
