"""Parsing of an instruction into subgoals by general rules of English.

Part of the built-in agent, which is not a language model. The subgoals are in the order in which the instruction names them. Each gives the
kind of action (`kind`), the element (`targets`, roles, ordinal) and the text.

Clauses that ask for text to be entered: which text, and into which field.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re

import msgspec

from exact.agents.builtin.language.clauses import ACTION_VERBS, VERBS, Clause, Token, split_clauses, tokenize
from exact.agents.builtin.language.lexical import STOP_WORDS, strip_genitive, vocabulary, words
from exact.agents.builtin.language.subgoals import (
    QUANTIFIERS,
    ROLES,
    SUBMIT_WORDS,
    Goal,
    Subgoal,
    first_ordinal,
    is_all_caps,
    join_tokens,
    names_field,
    ordinal_value,
    roles_for_noun,
    roles_named,
)

_CUT = vocabulary("in into from when below above that which who to with using by on onto for as so at after before inside under within")
_NAMED = vocabulary("named labeled labelled called titled reading saying")
_BACK_REFERENCES = vocabulary("it that this them answer result value text word number content contents one what")
_VAGUE = vocabulary("colored coloured color colour shown listed given available corresponding correct it them")


@functools.lru_cache(maxsize=256)
def parse_instruction(instruction: str) -> Goal:
    """Return the subgoals of an instruction. Never fails: unparsed text becomes one subgoal to click."""
    found = split_clauses(tokenize(instruction))
    subgoals: list[Subgoal] = []
    for n, clause in enumerate(found):
        subgoals = _resolve_references(subgoals, _clause_subgoals(clause), found[:n])
    subgoals = list({msgspec.structs.astuple(subgoal): subgoal for subgoal in reversed(subgoals)}.values())[::-1]
    subgoals = [_relax_opening(subgoal) if subgoal is not subgoals[-1] else subgoal for subgoal in subgoals]
    return Goal(instruction=instruction, subgoals=_mark_submit(subgoals), literals=_literals(instruction))


def _resolve_references(before: list[Subgoal], subgoals: list[Subgoal], earlier: list[Clause]) -> list[Subgoal]:
    """Return all subgoals so far.

    A fill subgoal that only refers back (`type it`) is described by the earlier clauses, whose questions then need no answer.
    """
    if not any(
        subgoal.kind == "fill" and not subgoal.text and set(words(subgoal.description)) <= _BACK_REFERENCES | STOP_WORDS
        for subgoal in subgoals
    ):
        return before + subgoals
    spoken = " ".join(f"{clause.verb} {join_tokens(clause.body)}" for clause in earlier if clause.kind in ("find", "answer"))
    whole = next((subgoal for clause in earlier for subgoal in with_affixes(clause, [])), None)
    before = [msgspec.structs.replace(subgoal, kind="find") if subgoal.kind == "answer" else subgoal for subgoal in before]
    return before + [
        subgoal
        if subgoal.kind != "fill" or subgoal.text
        else whole or msgspec.structs.replace(subgoal, description=f"{spoken} {subgoal.description}")
        for subgoal in subgoals
    ]


def _relax_opening(subgoal: Subgoal) -> Subgoal:
    """Return the subgoal, as one to find if it opens a merely described element.

    Such an element leads to the rest of the task: it is looked for, and does not count as work to do.
    """
    return msgspec.structs.replace(subgoal, kind="find", verb="") if subgoal.verb == "open" and not subgoal.literal else subgoal


def _mark_submit(subgoals: list[Subgoal]) -> tuple[Subgoal, ...]:
    """Return the subgoals, with the one that submits the form marked: a final click after other work."""
    doing = [subgoal for subgoal in subgoals if subgoal.kind != "find"]
    if len(doing) < 2:
        return tuple(subgoals)
    *before, last = doing
    sends = last.kind == "click" and (last.label in SUBMIT_WORDS or any(subgoal.kind not in ("click", "answer") for subgoal in before))
    return tuple(msgspec.structs.replace(subgoal, submits=subgoal is last and sends) for subgoal in subgoals)


def _clause_subgoals(clause: Clause) -> list[Subgoal]:
    if clause.kind == "fill" or is_copying(clause):
        return with_affixes(clause, fill_subgoals(clause))
    if clause.verb in ACTION_VERBS and (message := message_subgoals(clause)):
        act = _subgoal(Clause(clause.verb, clause.kind, []), [], "")
        # a reply is opened before it is written; a message is written before it is sent
        return [*message, act] if clause.verb == "send" else [act, *message]
    quotes = [t.text for t in clause.body if t.quoted]
    if quotes and clause.kind != "drag":
        return [_subgoal(clause, [quote], join_tokens(clause.body, quoted=False), quotes=quotes) for quote in quotes]
    if any(t.text == ">" for t in clause.body):
        path = [_subgoal(clause, [join_tokens(group)], "") for group in _split_objects(clause)]
        return [msgspec.structs.replace(subgoal, opens_next=True) for subgoal in path[:-1]] + path[-1:]
    if clause.kind == "select" and join_tokens(clause.body).casefold() in ("nothing", "none"):
        return []
    return [_subgoal(clause, *_target_phrases(group)) for group in _split_objects(clause)]


def _subgoal(clause: Clause, targets: list[str], around: str, *, quotes: list[str] | None = None) -> Subgoal:
    written = " ".join(f'"{t.text}"' if t.quoted else t.text for t in clause.body)
    words = [t.lower for t in clause.body if not t.quoted and not is_all_caps(t)]
    named = [t for t in targets if t]
    if quotes and (role := roles_for_noun(quotes[0].casefold())):
        return Subgoal(kind=clause.kind, roles=role, clause=f"{clause.verb} {written}")
    return Subgoal(
        kind=clause.kind,
        targets=tuple(dict.fromkeys(named)) if clause.kind != "scroll" else (),
        verb=clause.verb if clause.kind == "click" and (clause.verb in ACTION_VERBS or clause.verb not in VERBS) else "",
        roles=roles_named(words),
        ordinal=first_ordinal(words),
        multiple=bool(QUANTIFIERS & set(words)),
        surroundings=around,
        clause=f"{clause.verb} {written}".strip(),
    )


def _split_objects(clause: Clause) -> list[list[Token]]:
    """Return the objects of a clause: split at commas and `and`, and at `>` in a path through menus."""
    groups: list[list[Token]] = [[]]
    for token in clause.body:
        if not token.quoted and token.lower in (",", "and", "or", "&", ";", ">", ":"):
            groups.append([])
        else:
            groups[-1].append(token)
    kept = [group for group in groups if any(t.lower not in STOP_WORDS or is_all_caps(t) for t in group)]
    if clause.kind in ("find", "drag", "scroll", "hover", "answer") and not any(t.text == ">" for t in clause.body):
        return [clause.body] if kept else [[]]
    return kept or [[]]


def _target_phrases(group: list[Token]) -> tuple[list[str], str]:
    """Return the phrases that name the object, and the words after them."""
    rest = list(group)
    while rest and rest[0].lower in STOP_WORDS | {"out", "through", "between"}:
        rest.pop(0)
    named = next((n for n, t in enumerate(rest) if t.lower in _NAMED), None)
    if named is not None:
        return [join_tokens(rest[named + 1 :])], join_tokens(rest[:named])
    cut = next((n for n, t in enumerate(rest) if n and t.lower in _CUT), len(rest))
    head, after = rest[:cut], join_tokens(rest[cut:])
    bare = [
        t
        for t in head
        if is_all_caps(t) or not (t.lower in STOP_WORDS | QUANTIFIERS or roles_for_noun(t.lower) is not None or ordinal_value(t.lower))
    ]
    bare = [t for t in bare if t.lower not in _VAGUE] or [t for t in bare if t.lower not in ("it", "them")]
    phrases = [join_tokens(bare)] if bare else []
    if bare and len(bare) < len(head):
        phrases.append(join_tokens(head))
    return phrases, after


def _literals(instruction: str) -> tuple[str, ...]:
    every = tokenize(instruction)
    quoted = [t.text for t in every if t.quoted]
    values = [
        strip_genitive(t.text)
        for n, t in enumerate(every)
        if not t.quoted and n and (t.text[0].isupper() or t.text[0] in "@#$" or any(c.isdigit() for c in t.text))
    ]
    return tuple(dict.fromkeys(quoted + values))


_BEGINS, _ENDS = re.compile("(start|begin|beginn)(s|ing)|prefix"), re.compile("(end|finish)(s|es|ing)|suffix")
_COPYING = frozenset({"copy", "duplicate", "transcribe", "transfer"})
_OF = frozenset({"of", "from", "on", "in", "that", "which", "beside", "under", "next"})


def is_copying(clause: Clause) -> bool:
    """Return whether the clause asks to read a value in one place and to enter it in another."""
    onward = any(t.lower in ("into", "onto", "to") for t in clause.body)
    return clause.verb in _COPYING and onward and (clause.kind == "find" or any(names_field(strip_genitive(t.lower)) for t in clause.body))


def with_affixes(clause: Clause, subgoals: list[Subgoal]) -> list[Subgoal]:
    """Return the clause's subgoals. If the clause gives the beginning of a value and its ending, one subgoal holds both."""
    marks = [(n, which) for n in range(len(clause.body)) if (which := _affix_kind(clause.body, n))]
    affixes = {which: value for k, (n, which) in enumerate(marks) if (value := _affix_value(clause.body, n, [m for m, _ in marks][:k]))}
    if "beginning" not in affixes:
        return subgoals
    whole = msgspec.structs.replace(_fill_subgoal(clause, affixes["beginning"], "", []), ending=affixes.get("ending", ""))
    others = [subgoal for subgoal in subgoals if subgoal.text not in affixes.values()] if any(t.quoted for t in clause.body) else []
    return [whole, *others]


def _affix_kind(body: list[Token], n: int) -> str:
    """Return `beginning` or `ending` if the token at index n marks an affix, else an empty string.

    Examples: `starting with`, `the suffix "x"`, `at its end`.
    """
    word, after = body[n].lower, body[n + 1] if n + 1 < len(body) else None
    if any(t.lower == "at" for t in body[max(0, n - 2) : n]):
        return {"start": "beginning", "beginning": "beginning", "end": "ending"}.get(word, "")
    if after is None or not (after.quoted or after.lower in ("with", "in", "by")):
        return ""
    return "beginning" if _BEGINS.fullmatch(word) else "ending" if _ENDS.fullmatch(word) else ""


def _affix_value(body: list[Token], n: int, earlier: list[int]) -> str:
    """Return the value that the mark at index n refers to: the text after it, or the quoted text between it and the previous mark."""
    if any(t.lower == "at" for t in body[max(0, n - 2) : n]):
        return next((t.text for t in reversed(body[max(earlier, default=0) : n]) if t.quoted), "")
    return next((t.text for t in body[n + 1 : n + 4] if t.quoted or t.lower not in STOP_WORDS), "")


def message_subgoals(clause: Clause) -> list[Subgoal]:
    """Return the subgoals for a message's text, which is quoted, and for its recipient, which is a name after `to`."""
    found = []
    for n, token in enumerate(clause.body):
        before = {t.lower for t in clause.body[max(0, n - 2) : n]}
        if token.quoted and (before & {"text", "message", "saying", "words", "content"} or clause.verb == "reply"):
            found.append(_fill_subgoal(clause, token.text, "text message", []))
        elif n and clause.body[n - 1].lower == "to" and token.text[:1].isupper() and clause.verb in ("forward", "send", "share"):
            found.append(_fill_subgoal(clause, token.text, "to", []))
    return found


def fill_subgoals(clause: Clause) -> list[Subgoal]:
    """Return one subgoal for each value.

    The noun before the value and the words after `into`, `in`, `as` or `for` name the field.
    """
    values = [n for n, t in enumerate(clause.body) if t.quoted]
    if not values:
        return [_unquoted_fill(clause)]
    found = []
    for position, n in enumerate(values):
        earlier, later = (
            values[position - 1] + 1 if position else 0,
            values[position + 1] if position + 1 < len(values) else len(clause.body),
        )
        around = clause.body[earlier:n] if not position else _split_between(clause.body[earlier:n])[1]
        before = [t for t in around if t.lower not in STOP_WORDS | {",", ":", "text", "number", "word", "value", "string", "name"}]
        lone = [t for t in around if t.lower in ("name", "number")]
        rest = clause.body[n + 1 : later]
        after = _after_preposition(_split_between(rest)[0] if later < len(clause.body) else rest)
        found.append(_fill_subgoal(clause, clause.body[n].text, join_tokens(before or lone), after))
    return found


def _split_between(between: list[Token]) -> tuple[list[Token], list[Token]]:
    """Return the tokens that belong to the previous value and those that belong to the next one.

    They are split at the last `and` or comma. Without one, all tokens belong to both.
    """
    cut = max((n for n, t in enumerate(between) if t.lower in (",", "and", "then", ";")), default=None)
    return (between, between) if cut is None else (between[:cut], between[cut + 1 :])


def _unquoted_fill(clause: Clause) -> Subgoal:
    if clause.verb in ("set", "change") and (to := next((n for n, t in enumerate(clause.body) if t.lower == "to"), 0)):
        return _fill_subgoal(
            clause, join_tokens(clause.body[to + 1 :]), join_tokens([t for t in clause.body[:to] if t.lower not in STOP_WORDS]), []
        )
    what, where = _what_and_where(clause)
    colon = next((n for n, t in enumerate(what) if t.text == ":"), None)
    before = what[:colon] if colon is not None else []
    value = [t for t in what[(colon + 1 if colon is not None else 0) :] if t.lower not in ("the", "a", "an", ",")]
    if colon is not None or (not is_copying(clause) and _is_literal(value)):
        return _fill_subgoal(clause, join_tokens(value), join_tokens(before), where)
    return msgspec.structs.replace(_fill_subgoal(clause, "", join_tokens(before), where), description=join_tokens(value))


def _what_and_where(clause: Clause) -> tuple[list[Token], list[Token]]:
    """Return the words for the text to enter, and those for its field."""
    body = clause.body
    if clause.verb == "fill" and (cut := next((n for n, t in enumerate(body) if t.lower == "with"), 0)):
        return body[cut + 1 :], body[:cut]
    into = [n for n, t in enumerate(body) if n and t.lower in ("into", "onto")]
    onward = [n for n, t in enumerate(body) if n and t.lower in ({"to"} if is_copying(clause) else {"in", "as", "for", "to"})]
    cut = next(iter(into or onward), len(body))
    return body[:cut], body[cut + 1 :]


def _is_literal(value: list[Token]) -> bool:
    """Return whether the words are the text to enter, rather than a description such as `the colour of Ann's car`."""
    own = [n for n, t in enumerate(value) if any(c.isdigit() or c.isupper() for c in t.text) and not ordinal_value(t.lower)]
    owned = any(strip_genitive(t.text) != t.text for t in value[:-1])
    return bool(own) and not owned and not (own[0] and any(t.lower in _OF for t in value))


def _fill_subgoal(clause: Clause, text: str, before: str, after: list[Token]) -> Subgoal:
    words = [t.lower for t in after]
    bare = [
        t
        for t in after
        if t.lower not in STOP_WORDS | QUANTIFIERS | {",", ":"} and roles_for_noun(t.lower) is None and not ordinal_value(t.lower)
    ]
    upper = {"upper", "uppercase", "capital", "capitals"} & {t.lower for t in clause.body}
    lower = {"lowercase", "lower"} & {t.lower for t in clause.body}
    targets = [phrase for phrase in (before, join_tokens(bare)) if phrase]
    return Subgoal(
        kind="fill",
        targets=tuple(targets),
        text=text.upper() if upper else text.lower() if lower else text,
        roles=roles_named(words) or ROLES["field"],
        ordinal=first_ordinal(words),
        multiple=bool(QUANTIFIERS & set(words)),
        clause=f"{clause.verb} {join_tokens(clause.body)}",
    )


def _after_preposition(rest: list[Token]) -> list[Token]:
    start = next((n + 1 for n, t in enumerate(rest) if t.lower in {"into", "in", "as", "for", "to"}), None)
    return rest[start:] if start is not None else []
