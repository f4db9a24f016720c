"""Refusals of servers: which fields of a request to leave out, and which refusals concern the prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from exact.models.providers import Limit, ModelCapabilities
from exact.models.wire import REQUIRED

FIELDS = {
    "n": "n",
    "logprobs": "logprobs",
    "response_format": "json_schema",
    "tools": "tools",
    "tool_choice": "tools",
    **dict.fromkeys(("grammar", "structured_outputs", "ebnf"), "grammar"),
    "text": "json_schema",
    "output_config": "json_schema",
    "prompt_cache_key": "cache",
    "seed": "seed",
    "temperature": "sampling",
    "top_p": "sampling",
}
"""Fields of a request that a capability stands for."""

NO_BODY: Mapping[str, Any] = {}
_LEAST_TOKENS = re.compile(
    r"(?:at least|minimum(?: value)?(?: of| is)?|min(?:imum)?|>=?|greater than(?: or equal to)?|no less than)\D{0,20}?(\d+)"
    r"|(\d+)\s*(?:or more|at least|<=)",
    re.I,
)
"""Matches the fewest new tokens that a server takes as a cap."""
_MOST_LEAST_TOKENS = 1024
"""Caps up to which a server's least one is followed."""
FEWER_TOP_LOGPROBS = 5
"""Likeliest tokens requested for each position if more are refused: no server that lists any lists fewer."""

LIMITS: tuple[Limit, Limit] = ("max_tokens", "max_completion_tokens")
_SCHEMA = (
    r"\bjson[\s_]?schema\b|\bjson mode\b|\bstructured[\s_]?outputs?\b|\bgenerate (?:valid )?json\b|\bjson_validate_failed\b"
    r"|\b(?:response|output)[\s_]?(?:json[\s_]?)?schema\b|\badditional[\s_]?properties\b"
)
_SYNONYMS = {
    "n": r"['\"`]n['\"`]|\bn\s*(?:=|>|<|must|should|value|has to|of \d)|\bn_\w+"
    r"|\bnumber of (?:choices|completions|candidates|outputs|samples)"
    r"|\b(?:several|multiple|one|1) (?:choices?|completions?|candidates?|outputs?)\b|\bcandidate_?count\b|\bnum_return_sequences\b",
    "logprobs": r"\blog[\s_-]?prob\w*|\btoken probabilities\b",
    "top_logprobs": r"\blog[\s_-]?prob\w*|\btoken probabilities\b",
    **dict.fromkeys(("tools", "tool_choice"), r"\btools?\b|\bfunction[\s_-]call\w*"),
    **dict.fromkeys(("grammar", "structured_outputs", "ebnf"), r"\bgrammars?\b|\bguided[\s_]?(?:decoding|grammar)\b"),
    "response_format": _SCHEMA,
    "text": _SCHEMA,
    "output_config": _SCHEMA,
    "include": r"\bencrypted[\s_]content\b",
    "prompt_cache_key": r"\bprompt[\s_]cach\w+",
    "temperature": r"\bsampling (?:parameter|setting|option)s?\b",
    "top_p": r"\bsampling (?:parameter|setting|option)s?\b|\bnucleus\b",
}
"""Synonyms by which servers name a field."""

_WORDS = frozenset({"text"})
"""Fields whose names are common words. They count only if they are quoted or begin a path."""
_UNKNOWN = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra (?:input|field)|deprecated"
    r"|not (?:be )?(?:permitted|allowed|available|implemented|taken)"
    r"|cannot (?:find|both)|does not (?:take|accept|have)|only the default|must be 1\b",
    re.I,
)
"""Matches a message about an unknown field, not one about a wrong value."""
_TOGETHER = re.compile(r"\bboth\b|\bonly one\b|\bone of\b|\btogether\b|\bsimultaneous|\beither\b|\bat the same time\b|\bexclusive", re.I)
_NUMBER_LISTED = re.compile(r"top[\s_-]?log[\s_-]?prob\w*.*\d|\d.*top[\s_-]?log[\s_-]?prob", re.I | re.S)
"""Matches a message about a number of likeliest tokens."""
_PICTURES = re.compile(
    r"\bimages?\b|image_url|\bpictures?\b|\bvision\b|multi-?modal|mmproj|content.{0,40}\b(?:must be|as|valid) (?:a )?string", re.I
)
_ONE_PICTURE = re.compile(
    r"too (?:large|big|small|many)|exceed|dimension|pixel|\bbytes\b|corrupt|decod|invalid image|could not process|download", re.I
)
_SYSTEM = re.compile(r"\broles?\b|\bsystem (?:message|prompt|turn|instruction)|\bsystem:|['\"`]system['\"`]", re.I)
_MARKS = re.compile(r"\bcache[\s_]?control\b|\bprompt[\s_]cach\w+", re.I)
_ITEMS = re.compile(
    r"\bsignature\b|\bencrypted[\s_]content\b|\breasoning\b.{0,40}\bitems?\b|\bthinking\b.{0,40}\bblocks?\b|\btool_(?:use|result)\b"
    r"|\b(?:function|computer)_call|\binput\[\d+\]|\bitem with id\b",
    re.I,
)
_WITH_OTHERS = re.compile(r"\b(?:when|while|if|unless|with)\b.*\b(?:enabled|active|on|used|set|turned)\b", re.I | re.S)
"""Matches a message that refuses a sampling setting because of another field."""
_CREDIT = re.compile(r"\bcredit balance\b|\binsufficient[\s_](?:quota|credits?|funds|balance)\b|\bbilling\b|\bpayment required\b", re.I)
_LENGTH = re.compile(
    r"context[\s_]?(?:length|window|size)|exceeds? .{0,40}\bcontext\b|(?:prompt|input|request)\W.{0,30}too (?:long|large)"
    r"|too many (?:input )?tokens|maximum number of tokens|reduce the length",
    re.I,
)
_FILTER = re.compile(
    r"content[\s_-]?(?:filter|policy|management|moderation|inspection)|data_?inspection|responsible\s?ai|moderation|prohibited[\s_]content"
    r"|inappropriate content|safety (?:system|filter|setting|reason|polic)|usage polic|\bflagged\b"
    r"|blocked (?:by|due|for) .{0,40}(?:safety|filter|policy)"
    r"|sensitive (?:content|words?)|risk control|\bbio_policy\b|policy_violation",
    re.I,
)


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """Features that an endpoint supports, as its refusals tell."""

    takes: ModelCapabilities
    """Capabilities."""
    without: frozenset[str] = frozenset()
    """Further fields of a request that the server refuses."""

    def refuses(self, field: str) -> bool:
        """Return whether a field of a request is left out."""
        if field == "top_logprobs":
            return self.takes.logprobs is False or self.takes.top_logprobs == 0
        return field in self.without or (field in FIELDS and getattr(self.takes, FIELDS[field]) is False)


def prompt_filtered(code: str, message: str, body: Mapping[str, Any] = NO_BODY) -> bool:
    """Return whether an error status means that the provider's filter refuses this prompt.

    A message that calls a field of the request unknown, such as `moderation`, speaks of no filter.
    """
    if _UNKNOWN.search(message):
        for field in body:
            message = re.sub(rf"(?<!\w){re.escape(field)}(?!\w)", "", message)
    return _FILTER.search(f"{code} {message}") is not None


def out_of_credit(code: str, message: str) -> bool:
    """Return whether an error status means that the account has no money left."""
    return _CREDIT.search(f"{code} {message}") is not None


def too_long(code: str, message: str) -> bool:
    """Return whether an error status means that the prompt does not fit into the model's context."""
    return _LENGTH.search(f"{code} {message}") is not None


def pictures_refused(body: Mapping[str, Any], message: str) -> bool:
    """Return whether a refusal says that the model takes no pictures. A fault of one picture does not count."""
    return _has_pictures(body) and _PICTURES.search(message) is not None and not _ONE_PICTURE.search(message)


def adjusted(known: Learned, body: Mapping[str, Any], param: str, message: str, required: frozenset[str] = REQUIRED) -> Learned | None:
    """Return the parts to leave out after a request with this body was refused; None if nothing is left to remove.

    The fields that the refusal names are left out, in whatever words: in `param`, by their name, or by a synonym. If it names none, all
    optional fields are, with cache marks and native items; then pictures, then the system turn. `required` fields stay. A result differs
    from `known`, so that repeated refusals end.
    """
    takes = known.takes
    if (inside := _inside(known, body, f"{param} {message}")) is not None:
        return inside
    sent = [field for field in body if field not in required]
    named = [field for field in sent if _named(field, param, message)]
    sampling = [field for field in named if FIELDS.get(field) == "sampling"]
    if sampling and _WITH_OTHERS.search(message):
        named = sampling
    if {"temperature", "top_p"} <= set(named) and takes.both is not False and _TOGETHER.search(message):
        return _with(known, both=False)
    if pictures_refused(body, message):
        return _with(known, images=False)
    if _too_many_listed(body, named, message):
        return _with(known, top_logprobs=FEWER_TOP_LOGPROBS)
    if named and set(named) <= set(LIMITS) and (least := _least_tokens(body, named[0], message)):
        return _with(known, least_tokens=least)
    if not named or set(named) <= set(LIMITS):
        limit = _other_limit(takes, body, param, message)
        if limit is not None:
            return _with(known, limit=limit)
    if not named and _has_system(body) and _SYSTEM.search(message):
        return _with(known, system=False)
    return _left_out(known, named) if named else _without_all(known, body, sent)


def _inside(known: Learned, body: Mapping[str, Any], told: str) -> Learned | None:
    """Return the parts to leave out inside of fields: native items of a turn, cache marks, log-probabilities that are included."""
    if _has_items(body) and _ITEMS.search(told):
        return _with(known, items=False)
    if _has_marks(body) and _MARKS.search(told):
        return _with(known, cache=False)
    if "include" in body and known.takes.logprobs is not False and re.search(_SYNONYMS["logprobs"], told, re.I):
        return _with(known, logprobs=False)
    return None


def _without_all(known: Learned, body: Mapping[str, Any], sent: list[str]) -> Learned | None:
    """Leave out all that can be: optional fields, marks and native items; then pictures; then the system turn."""
    beside = {name: False for name, has in (("cache", _has_marks(body)), ("items", _has_items(body))) if has}
    if sent or beside:
        return _with(_left_out(known, sent), **beside)
    if _has_pictures(body):
        return _with(known, images=False)
    return _with(known, system=False) if _has_system(body) else None


def _too_many_listed(body: Mapping[str, Any], named: list[str], message: str) -> bool:
    """Return whether a refusal is about the number of likeliest tokens, and fewer can be requested."""
    if not set(named) <= {"logprobs", "top_logprobs"} or body.get("top_logprobs", 0) <= FEWER_TOP_LOGPROBS:
        return False
    return _NUMBER_LISTED.search(message) is not None and not _UNKNOWN.search(message)


def _left_out(known: Learned, fields: list[str]) -> Learned:
    lacks: dict[str, Any] = {FIELDS[field]: False for field in fields if field in FIELDS}
    if "top_logprobs" in fields:
        lacks["top_logprobs"] = 0
    others = known.without | {field for field in fields if field not in FIELDS and field != "top_logprobs"}
    return Learned(takes=msgspec.structs.replace(known.takes, **lacks), without=frozenset(others))


def _with(known: Learned, **capabilities: Any) -> Learned:
    return msgspec.structs.replace(known, takes=msgspec.structs.replace(known.takes, **capabilities))


def _other_limit(takes: ModelCapabilities, body: Mapping[str, Any], param: str, message: str) -> Limit | None:
    """Return the other name of the cap on tokens, if the message names it or calls the sent one unknown. It is tried once."""
    sent, other = LIMITS if LIMITS[0] in body else LIMITS[::-1]
    if sent not in body or takes.limit == sent:
        return None
    is_named = re.search(rf"(?<!\w){other}(?!\w)", message) is not None
    return other if is_named or (_named(sent, param, message) and _UNKNOWN.search(message)) else None


def _least_tokens(body: Mapping[str, Any], limit: str, message: str) -> int | None:
    """Return the fewest new tokens that a refused cap may name, if the refusal names more than were sent."""
    if (found := _LEAST_TOKENS.search(message)) is None or _UNKNOWN.search(message):
        return None
    least = int(found[1] or found[2]) + ("greater than" in found[0].lower() and "equal" not in found[0].lower())
    return least if body[limit] < least <= _MOST_LEAST_TOKENS else None


def _named(field: str, param: str, message: str) -> bool:
    """Return whether a refusal names a field, in any spelling: `top_p`, `topP`, `top p`, `body.top_p`."""
    if field in re.split(r"[.\[\]/]+", param):
        return True
    if (synonym := _SYNONYMS.get(field)) and re.search(synonym, message, re.I):
        return True
    if field in _WORDS:
        return re.search(rf"['\"`]{field}['\"`.]|(?<![\w ]){field}\.\w", message) is not None
    spelled = r"[\s_-]?".join(map(re.escape, field.split("_")))
    return len(field) > 1 and re.search(rf"(?<![A-Za-z0-9_]){spelled}(?![A-Za-z0-9_])", message, re.I) is not None


def _has_pictures(body: Mapping[str, Any]) -> bool:
    contents = [turn.get("content") for turn in _turns(body)]
    return any(
        isinstance(part, dict) and "image" in str(part.get("type")) for content in contents if isinstance(content, list) for part in content
    )


def _has_system(body: Mapping[str, Any]) -> bool:
    return "system" in body or any(turn.get("role") == "system" for turn in _turns(body))


def _has_marks(body: Mapping[str, Any]) -> bool:
    """Return whether a turn of the messages API has a cache mark."""
    turns = (body.get("system"), *(turn.get("content") for turn in _turns(body)))
    return any("cache_control" in part for content in turns if isinstance(content, list) for part in content if isinstance(part, dict))


def _has_items(body: Mapping[str, Any]) -> bool:
    """Return whether a turn of the model goes back as it came: items without a role, or parts that are not text."""
    return any("role" not in turn or (turn["role"] == "assistant" and not _is_plain(turn.get("content"))) for turn in _turns(body))


def _is_plain(content: object) -> bool:
    return not isinstance(content, list) or all(part.get("type") == "text" for part in content)


def _turns(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(body.get("messages") or body.get("input") or ())
