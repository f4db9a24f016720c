"""Classifiers on the wire: messages as JSON, and a probability as an answer."""

from __future__ import annotations

from typing import Any

from exact.models import wire
from exact.models.base import ChatAnswer, ChatRequest, Choice
from exact.models.decode import MalformedAnswer, as_list, as_object, as_text, decoded
from exact.models.providers import ModelCapabilities

PATH = "/classify"
KEY_HEADER = ""
REQUIRED = frozenset({"model", "messages"})


def body(request: ChatRequest, model: str, *, n: int, index: int, takes: ModelCapabilities) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the request to a classifier, which has messages only, and notes on the parts that are left out."""
    notes = list[str]()
    return {"model": model, "messages": wire.turns(request.sent(), takes, notes)}, tuple(notes)


def headers(body: dict[str, Any]) -> dict[str, str]:
    """Return no further headers."""
    return {}


def answer(raw: str) -> ChatAnswer:
    """Return a classifier's answer: one choice, whose text is the probability of success. Raises MalformedAnswer.

    `data` is that number, or as vLLM gives it a list with the probabilities of the classes: of one class, or of two, the second being
    success.
    """
    given = decoded(raw)
    data = given.get("data")
    if isinstance(data, list) and len(data) == 1:
        probabilities = as_list(as_object(data[0]).get("probs"))
        data = probabilities[-1] if len(probabilities) in (1, 2) else None
    if not isinstance(data, int | float) or isinstance(data, bool):
        raise MalformedAnswer(f"neither a probability nor those of one or two classes: {raw[:120]!r}")
    choice = Choice(text=repr(float(data)), finish="stop")
    return ChatAnswer(choices=(choice,), usage=wire.usage(given.get("usage")), model=as_text(given.get("model")), raw=raw)
