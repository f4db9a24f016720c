"""Situations that reflections are retrieved by, as vectors and as words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from math import fsum

import numpy as np

from exact.context import Context, Reflection
from exact.reflection.embed import Embedding, Vector, unit, words
from exact.reflection.record import shortened, site

_WEIGHTS = (0.55, 0.1, 0.35)
"""Weights of instruction, site and state in the similarity of two situations."""
KEYWORDS = 0.2
"""Weight of common words beside the cosine in the ranking of those that reach the threshold."""
_IDS = re.compile(r"^\s*\[[\w:.-]+\] ?", re.M)
_FIGURES = re.compile(r"\d+")

Texts = tuple[str, str, str]


def of_reflection(reflection: Reflection) -> Texts:
    return _texts(reflection.instruction, reflection.site, reflection.state)


def of_context(context: Context) -> Texts:
    return _texts(context.instruction, site(context), context.observation.text)


def vector(embedding: Embedding, texts: Texts) -> Vector:
    """Return the weighted sum of the parts' vectors, of length 1."""
    parts = embedding.embed_all(texts)
    return unit(np.sum([weight**0.5 * part for weight, part in zip(_WEIGHTS, parts, strict=True)], axis=0))


def told(reflection: Reflection) -> str:
    """Return the text of a reflection and its situation, for retrieval by words."""
    return " ".join((*of_reflection(reflection), reflection.text, reflection.action_label))


def keywords(asked: Mapping[str, float], held: Iterable[str]) -> list[float]:
    """Return for each line of distinct words the share of the query's words in it, weighted by rarity, in [0, 1]."""
    total = fsum(asked.values()) or 1.0
    return [fsum(map(asked.__getitem__, asked.keys() & each.split())) / total for each in held]  # a set has no order: exact sums need none


def about(reflection: Reflection) -> str:
    """Digest of the action and of whether it went worse: reflections that differ in it do not say the same."""
    said = f"{reflection.action_label}\n{reflection.surprise < 0}"
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=8).hexdigest()


def same_reflection(one: Reflection, other: Reflection) -> bool:
    """Return whether two reflections from similar situations have the same action, the same direction and nearly the same words.

    Numbers are ignored, because the same surprise is seldom measured twice alike.
    """
    if about(one) != about(other):
        return False
    left, right = (set(words(_FIGURES.sub("", each.text))) for each in (one, other))
    if not left or not right:
        return one.text == other.text
    return len(left & right) / len(left | right) >= 0.85


def _texts(instruction: str, site: str, state: str) -> Texts:
    return instruction, site, _IDS.sub("", shortened(state))
