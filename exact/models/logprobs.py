"""Log-probabilities of an answer's tokens, as OpenAI's APIs and the servers that follow them give them."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

from exact.models.base import TokenChance
from exact.models.decode import as_list, as_text, objects

LEAST_LOGPROB = -9999.0
"""Log-probability of what cannot be, as servers write it that cannot write minus infinity."""


def logprobs(tokens: list[dict[str, Any]]) -> tuple[float, ...] | None:
    """Return the log-probability of each token; None where there are none, or where one lacks."""
    found = tuple(logprob for each in tokens if (logprob := _logprob(each.get("logprob"))) is not None)
    return found if tokens and len(found) == len(tokens) else None


def ends(tokens: list[dict[str, Any]], text: str) -> tuple[int, ...] | None:
    """Return the position in the text at which each token ends. None where the tokens do not make up the text."""
    decoder, found, written = codecs.getincrementaldecoder("utf-8")(errors="replace"), list[int](), ""
    for token in tokens:
        written += decoder.decode(_bytes(token))
        found.append(len(written))
    begins = written.rfind(text) if text else -1
    return None if begins < 0 else tuple(min(len(text), max(0, end - begins)) for end in found)


def top_logprobs(tokens: list[dict[str, Any]]) -> tuple[tuple[TokenChance, ...], ...] | None:
    """Return the likeliest tokens at each position; None where the server lists none."""
    found = tuple(tuple(_chances(token.get("top_logprobs"))) for token in tokens)
    return found if any(found) else None


def _chances(given: object) -> list[TokenChance]:
    chances = [(_bytes(each).decode(errors="replace"), _logprob(each.get("logprob"))) for each in objects(given)]
    return sorted((TokenChance(text, logprob) for text, logprob in chances if logprob is not None), key=lambda one: -one.logprob)


def _bytes(token: Mapping[str, Any]) -> bytes:
    """Return the bytes of a token: `bytes`, where a part of a character may stand, else its text."""
    given = as_list(token.get("bytes"))
    if given and all(isinstance(each, int) and 0 <= each < 256 for each in given):
        return bytes(given)
    return as_text(token.get("token")).encode()


def _logprob(value: object) -> float | None:
    """Return a log-probability, at least LEAST_LOGPROB; None where the value is none."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value <= 1.0:
        return None
    return float(max(value, LEAST_LOGPROB))
