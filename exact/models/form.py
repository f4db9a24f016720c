"""Answers as JSON in place of the lines that a prompt asks for, where the server constrains them."""

from __future__ import annotations

import msgspec

from exact.config.models import Structured
from exact.models.base import ChatRequest, Text
from exact.models.providers import ModelCapabilities


def structured(request: ChatRequest, mode: Structured, takes: ModelCapabilities) -> bool:
    """Return whether the answer to a request is asked for as JSON.

    auto: only after an answer that did not parse. A request with a schema, a grammar or a computer tool of its own keeps that. A server
    that constrains nothing is asked for lines.
    """
    if (
        request.form is None
        or request.schema is not None
        or request.screen is not None
        or mode == "never"
        or (mode == "auto" and not request.attempt)
    ):
        return False
    if request.grammar and takes.grammar is not False:
        return False
    return takes.json_schema is not False or takes.tools is True


def as_json(request: ChatRequest) -> ChatRequest:
    """Return a request whose answer is a JSON object: with the form's schema, and an example of it at the end of the last turn."""
    assert request.form is not None, "only a request with a form is asked for as JSON"
    *before, last = request.messages
    words = Text(f"Write the answer as one JSON object in place of the lines: {request.form.example}")
    return msgspec.structs.replace(
        request, schema=request.form.schema, messages=(*before, msgspec.structs.replace(last, parts=(*last.parts, words)))
    )  # fmt: skip
