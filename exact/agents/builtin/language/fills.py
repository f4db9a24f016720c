"""Clauses that ask for text to be written: what, and into which field.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import re

import msgspec

from exact.agents.builtin.language.clauses import Clause, Token
from exact.agents.builtin.language.lexical import STOP, unowned
from exact.agents.builtin.language.subgoals import MANY, ROLES, Part, names_field, nth, ordinal_of, role_of, roles_of, text_of

_BEGINS, _ENDS = re.compile("(start|begin|beginn)(s|ing)|prefix"), re.compile("(end|finish)(s|es|ing)|suffix")
_COPYING = frozenset({"copy", "duplicate", "transcribe", "transfer"})
_OF = frozenset({"of", "from", "on", "in", "that", "which", "beside", "under", "next"})


def copies(clause: Clause) -> bool:
    """Whether it asks for what is to be read at one place to be written at another."""
    onward = any(t.lower in ("into", "onto", "to") for t in clause.body)
    return clause.verb in _COPYING and onward and (clause.kind == "find" or any(names_field(unowned(t.lower)) for t in clause.body))


def completed(clause: Clause, parts: list[Part]) -> list[Part]:
    """The clause's parts, where the beginning of a value and its ending are told, with one part for both."""
    marks = [(n, which) for n in range(len(clause.body)) if (which := _mark(clause.body, n))]
    told = {which: value for k, (n, which) in enumerate(marks) if (value := _marked(clause.body, n, [m for m, _ in marks][:k]))}
    if "beginning" not in told:
        return parts
    whole = msgspec.structs.replace(_fill(clause, told["beginning"], "", []), ending=told.get("ending", ""))
    others = [part for part in parts if part.text not in told.values()] if any(t.quoted for t in clause.body) else []
    return [whole, *others]


def _mark(body: list[Token], n: int) -> str:
    """Whether a word says that a value begins so, or ends so: `starting with`, `the suffix "x"`, `at its end`; else empty."""
    word, after = body[n].lower, body[n + 1] if n + 1 < len(body) else None
    if any(t.lower == "at" for t in body[max(0, n - 2) : n]):
        return {"start": "beginning", "beginning": "beginning", "end": "ending"}.get(word, "")
    if after is None or not (after.quoted or after.lower in ("with", "in", "by")):
        return ""
    return "beginning" if _BEGINS.fullmatch(word) else "ending" if _ENDS.fullmatch(word) else ""


def _marked(body: list[Token], n: int, earlier: list[int]) -> str:
    """The value that a mark at place n is about: what follows it, or what is quoted between it and the mark before."""
    if any(t.lower == "at" for t in body[max(0, n - 2) : n]):
        return next((t.text for t in reversed(body[max(earlier, default=0) : n]) if t.quoted), "")
    return next((t.text for t in body[n + 1 : n + 4] if t.quoted or t.lower not in STOP), "")


def told(clause: Clause) -> list[Part]:
    """What a message is to say, and to whom it goes: quoted, or a name after `to`."""
    found = []
    for n, token in enumerate(clause.body):
        before = {t.lower for t in clause.body[max(0, n - 2) : n]}
        if token.quoted and (before & {"text", "message", "saying", "words", "content"} or clause.verb == "reply"):
            found.append(_fill(clause, token.text, "text message", []))
        elif n and clause.body[n - 1].lower == "to" and token.text[:1].isupper() and clause.verb in ("forward", "send", "share"):
            found.append(_fill(clause, token.text, "to", []))
    return found


def fills(clause: Clause) -> list[Part]:
    """One part for each value: the noun before it and the words after `into`, `in`, `as`, `for` name the field."""
    values = [n for n, t in enumerate(clause.body) if t.quoted]
    if not values:
        return [_unquoted_fill(clause)]
    found = []
    for position, n in enumerate(values):
        earlier, later = (
            values[position - 1] + 1 if position else 0,
            values[position + 1] if position + 1 < len(values) else len(clause.body),
        )
        around = clause.body[earlier:n] if not position else _parted(clause.body[earlier:n])[1]
        before = [t for t in around if t.lower not in STOP | {",", ":", "text", "number", "word", "value", "string", "name"}]
        lone = [t for t in around if t.lower in ("name", "number")]
        rest = clause.body[n + 1 : later]
        after = _into(_parted(rest)[0] if later < len(clause.body) else rest)
        found.append(_fill(clause, clause.body[n].text, text_of(before or lone), after))
    return found


def _parted(between: list[Token]) -> tuple[list[Token], list[Token]]:
    """What belongs to the value before and to the one after: parted at the last `and` or comma, else all to both."""
    cut = max((n for n, t in enumerate(between) if t.lower in (",", "and", "then", ";")), default=None)
    return (between, between) if cut is None else (between[:cut], between[cut + 1 :])


def _unquoted_fill(clause: Clause) -> Part:
    if clause.verb in ("set", "change") and (to := next((n for n, t in enumerate(clause.body) if t.lower == "to"), 0)):
        return _fill(clause, text_of(clause.body[to + 1 :]), text_of([t for t in clause.body[:to] if t.lower not in STOP]), [])
    what, where = _what_and_where(clause)
    colon = next((n for n, t in enumerate(what) if t.text == ":"), None)
    before = what[:colon] if colon is not None else []
    value = [t for t in what[(colon + 1 if colon is not None else 0) :] if t.lower not in ("the", "a", "an", ",")]
    if colon is not None or (not copies(clause) and _literal(value)):
        return _fill(clause, text_of(value), text_of(before), where)
    return msgspec.structs.replace(_fill(clause, "", text_of(before), where), described=text_of(value))


def _what_and_where(clause: Clause) -> tuple[list[Token], list[Token]]:
    """The words for what is to be written, and those for its field."""
    body = clause.body
    if clause.verb == "fill" and (cut := next((n for n, t in enumerate(body) if t.lower == "with"), 0)):
        return body[cut + 1 :], body[:cut]
    into = [n for n, t in enumerate(body) if n and t.lower in ("into", "onto")]
    onward = [n for n, t in enumerate(body) if n and t.lower in ({"to"} if copies(clause) else {"in", "as", "for", "to"})]
    cut = next(iter(into or onward), len(body))
    return body[:cut], body[cut + 1 :]


def _literal(value: list[Token]) -> bool:
    """Whether the words are themselves to be written, and do not describe it (`the colour of Ann's car`)."""
    own = [n for n, t in enumerate(value) if any(c.isdigit() or c.isupper() for c in t.text) and not nth(t.lower)]
    owned = any(unowned(t.text) != t.text for t in value[:-1])
    return bool(own) and not owned and not (own[0] and any(t.lower in _OF for t in value))


def _fill(clause: Clause, text: str, before: str, after: list[Token]) -> Part:
    words = [t.lower for t in after]
    bare = [t for t in after if t.lower not in STOP | MANY | {",", ":"} and role_of(t.lower) is None and not nth(t.lower)]
    upper = {"upper", "uppercase", "capital", "capitals"} & {t.lower for t in clause.body}
    lower = {"lowercase", "lower"} & {t.lower for t in clause.body}
    targets = [phrase for phrase in (before, text_of(bare)) if phrase]
    return Part(
        kind="fill",
        targets=tuple(targets),
        text=text.upper() if upper else text.lower() if lower else text,
        roles=roles_of(words) or ROLES["field"],
        ordinal=ordinal_of(words),
        many=bool(MANY & set(words)),
        clause=f"{clause.verb} {text_of(clause.body)}",
    )


def _into(rest: list[Token]) -> list[Token]:
    start = next((n + 1 for n, t in enumerate(rest) if t.lower in {"into", "in", "as", "for", "to"}), None)
    return rest[start:] if start is not None else []
