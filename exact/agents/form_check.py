"""Test of the forms in which a model's answers can be read: lines, or JSON by a schema."""

from __future__ import annotations

import msgspec

from exact.agents.form import ACTIONS
from exact.agents.parse import parse_actions
from exact.agents.request import chat_request
from exact.config import ModelConfig
from exact.config.models import Structured
from exact.errors import ActionError
from exact.models.base import ChatAnswer, ChatRequest
from exact.models.openai import OpenAIModel, sampling
from exact.prompts.example import ACTIONS as VERBS
from exact.prompts.example import example_context, example_inputs
from exact.prompts.library import describe_prompt, render_prompt

PROMPT = "policy_list"
"""Prompt of the test: the form that is hardest to keep to."""


class FormReport(msgspec.Struct, frozen=True, kw_only=True):
    """Forms in which a model's answers can be read."""

    lines: bool
    """Whether an answer in lines could be read."""
    json: bool
    """Whether an answer as JSON could be read."""
    constrained: bool
    """Whether the server took a schema. Without one the second answer was asked for in lines too."""
    cost: float = 0.0
    """US dollars for both calls, if the price is known."""

    @property
    def advice(self) -> Structured | None:
        """Value of `models.<role>.structured` that fits. None: neither form could be read."""
        if self.lines:
            return "auto"
        return "always" if self.json else None

    def row(self) -> str:
        """Return the findings in one line."""
        schema = "no schema is taken" if not self.constrained else f"JSON by a schema is {'' if self.json else 'not '}read"
        way_out = {"auto": "", "always": ": set models.policy.structured to always", None: ": use a larger model, or a grammar"}
        return f"lines are {'' if self.lines else 'not '}read, {schema}{way_out[self.advice]}"


async def check_forms(config: ModelConfig) -> FormReport:
    """Request a list of actions for an example's state twice: in lines, and by a schema.

    Raises ModelError if the model does not answer, UsageError for a missing key.
    """
    lines, by_schema = await _asked(config, "never"), await _asked(config, "always")
    is_json, cost = by_schema.structured, sum(answer.usage.cost or 0.0 for answer in (lines, by_schema))
    return FormReport(lines=_is_read(lines), json=is_json and _is_read(by_schema), constrained=is_json, cost=cost)


async def _asked(config: ModelConfig, structured: Structured) -> ChatAnswer:
    model = OpenAIModel(msgspec.structs.replace(config, structured=structured))
    try:
        return await model.complete(_request(config))
    finally:
        await model.close()


def _request(config: ModelConfig) -> ChatRequest:
    prompt = render_prompt(PROMPT, **example_inputs(describe_prompt(PROMPT)))
    return chat_request(prompt, (), sampling(config), role="policy", samples=1, node=0, form=ACTIONS)


def _is_read(answer: ChatAnswer) -> bool:
    try:
        return bool(parse_actions(answer.choices[0].text, VERBS, example_context().observation))
    except ActionError:
        return False
