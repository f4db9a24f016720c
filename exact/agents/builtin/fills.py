"""Clauses that ask for text to be written: what, and into which field.

Part of the embedded agent, which is not a language model.
"""

from __future__ import annotations

import msgspec

from exact.agents.builtin.clauses import Clause, Token
from exact.agents.builtin.lexical import STOP
from exact.agents.builtin.parts import MANY, ROLES, Part, nth, ordinal_of, role_of, roles_of, text_of


def completed(parts: list[Part]) -> list[Part]:
    """The parts with a beginning and an ending of one value made one."""
    starts = next((part for part in parts if {"starts", "begins", "starting", "beginning"} & _named(part)), None)
    ends = next((part for part in parts if {"ends", "ending"} & _named(part)), None)
    if starts is None:
        return parts
    whole = msgspec.structs.replace(starts, targets=(), ending=ends.text if ends else "")
    return [whole if part is starts else part for part in parts if part is not ends]


def _named(part: Part) -> set[str]:
    return {word for target in part.targets for word in target.casefold().split()}


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
    found, start = [], 0
    for position, n in enumerate(values):
        end = values[position + 1] if position + 1 < len(values) else len(clause.body)
        before = [t for t in clause.body[start:n] if t.lower not in STOP | {",", ":", "text", "number", "word", "value", "string", "name"}]
        lone = [t for t in clause.body[start:n] if t.lower in ("name", "number")]
        after = _into(clause.body[n + 1 : end])
        found.append(_fill(clause, clause.body[n].text, text_of(before or lone), after))
        start = n + 1
    return found


def _unquoted_fill(clause: Clause) -> Part:
    if clause.verb in ("set", "change") and (to := next((n for n, t in enumerate(clause.body) if t.lower == "to"), 0)):
        return _fill(clause, text_of(clause.body[to + 1 :]), text_of([t for t in clause.body[:to] if t.lower not in STOP]), [])
    cut = next((n for n, t in enumerate(clause.body) if n and t.lower in {"into", "in", "as", "for", "to"}), len(clause.body))
    body = clause.body[:cut]
    colon = next((n for n, t in enumerate(body) if t.text == ":"), None)
    before = body[:colon] if colon is not None else []
    value = [t for t in body[(colon + 1 if colon is not None else 0) :] if t.lower not in ("the", "a", "an", ",")]
    if (label := _looked_up(value)) is not None:
        return _fill(clause, "", label, clause.body[cut + 1 :])
    literal = colon is not None or any(c.isdigit() or c.isupper() for t in value for c in t.text)
    return _fill(clause, text_of(value) if literal else "", text_of(before), clause.body[cut + 1 :] if cut < len(clause.body) else [])


def _looked_up(value: list[Token]) -> str | None:
    """The label in `the value of LABEL`; None where the words are something else."""
    words = [t.lower for t in value[:2]]
    return text_of(value[2:]) if len(value) > 2 and words[0] in ("value", "content", "number") and words[1] == "of" else None


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
