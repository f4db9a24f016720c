"""What an instruction asks for, part by part, read with general rules of English.

Part of the built-in agent, which is not a language model. A reading is a list of parts in the order in which they are named;
each says what to do (`kind`), to what (`targets`, roles, ordinal) and with which text.
"""

from __future__ import annotations

import functools

import msgspec

from exact.agents.builtin.language.clauses import ACTS, VERBS, Clause, Token, clauses, tokens
from exact.agents.builtin.language.fills import completed, copies, fills, told
from exact.agents.builtin.language.lexical import STOP, unowned, vocabulary, words
from exact.agents.builtin.language.subgoals import MANY, SUBMIT, Goal, Part, nth, ordinal_of, role_of, roles_of, shouted, text_of

_CUT = vocabulary("in into from when below above that which who to with using by on onto for as so at after before inside under within")
_NAMED = vocabulary("named labeled labelled called titled reading saying")
_BACK = vocabulary("it that this them answer result value text word number content contents one what")
_VAGUE = vocabulary("colored coloured color colour shown listed given available corresponding correct it them")


@functools.lru_cache(maxsize=256)
def read(instruction: str) -> Goal:
    """The parts of an instruction. Never fails: what is not understood becomes one part to click."""
    found = clauses(tokens(instruction))
    parts: list[Part] = []
    for n, clause in enumerate(found):
        parts = _taken_up(parts, _parts(clause), found[:n])
    parts = list({msgspec.structs.astuple(part): part for part in reversed(parts)}.values())[::-1]
    parts = [_opening(part) if part is not parts[-1] else part for part in parts]
    return Goal(instruction=instruction, parts=_ended(parts), texts=_texts(instruction))


def _taken_up(before: list[Part], parts: list[Part], said: list[Clause]) -> list[Part]:
    """All parts so far. Where one to write only points back (`type it`), it is described by what was said before, which asks no more."""
    if not any(part.kind == "fill" and not part.text and set(words(part.described)) <= _BACK | STOP for part in parts):
        return before + parts
    spoken = " ".join(f"{clause.verb} {text_of(clause.body)}" for clause in said if clause.kind in ("find", "answer"))
    whole = next((part for clause in said for part in completed(clause, [])), None)
    before = [msgspec.structs.replace(part, kind="find") if part.kind == "answer" else part for part in before]
    return before + [
        part if part.kind != "fill" or part.text else whole or msgspec.structs.replace(part, described=f"{spoken} {part.described}")
        for part in parts
    ]


def _opening(part: Part) -> Part:
    """The part itself; to open what is only described leads to what else is asked, and is looked for, not done."""
    return msgspec.structs.replace(part, kind="find", verb="") if part.verb == "open" and not part.literal else part


def _ended(parts: list[Part]) -> tuple[Part, ...]:
    """The parts with the one that sends the form marked: a last click after other things to do."""
    doing = [part for part in parts if part.kind != "find"]
    if len(doing) < 2:
        return tuple(parts)
    *before, last = doing
    sends = last.kind == "click" and (last.label in SUBMIT or any(part.kind not in ("click", "answer") for part in before))
    return tuple(msgspec.structs.replace(part, submits=part is last and sends) for part in parts)


def _parts(clause: Clause) -> list[Part]:
    if clause.kind == "fill" or copies(clause):
        return completed(clause, fills(clause))
    if clause.verb in ACTS and (message := told(clause)):
        act = _part(Clause(clause.verb, clause.kind, []), [], "")
        # a reply is opened, then written; what is sent is written before
        return [*message, act] if clause.verb == "send" else [act, *message]
    quotes = [t.text for t in clause.body if t.quoted]
    if quotes and clause.kind != "drag":
        return [_part(clause, [quote], text_of(clause.body, quoted=False), quotes=quotes) for quote in quotes]
    if any(t.text == ">" for t in clause.body):
        path = [_part(clause, [text_of(group)], "") for group in _listed(clause)]
        return [msgspec.structs.replace(part, leads=True) for part in path[:-1]] + path[-1:]
    if clause.kind == "select" and text_of(clause.body).casefold() in ("nothing", "none"):
        return []
    return [_part(clause, *_target(group)) for group in _listed(clause)]


def _part(clause: Clause, targets: list[str], around: str, *, quotes: list[str] | None = None) -> Part:
    written = " ".join(f'"{t.text}"' if t.quoted else t.text for t in clause.body)
    words = [t.lower for t in clause.body if not t.quoted and not shouted(t)]
    named = [t for t in targets if t]
    if quotes and (role := role_of(quotes[0].casefold())):
        return Part(kind=clause.kind, roles=role, clause=f"{clause.verb} {written}")
    return Part(
        kind=clause.kind,
        targets=tuple(dict.fromkeys(named)) if clause.kind != "scroll" else (),
        verb=clause.verb if clause.kind == "click" and (clause.verb in ACTS or clause.verb not in VERBS) else "",
        roles=roles_of(words),
        ordinal=ordinal_of(words),
        many=bool(MANY & set(words)),
        around=around,
        clause=f"{clause.verb} {written}".strip(),
    )


def _listed(clause: Clause) -> list[list[Token]]:
    """The objects of a clause: split at commas and `and`, and at `>` in a path through menus."""
    groups: list[list[Token]] = [[]]
    for token in clause.body:
        if not token.quoted and token.lower in (",", "and", "or", "&", ";", ">", ":"):
            groups.append([])
        else:
            groups[-1].append(token)
    kept = [group for group in groups if any(t.lower not in STOP or shouted(t) for t in group)]
    if clause.kind in ("find", "drag", "scroll", "hover", "answer") and not any(t.text == ">" for t in clause.body):
        return [clause.body] if kept else [[]]
    return kept or [[]]


def _target(group: list[Token]) -> tuple[list[str], str]:
    """Phrases that name the object, and the words after them."""
    rest = list(group)
    while rest and rest[0].lower in STOP | {"out", "through", "between"}:
        rest.pop(0)
    named = next((n for n, t in enumerate(rest) if t.lower in _NAMED), None)
    if named is not None:
        return [text_of(rest[named + 1 :])], text_of(rest[:named])
    cut = next((n for n, t in enumerate(rest) if n and t.lower in _CUT), len(rest))
    head, after = rest[:cut], text_of(rest[cut:])
    bare = [t for t in head if shouted(t) or not (t.lower in STOP | MANY or role_of(t.lower) is not None or nth(t.lower))]
    bare = [t for t in bare if t.lower not in _VAGUE] or [t for t in bare if t.lower not in ("it", "them")]
    phrases = [text_of(bare)] if bare else []
    if bare and len(bare) < len(head):
        phrases.append(text_of(head))
    return phrases, after


def _texts(instruction: str) -> tuple[str, ...]:
    every = tokens(instruction)
    quoted = [t.text for t in every if t.quoted]
    values = [
        unowned(t.text)
        for n, t in enumerate(every)
        if not t.quoted and n and (t.text[0].isupper() or t.text[0] in "@#$" or any(c.isdigit() for c in t.text))
    ]
    return tuple(dict.fromkeys(quoted + values))
