"""Refusals of servers: which fields of a request to leave out, and which refusals concern the prompt."""

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
    **dict.fromkeys(("grammar", "structured_outputs", "ebnf"), "grammar"),
    "seed": "seed",
    "temperature": "sampling",
    "top_p": "sampling",
}
"""Fields of a request that a capability stands for."""

FEWER_TOP_LOGPROBS = 5
"""Likeliest tokens a position that are requested where more are refused: no server that lists any lists fewer."""

LIMITS: tuple[Limit, Limit] = ("max_tokens", "max_completion_tokens")
REQUIRED = frozenset({"model", "messages"})
"""Fields that a request cannot do without."""

_SYNONYMS = {
    "n": r"['\"`]n['\"`]|\bn\s*(?:=|>|<|must|should|value|has to|of \d)|\bn_\w+"
    r"|\bnumber of (?:choices|completions|candidates|outputs|samples)"
    r"|\b(?:several|multiple|one|1) (?:choices?|completions?|candidates?|outputs?)\b|\bcandidate_?count\b|\bnum_return_sequences\b",
    "logprobs": r"\blog[\s_-]?prob\w*|\btoken probabilities\b",
    "top_logprobs": r"\blog[\s_-]?prob\w*|\btoken probabilities\b",
    "response_format": r"\bjson[\s_]?schema\b|\bjson mode\b|\bstructured[\s_]?outputs?\b",
    **dict.fromkeys(("grammar", "structured_outputs", "ebnf"), r"\bgrammars?\b|\bguided[\s_]?(?:decoding|grammar)\b"),
    "temperature": r"\bsampling (?:parameter|setting|option)s?\b",
    "top_p": r"\bsampling (?:parameter|setting|option)s?\b|\bnucleus\b",
}
"""What servers call a field besides its name."""

_UNKNOWN = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra (?:input|field)|deprecated"
    r"|not (?:be )?(?:permitted|allowed|available|implemented|taken)"
    r"|cannot (?:find|both)|does not (?:take|accept|have)|only the default|must be 1\b",
    re.I,
)
"""Matches a message about an unknown field, not one about a wrong value."""
_TOGETHER = re.compile(r"\bboth\b|\bonly one\b|\bone of\b|\btogether\b|\bsimultaneous|\beither\b|\bat the same time\b|\bexclusive", re.I)
_PICTURES = re.compile(
    r"\bimages?\b|image_url|\bpictures?\b|\bvision\b|multi-?modal|mmproj|content.{0,40}\b(?:must be|as|valid) (?:a )?string", re.I
)
_ONE_PICTURE = re.compile(
    r"too (?:large|big|small|many)|exceed|dimension|pixel|\bbytes\b|corrupt|decod|invalid image|could not process|download", re.I
)
_SYSTEM = re.compile(r"\broles?\b|\bsystem (?:message|prompt|turn|instruction)", re.I)
_LENGTH = re.compile(
    r"context[\s_]?(?:length|window|size)|exceeds? .{0,40}\bcontext\b|(?:prompt|input|request)\W.{0,30}too (?:long|large)"
    r"|too many (?:input )?tokens|maximum number of tokens|reduce the length",
    re.I,
)
_FILTER = re.compile(
    r"content[\s_-]?(?:filter|policy|management|moderation|inspection)|data_?inspection|responsible\s?ai|moderation|prohibited[\s_]content"
    r"|inappropriate content|safety (?:system|filter|setting|reason|polic)|usage polic|\bflagged\b"
    r"|blocked (?:by|due|for) .{0,40}(?:safety|filter|policy)"
    r"|sensitive (?:content|words?)|risk control",
    re.I,
)


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint takes, as its refusals tell."""

    takes: ModelCapabilities
    """Capabilities."""
    without: frozenset[str] = frozenset()
    """Further fields of a request that the server refuses."""

    def refuses(self, field: str) -> bool:
        """Return whether a field of a request is left out."""
        if field == "top_logprobs":
            return self.takes.logprobs is False or self.takes.top_logprobs == 0
        return field in self.without or (field in FIELDS and getattr(self.takes, FIELDS[field]) is False)


def prompt_filtered(code: str, message: str) -> bool:
    """Return whether an error status means that the provider's filter refuses this prompt."""
    return _FILTER.search(f"{code} {message}") is not None


def too_long(code: str, message: str) -> bool:
    """Return whether an error status means that the prompt does not fit into the model's context."""
    return _LENGTH.search(f"{code} {message}") is not None


def pictures_refused(body: Mapping[str, Any], message: str) -> bool:
    """Return whether a refusal says that the model takes no pictures. A fault of one picture is none."""
    return _has_pictures(body) and _PICTURES.search(message) is not None and not _ONE_PICTURE.search(message)


def adjusted(known: Learned, body: Mapping[str, Any], param: str, message: str) -> Learned | None:
    """Return what to leave out after a request with this body was refused; None where nothing is left that could be.

    The fields that the refusal names are left out, in whatever words: in `param`, by their name, or by a synonym. If it names none, all
    optional fields are; then pictures, then the system turn. A result differs from `known`, so that repeated refusals end.
    """
    takes = known.takes
    sent = [field for field in body if field not in REQUIRED]
    named = [field for field in sent if _named(field, param, message)]
    if {"temperature", "top_p"} <= set(named) and takes.both is not False and _TOGETHER.search(message):
        return _with(known, both=False)
    if pictures_refused(body, message):
        return _with(known, images=False)
    if named == ["top_logprobs"] and body["top_logprobs"] > FEWER_TOP_LOGPROBS and not _UNKNOWN.search(message):
        return _with(known, top_logprobs=FEWER_TOP_LOGPROBS)
    if not named or set(named) <= set(LIMITS):
        limit = _other_limit(takes, body, param, message)
        if limit is not None:
            return _with(known, limit=limit)
    if not named and _has_system(body) and _SYSTEM.search(message):
        return _with(known, system=False)
    if named or sent:
        return _left_out(known, named or sent)
    if _has_pictures(body):
        return _with(known, images=False)
    return _with(known, system=False) if _has_system(body) else None


def _left_out(known: Learned, fields: list[str]) -> Learned:
    lacks: dict[str, Any] = {FIELDS[field]: False for field in fields if field in FIELDS}
    if "top_logprobs" in fields:
        lacks["top_logprobs"] = 0
    others = known.without | {field for field in fields if field not in FIELDS and field != "top_logprobs"}
    return Learned(takes=msgspec.structs.replace(known.takes, **lacks), without=frozenset(others))


def _with(known: Learned, **capabilities: Any) -> Learned:
    return msgspec.structs.replace(known, takes=msgspec.structs.replace(known.takes, **capabilities))


def _other_limit(takes: ModelCapabilities, body: Mapping[str, Any], param: str, message: str) -> Limit | None:
    """Return the other name of the cap on tokens, where the message names it or calls the sent one unknown. It is tried once."""
    sent, other = LIMITS if LIMITS[0] in body else LIMITS[::-1]
    if sent not in body or takes.limit == sent:
        return None
    is_named = re.search(rf"(?<!\w){other}(?!\w)", message) is not None
    return other if is_named or (_named(sent, param, message) and _UNKNOWN.search(message)) else None


def _named(field: str, param: str, message: str) -> bool:
    """Return whether a refusal names a field, in any spelling: `top_p`, `topP`, `top p`, `body.top_p`."""
    if field in re.split(r"[.\[\]/]+", param):
        return True
    if (synonym := _SYNONYMS.get(field)) and re.search(synonym, message, re.I):
        return True
    spelled = r"[\s_-]?".join(map(re.escape, field.split("_")))
    return len(field) > 1 and re.search(rf"(?<![A-Za-z0-9_]){spelled}(?![A-Za-z0-9_])", message, re.I) is not None


def _has_pictures(body: Mapping[str, Any]) -> bool:
    contents = [turn.get("content") for turn in body.get("messages", ())]
    return any(
        isinstance(part, dict) and "image" in str(part.get("type")) for content in contents if isinstance(content, list) for part in content
    )


def _has_system(body: Mapping[str, Any]) -> bool:
    return any(turn["role"] == "system" for turn in body.get("messages", ()))
