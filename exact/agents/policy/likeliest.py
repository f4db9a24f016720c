"""A policy that proposes the likeliest of the offered actions, by the probabilities of tokens instead of samples.

The model's answer is begun for it, `Action: click [1`, and the server lists the likeliest next tokens. Tokens that go on with no offered
action are left out. The likeliest beginning of all is asked about next (best-first search), so that actions are completed in the order of
their probability. All questions have the prompt in common, which the server reads once and keeps in its cache.
"""

from __future__ import annotations

import heapq
import json
import math
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from exact.action import ActionSpace, Parameter, Verb
from exact.agents.parse import ParsedAction, parse_action, reader
from exact.agents.policy.llm import given, in_vain, load_examples, policy_inputs, prompt_family, useful
from exact.agents.policy.prior import merge_proposals
from exact.agents.request import check_view, draw_key, state_request, view_state
from exact.agents.value.logprob import one_token
from exact.config import PolicyConfig, ViewConfig
from exact.context import Context, Proposal, Taken
from exact.environments.browser.act.grammar import can_type, options_of, suited
from exact.errors import ActionError, AnswerError, ModelError, PromptRefused, UsageError
from exact.models.base import ChatModel, ChatRequest, Choice, Message, Sampling, Text, TokenChance
from exact.observation import Element
from exact.prompts.ask import call_seed
from exact.views.labels import element_label, made_names

BEGUN = "Action:"
"""Beginning of each answer. A space after it would be split from the token of the verb."""
MANY = 64
"""Beginnings in one state, after which only as many others are followed as actions are wanted."""

_MOST_ELEMENTS = 40
"""Elements up to which each pair is offered to a verb that names two; the model writes the second one of more."""
_WRITTEN_TOKENS = 128
"""Most tokens of what the model writes freely."""
_QUOTED = re.compile(r'(?:[^"\\\n]|\\.)*"')
_TO_THE_QUOTE = r'root ::= ([^"\\\r\n\t] | "\\" ["\\nt]){0,200} "\""'
"""Grammar (GBNF) of the rest of a text and its quotation mark."""


class Offer(NamedTuple):
    """An action as an answer writes it after `Action:`, up to the first part that the model writes freely."""

    text: str
    free: bool = False
    """Whether a part follows."""
    quoted: bool = False
    """Whether this part is a text that ends the action; its opening quotation mark is in `text`."""


class Prefix(NamedTuple):
    """The text of an answer after `Action:`, and whether it leaves no choice between offers."""

    text: str
    decided: bool = False


class Offers:
    """The offered actions of a state, to be looked up by their beginnings."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        self._by_text = {offer.text: offer for offer in offers}
        self._texts = sorted(self._by_text)
        self._free = [text for text in self._texts if self._by_text[text].free]

    def __len__(self) -> int:
        return len(self._texts)

    def reached(self, text: str) -> Prefix | None:
        """Return the beginning that a text is, filled in if one offer alone goes on so. None if it begins no offer."""
        first, last = bisect_left(self._texts, text), bisect_right(self._texts, text + chr(0x10FFFF))
        if last - first == 1:
            return Prefix(self._texts[first], decided=True)
        if last > first:
            return Prefix(text)
        if (ended := text.rstrip()) in self._by_text:
            return Prefix(ended, decided=True)
        return Prefix(text, decided=True) if self.freed(text) else None

    def freed(self, text: str) -> Offer | None:
        """Return the offer whose free part a text has reached; None if it has reached none."""
        return next((self._by_text[each] for each in self._free if text.startswith(each)), None)

    def shares(self, text: str, listed: Sequence[TokenChance]) -> Mapping[Prefix, float]:
        """Return the beginnings that the listed tokens lead to from a text, each with its probability.

        Tokens that lead to the same one add up. What goes on with no offer ends a text that is an offer by itself.
        """
        found = dict[Prefix, float]()
        for token, logprob in listed:
            to = self.reached(text + token) if token else None
            if to is None and text in self._by_text:
                to = Prefix(text, decided=True)
            if to is not None:
                found[to] = found.get(to, 0.0) + math.exp(logprob)
        return found


class LikeliestPolicy:
    """Proposes the k likeliest offered actions: `PolicyConfig.form: likeliest`.

    An action's weight is the probability of its tokens, up to a part that the model writes freely. If one offered action alone begins so,
    the rest of it is certain.
    """

    def __init__(
        self,
        model: ChatModel,
        config: PolicyConfig,
        view: ViewConfig = ViewConfig(),  # noqa: B008 (frozen)
        *,
        sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
    ) -> None:
        """Configure the policy. Raises UsageError if the view shows nothing of a state, or the examples cannot be read."""
        check_view(view)
        if config.actions == "computer":
            raise UsageError("policy.actions: computer gives one action an answer: set policy.form: samples")
        self._model, self._config, self._view, self._sampling = model, config, view, sampling
        self._labels = config.elements == "label"
        self._examples = load_examples(config.examples) if config.examples else ()

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Return at most `k` distinct offered actions, likeliest first. Empty if none is offered.

        Raises ModelError, and AnswerError if the model begins no offered action. Raises UsageError if the server lists no likeliest tokens
        or does not continue an answer, and if the actions are code.
        """
        if actions.code is not None:
            raise UsageError(f"policy.form: likeliest offers no code, which {actions.code.name} takes: set policy.form: samples")
        context = msgspec.structs.replace(context, tried=(*context.tried, *in_vain(context)))
        if not self._view.text and not self._view.marks:
            actions = actions.pointing()
        if not (offers := self._offers(context, actions)):
            return ()
        request = self._request(context, actions)
        ahead, followed = [(-1.0, offers.reached("") or Prefix(""))], set[Prefix]()
        found, asked, refused = dict[str, tuple[ParsedAction, float]](), 0, "none is among the likeliest tokens"
        while ahead and len(found) < k:
            less, beginning = heapq.heappop(ahead)
            if beginning in followed:
                continue
            followed.add(beginning)
            asked += 1
            if beginning.decided:
                try:
                    chosen = await self._written(request, beginning.text, offers, context, actions)
                    found.setdefault(chosen.action.key, (chosen, max(-less, sys.float_info.min)))
                except ActionError as error:
                    refused = str(error)
                continue
            for each, share in (await self._shares(request, beginning.text, offers)).items():
                heapq.heappush(ahead, (less * share, each))
            ahead = ahead if asked < MANY else heapq.nsmallest(k - len(found), ahead)
        if not found:
            raise AnswerError(f"{self._model.name} begins no offered action for the {request.role} that can be taken: {refused}")
        return merge_proposals(list(found.values()), k)

    async def _shares(self, request: ChatRequest, text: str, offers: Offers) -> Mapping[Prefix, float]:
        """Return the beginnings that the likeliest tokens after one lead to. Raises ModelError, UsageError."""
        choice = await self._continued(one_token(request), text)
        if not choice.top_logprobs or not (listed := choice.top_logprobs[0]):
            raise UsageError(
                f"{self._model.name} lists no likeliest tokens, by which policy.form: likeliest finds actions: "
                "serve the model by llama.cpp, vLLM or SGLang, or set policy.form: samples"
            )
        shares, said = offers.shares(text, listed), listed[0].text
        if not text and not choice.text.startswith(BEGUN) and (not shares or (said.strip() and BEGUN.startswith(said.strip()))):
            raise UsageError(
                f"{self._model.name} does not continue the answer {BEGUN!r} that policy.form: likeliest begins, it answers {said!r}: "
                f"let the server continue it (vLLM and SGLang: models.{request.role}.extra: "
                "{add_generation_prompt: false, continue_final_message: true}), or set policy.form: samples"
            )
        return shares

    async def _written(self, request: ChatRequest, text: str, offers: Offers, context: Context, actions: ActionSpace) -> ParsedAction:
        """Return the action of a beginning, whose free part the model writes. Raises ModelError, and ActionError if it cannot be taken."""
        if (offer := offers.freed(text)) and not (offer.quoted and _QUOTED.match(text, len(offer.text))):
            freely = msgspec.structs.replace(request, grammar=_TO_THE_QUOTE if offer.quoted else "")
            text += (await self._continued(freely, text)).text.removeprefix(BEGUN + text)
            quoted = _QUOTED.match(text, len(offer.text)) if offer.quoted else None
            text = text[: quoted.end()] if quoted else text.partition("\n")[0]
        return reader(parse_action, context, actions, labels=self._labels)(BEGUN + text)

    async def _continued(self, request: ChatRequest, text: str) -> Choice:
        """Return how the model goes on with an answer, whether or not its text repeats the beginning. Raises ModelError."""
        messages = (*request.messages, Message("assistant", (Text(BEGUN + text),)))
        [choice, *_] = (await self._model.complete(msgspec.structs.replace(request, messages=messages))).choices
        if choice.finish in ("empty", "content_filter", "refusal"):
            kind = {"empty": ModelError, "content_filter": PromptRefused}.get(choice.finish, AnswerError)
            raise kind(f"{self._model.name} gave nothing for the {request.role} that can be read: {choice.finish}")
        return choice

    def _request(self, context: Context, actions: ActionSpace) -> ChatRequest:
        """Return the policy's usual request for an action without a thought."""
        config, view = self._config, self._view
        sampling = Sampling(
            temperature=0.0,
            max_tokens=min(self._sampling.max_tokens, _WRITTEN_TOKENS),
            seed=call_seed(context.seed, config.role, context.node, 0, draw_key(context)),
        )
        return state_request(
            prompt_family(config, view, context, actions), context, view, sampling, role=config.role, samples=1, model=self._model.name,
            labels=self._labels, examples=self._examples, **policy_inputs(config, actions, context, thinks=False, pictured=view.images),
        )  # fmt: skip

    def _offers(self, context: Context, actions: ActionSpace) -> Offers:
        seen = view_state(context, self._view, self._model.name, labels=self._labels)
        made = made_names(seen.context.observation) if self._labels else {}
        named = {each.id: element_label(each, made.get(each.id, "")) if self._labels else f"[{each.id}]" for each in seen.elements}
        offered, tried = useful(actions, context, pictured=self._view.images), (*context.tried, *given(context))
        files = [Path(file).name for file in context.task.files]
        return Offers(each for verb in offered.verbs.values() for each in offers_of(verb, seen.elements, named, tried=tried, files=files))


def offers_of(
    verb: Verb, elements: Sequence[Element], named: Mapping[str, str], *, tried: Sequence[Taken] = (), files: Sequence[str] = ()
) -> Iterator[Offer]:
    """Yield the offers of a verb: with each element that it has a use for, each option of a list, and each file.

    `named`: elements as answers write them, by id. `tried`: steps, of which those that were refused are not offered again.
    """
    refused = {taken.action.elements for taken in tried if taken.error and taken.action.name == verb.name}
    some = {each.id: each for each in suited(verb, elements)} if Parameter.ELEMENT in verb.form else {}

    def offers(text: str, ids: tuple[str, ...], rest: Sequence[Parameter | str]) -> Iterator[Offer]:
        if not rest:
            yield Offer(text)
            return
        part, *after = rest
        if isinstance(part, str):
            ways = [(word, ids) for word in part.split("|")]
        elif part is Parameter.ELEMENT and (not ids or len(some) <= _MOST_ELEMENTS):
            ways = [(named[id], (*ids, id)) for id in some if (*ids, id) not in refused]
        else:
            known = options_of(some[ids[0]], elements) if verb.name == "select" and ids else files if verb.name == "upload" else ()
            ways = [(json.dumps(each, ensure_ascii=False), ids) for each in known if part is Parameter.TEXT]
            if not ways:
                quoted = part is Parameter.TEXT
                yield Offer(f'{text} "' if quoted else f"{text} ", free=True, quoted=quoted and not after)
        for word, named_ids in ways:
            yield from offers(f"{text} {word}", named_ids, after)

    if not (verb.name == "type" and not can_type(elements)) and (verb.form or () not in refused):
        yield from offers(f" {verb.name}", (), verb.form)
