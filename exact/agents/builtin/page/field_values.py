"""Values that an instruction gives for the fields of an application's form, found by the fields' labels.

Examples: `priority critical`, `its level to Danger`. Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools

from exact.agents.builtin.language.clauses import Token, tokenize
from exact.agents.builtin.language.lexical import STOP_WORDS, normalise, vocabulary, word_similarity, words
from exact.agents.builtin.page.page import FIELDS, Item, PageModel

_ENDS = frozenset({",", ".", ";", "!", "?", "and"})
_SEARCH = vocabulary("search find filter")
_FILLED = frozenset({"combobox", "listbox"}) | FIELDS


@functools.lru_cache(maxsize=256)
def quoted_texts(instruction: str) -> tuple[str, ...]:
    """Return the quoted texts of an instruction."""
    return tuple(token.text for token in tokenize(instruction) if token.quoted)


@functools.lru_cache(maxsize=4096)
def given_value(label: str, instruction: str) -> str:
    """Return the value that an instruction gives for a field with this label, or an empty string."""
    names = [word for word in words(label) if word not in STOP_WORDS]
    some = tokenize(instruction)
    called = [
        n
        for n, token in enumerate(some)
        if not token.quoted and any(word_similarity(token.lower, name) >= 0.85 for name in names[:1] + names[-1:])
    ]
    for n in sorted(
        called, key=lambda n: not any(token.lower == "to" for token in some[max(0, n - 2) : n])
    ):  # a label after `to` names the new value, so it comes last
        if value := _leading_value(some[n + 1 :]):
            return value
        sentence = _rest_of_sentence(some[n + 1 :])
        to = [m for m, each in enumerate(sentence) if each.lower == "to"]
        if to and (value := _leading_value(sentence[to[-1] + 1 :])):
            return value
    return ""


def is_search_field(item: Item, page: PageModel) -> bool:
    """Return whether a field is for searching: its own label or the button after it says so."""
    if item.role not in FIELDS:
        return False
    after = next((other for other in page.items[item.index + 1 : item.index + 4] if other.role == "button"), None)
    return item.role == "searchbox" or bool(_SEARCH & set(words(item.label) + (words(after.label) if after else ())))


def given_fields(instruction: str, page: PageModel) -> list[tuple[Item, str]]:
    """Return the fields of a page for which the instruction gives a value, each with that value."""
    fields = [item for item in page.actable if item.role in _FILLED and not is_search_field(item, page)]
    return [(item, value) for item in fields if (value := given_value(item.label, instruction))]


def form_is_complete(instruction: str, page: PageModel) -> bool | None:
    """Return whether a form holds all values and quoted texts of the instruction, or None if the instruction gives none for it."""
    wanted, texts = given_fields(instruction, page), quoted_texts(instruction)
    fields = [item for item in page.actable if item.role in _FILLED and not is_search_field(item, page)]
    open_ = [item for item in fields if item.role in FIELDS and not item.element.value]
    written = [text for text in texts if any(shows_value(item, text) for item in fields)]
    if not wanted and not written:
        return None
    return all(shows_value(item, value) for item, value in wanted) and (len(written) == len(texts) or not open_)


def shows_value(item: Item, value: str) -> bool:
    """Return whether a field shows a value."""
    return normalise(item.element.value or "") == normalise(value)


def _rest_of_sentence(some: list[Token]) -> list[Token]:
    end = next((n for n, token in enumerate(some) if token.text in (".", "!", "?") and not token.quoted), len(some))
    return some[:end]


def _leading_value(some: list[Token]) -> str:
    """Return the value at the start of the tokens, or an empty string.

    A value is a quoted text, a name or number of several words, or one plain word that ends its phrase.
    """
    if not some:
        return ""
    if some[0].quoted:
        return some[0].text
    run = []
    for token in some:
        if token.quoted or not (token.text[0].isupper() or token.text[0].isdigit() or token.text[0] in "/#@"):
            break
        run.append(token.text)
    if run:
        return " ".join(run)
    ended = len(some) == 1 or some[1].text in _ENDS
    return some[0].text if some[0].text.isalpha() and some[0].lower not in STOP_WORDS and ended else ""
