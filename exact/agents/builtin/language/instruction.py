"""Parsing of an instruction into subgoals by general rules of English.

Part of the built-in agent, which is not a language model. The subgoals are in the order in which the instruction names them. Each says what
to do (`kind`), to which element (`targets`, roles, ordinal) and with which text.
"""

from __future__ import annotations

import functools

import msgspec

from exact.agents.builtin.language.clauses import ACTION_VERBS, VERBS, Clause, Token, split_clauses, tokenize
from exact.agents.builtin.language.fills import fill_subgoals, is_copying, message_subgoals, with_affixes
from exact.agents.builtin.language.lexical import STOP_WORDS, strip_genitive, vocabulary, words
from exact.agents.builtin.language.subgoals import (
    QUANTIFIERS,
    SUBMIT_WORDS,
    Goal,
    Subgoal,
    first_ordinal,
    is_all_caps,
    join_tokens,
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
