"""Refusals of servers, read as capabilities that they lack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from exact.models.providers import Limit, ModelCapabilities

FIELDS = {
    "n": "n",
    "logprobs": "logprobs",
    "response_format": "json_schema",
    "seed": "seed",
    "temperature": "sampling",
    "top_p": "sampling",
}
"""Fields of a request that can be left out, and the capability of each."""

LIMITS: tuple[Limit, Limit] = ("max_tokens", "max_completion_tokens")

_UNKNOWN = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra (?:input|field)"
    r"|not (?:be )?(?:permitted|allowed|available|implemented|taken)"
    r"|cannot (?:find|both)|does not (?:take|accept|have)|only the default|must be 1\b",
    re.I,
)
"""Matches a message about an unknown field, not one about a wrong value."""


def lacking(takes: ModelCapabilities, body: Mapping[str, Any], param: str, message: str) -> ModelCapabilities | None:
    """Return the capabilities after a request with this body was refused; None where the refusal concerns nothing that can be left out.

    Names are looked for in `param`, then as whole words in the message. A result differs from `takes`, so that repeated refusals end.
    """
    if _named("max_completion_tokens", param, message) or _named("max_tokens", param, message):
        found = _other_limit(body, message)
        if found is not None:
            return msgspec.structs.replace(takes, limit=found)
    if param != "n" and not _UNKNOWN.search(message):
        return None
    blamed = [field for field in FIELDS if field in body and (param == field or (not param and _quoted(field, message)))]
    if {"temperature", "top_p"} <= body.keys() and _named("temperature", "", message) and _named("top_p", "", message):
        return msgspec.structs.replace(takes, both=False)
    if blamed:
        return msgspec.structs.replace(takes, **{FIELDS[field]: False for field in blamed})
    roles = {turn["role"] for turn in body.get("messages", ())}
    if "system" in roles and re.search(r"\bsystem\b", message, re.I) and re.search(r"\brole\b", f"{param} {message}", re.I):
        return msgspec.structs.replace(takes, system=False)
    return None


def _other_limit(body: Mapping[str, Any], message: str) -> Limit | None:
    """Return the other name of the cap on tokens, where the message names it or calls the sent one unknown."""
    sent, other = LIMITS if LIMITS[0] in body else LIMITS[::-1]
    if _named(other, "", message) or _UNKNOWN.search(message):
        return other if sent in body else None
    return None


def _named(field: str, param: str, message: str) -> bool:
    return param == field or re.search(rf"(?<!\w){field}(?!\w)", message) is not None


def _quoted(field: str, message: str) -> bool:
    """Return whether a message names a field. A name of one letter counts only in quotes."""
    if len(field) == 1:
        return re.search(rf"['\"`]{field}['\"`]", message) is not None
    return _named(field, "", message)
