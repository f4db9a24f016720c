"""What an instruction asks for, part by part, read with general rules of English.

Part of the embedded agent, which is not a language model. A reading is a list of parts in the order in which they are named;
each says what to do (`kind`), to what (`targets`, roles, ordinal) and with which text.
"""

from __future__ import annotations

import functools
import re
from typing import Literal

import msgspec

from exact.agents.builtin.clauses import ACTS, VERBS, Clause, Token, clauses, tokens
from exact.agents.builtin.lexical import STOP, vocabulary

Kind = Literal["click", "select", "unselect", "fill", "find", "drag", "hover", "scroll", "answer"]

ROLES: dict[str, frozenset[str]] = {
    "button": frozenset({"button"}),
    "link": frozenset({"link"}),
    "tab": frozenset({"tab"}),
    "checkbox": frozenset({"checkbox", "switch"}),
    "radio": frozenset({"radio"}),
    "textbox": frozenset({"textbox", "searchbox", "textarea"}),
    "textarea": frozenset({"textbox", "textarea"}),
    "field": frozenset({"textbox", "searchbox", "spinbutton", "combobox"}),
    "input": frozenset({"textbox", "searchbox", "spinbutton"}),
    "text": frozenset({"textbox", "searchbox", "textarea"}),
    "dropdown": frozenset({"combobox", "listbox"}),
    "list": frozenset({"combobox", "listbox", "list"}),
    "menu": frozenset({"menu", "menubar", "button", "menuitem"}),
    "item": frozenset({"menuitem", "listitem", "option", "treeitem"}),
    "option": frozenset({"option", "radio", "menuitem"}),
    "icon": frozenset({"image", "img", "button"}),
    "image": frozenset({"image", "img"}),
    "slider": frozenset({"slider"}),
    "heading": frozenset({"heading"}),
    "paragraph": frozenset({"paragraph", "statictext"}),
    "section": frozenset({"tab", "button", "heading", "summary"}),
    "result": frozenset({"link", "heading", "listitem"}),
    "folder": frozenset({"treeitem", "listitem"}),
    "box": frozenset(),
    "area": frozenset(),
    "dialog": frozenset({"dialog"}),
}
"""Nouns for kinds of elements, and the roles (in lower case) that they may have."""

ORDINALS = {word: n for n, word in enumerate(("first", "second", "third", "fourth", "fifth", "sixth", "seventh"), 1)} | {"last": -1}
SUBMIT = vocabulary("submit ok okay done login send go search save confirm apply finish order buy book sign agree register")
"""Words on buttons that usually end a form."""

_CUT = vocabulary("in into from when below above that which who to with using by on onto for as so at after before inside under within")
_CONDITION = vocabulary("when until while unless if greater less than odd even not")
_NAMED = vocabulary("named labeled labelled called titled reading saying")
_VAGUE = vocabulary("colored coloured color colour shown listed given available corresponding correct it them")
_MANY = frozenset({"all", "both", "each", "every"})
_PATH = re.compile(r"\s*>\s*")
_NTH = re.compile(r"(\d+)(?:st|nd|rd|th)$")


class Part(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One thing that the instruction asks for."""

    kind: Kind
    targets: tuple[str, ...] = ()
    """Phrases that name the element, each on its own sufficient; empty where only roles or an ordinal tell."""
    verb: str = ""
    """What is to be done with it, where that may be written on what does it: `reply`, `delete`."""
    text: str = ""
    """What to write, for `fill`."""
    ending: str = ""
    """How what is written must end, where only its beginning is given in `text`."""
    leads: bool = False
    """Whether it only opens the way to the next part, as in a path through menus."""
    roles: frozenset[str] = frozenset()
    ordinal: int | None = None
    """1-based among the elements of these roles; -1 is the last."""
    many: bool = False
    around: str = ""
    """The rest of the clause: what stands near the element."""
    clause: str = ""
    """The words it was read from."""
    submits: bool = False
    """Whether it ends a form."""

    @property
    def conditional(self) -> bool:
        """Whether more is asked than can be seen to be done: a condition, or a verb that is not understood."""
        return bool(_CONDITION & set(self.clause.casefold().split())) or (bool(self.verb) and self.verb not in ACTS)

    @property
    def literal(self) -> bool:
        """Whether the element is named by what is written on it, not described."""
        return any(c.isupper() or c.isdigit() for target in self.targets for c in target) or f'"{self.label}"' in self.clause.casefold()

    @property
    def label(self) -> str:
        """The shortest name of the element, in lower case."""
        return min(self.targets, key=len, default=self.verb).casefold()

    def __str__(self) -> str:
        what = " / ".join(self.targets) or self.verb or " ".join(sorted(self.roles))
        return " ".join(filter(None, (self.kind, repr(self.text) if self.text else "", f"#{self.ordinal}" if self.ordinal else "", what)))


class Goal(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The reading of an instruction."""

    instruction: str
    parts: tuple[Part, ...]
    texts: tuple[str, ...]
    """Everything that looks like a value: quoted strings, capitalised words, numbers; in order, without repeats."""
    verbs: frozenset[str]
    """Verbs as written, in lower case."""


@functools.lru_cache(maxsize=256)
def read(instruction: str) -> Goal:
    """The parts of an instruction. Never fails: what is not understood becomes one part to click."""
    found = clauses(tokens(instruction))
    parts: list[Part] = []
    for clause in found:
        parts.extend(_parts(clause))
    parts = list({msgspec.structs.astuple(part): part for part in reversed(parts)}.values())[::-1]
    return Goal(instruction=instruction, parts=_ended(parts), texts=_texts(instruction), verbs=frozenset(c.verb for c in found))


def _ended(parts: list[Part]) -> tuple[Part, ...]:
    """The parts with the one that sends the form marked: a last click after other things to do."""
    doing = [part for part in parts if part.kind != "find"]
    if len(doing) < 2:
        return tuple(parts)
    *before, last = doing
    sends = last.kind == "click" and (last.label in SUBMIT or any(part.kind != "click" for part in before))
    return tuple(msgspec.structs.replace(part, submits=part is last and sends) for part in parts)


def _parts(clause: Clause) -> list[Part]:
    if clause.kind == "fill":
        return _completed(_fills(clause))
    if clause.verb in ACTS and (told := _told(clause)):
        return [_part(Clause(clause.verb, clause.kind, []), [], ""), *told]
    quotes = [t.text for t in clause.body if t.quoted]
    if quotes and clause.kind != "drag":
        return [_part(clause, [quote], _words_of(clause.body, quoted=False), quotes=quotes) for quote in quotes]
    if any(t.text == ">" for t in clause.body):
        path = [_part(clause, [_words_of(group)], "") for group in _listed(clause)]
        return [msgspec.structs.replace(part, leads=True) for part in path[:-1]] + path[-1:]
    return [_part(clause, *_target(group)) for group in _listed(clause)]


def _part(clause: Clause, targets: list[str], around: str, *, quotes: list[str] | None = None) -> Part:
    written = " ".join(f'"{t.text}"' if t.quoted else t.text for t in clause.body)
    words = [t.lower for t in clause.body if not t.quoted and not _shouted(t)]
    named = [t for t in targets if t and t.casefold() not in ("nothing", "none")]
    if quotes and (role := _role(quotes[0].casefold())):
        return Part(kind=clause.kind, roles=role, clause=f"{clause.verb} {written}")
    return Part(
        kind=clause.kind,
        targets=tuple(dict.fromkeys(named)) if clause.kind != "scroll" else (),
        verb=clause.verb if clause.kind == "click" and (clause.verb in ACTS or clause.verb not in VERBS) else "",
        roles=_roles(words),
        ordinal=_ordinal(words),
        many=bool(_MANY & set(words)),
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
    kept = [group for group in groups if any(t.lower not in STOP or _shouted(t) for t in group)]
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
        return [_words_of(rest[named + 1 :])], _words_of(rest[:named])
    cut = next((n for n, t in enumerate(rest) if n and t.lower in _CUT), len(rest))
    head, after = rest[:cut], _words_of(rest[cut:])
    bare = [t for t in head if _shouted(t) or not (t.lower in STOP | _MANY or _role(t.lower) is not None or _nth(t.lower))]
    bare = [t for t in bare if t.lower not in _VAGUE] or [t for t in bare if t.lower not in ("it", "them")]
    phrases = [_words_of(bare)] if bare else []
    if bare and len(bare) < len(head):
        phrases.append(_words_of(head))
    return phrases, after


def _completed(parts: list[Part]) -> list[Part]:
    """The parts with a beginning and an ending of one value made one."""
    starts = next((part for part in parts if {"starts", "begins", "starting", "beginning"} & _named(part)), None)
    ends = next((part for part in parts if {"ends", "ending"} & _named(part)), None)
    if starts is None:
        return parts
    whole = msgspec.structs.replace(starts, targets=(), ending=ends.text if ends else "")
    return [whole if part is starts else part for part in parts if part is not ends]


def _named(part: Part) -> set[str]:
    return {word for target in part.targets for word in target.casefold().split()}


def _told(clause: Clause) -> list[Part]:
    """What a message is to say, and to whom it goes: quoted, or a name after `to`."""
    found = []
    for n, token in enumerate(clause.body):
        before = {t.lower for t in clause.body[max(0, n - 2) : n]}
        if token.quoted and before & {"text", "message", "saying", "words", "content"}:
            found.append(_fill(clause, token.text, "text message", []))
        elif n and clause.body[n - 1].lower == "to" and token.text[:1].isupper() and clause.verb in ("forward", "send", "share"):
            found.append(_fill(clause, token.text, "to", []))
    return found


def _fills(clause: Clause) -> list[Part]:
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
        found.append(_fill(clause, clause.body[n].text, _words_of(before or lone), after))
        start = n + 1
    return found


def _unquoted_fill(clause: Clause) -> Part:
    if clause.verb in ("set", "change") and (to := next((n for n, t in enumerate(clause.body) if t.lower == "to"), 0)):
        return _fill(clause, _words_of(clause.body[to + 1 :]), _words_of([t for t in clause.body[:to] if t.lower not in STOP]), [])
    cut = next((n for n, t in enumerate(clause.body) if n and t.lower in {"into", "in", "as", "for", "to"}), len(clause.body))
    body = clause.body[:cut]
    colon = next((n for n, t in enumerate(body) if t.text == ":"), None)
    before = body[:colon] if colon is not None else []
    value = [t for t in body[(colon + 1 if colon is not None else 0) :] if t.lower not in ("the", "a", "an", ",")]
    if (label := _looked_up(value)) is not None:
        return _fill(clause, "", label, clause.body[cut + 1 :])
    literal = colon is not None or any(c.isdigit() or c.isupper() for t in value for c in t.text)
    return _fill(clause, _words_of(value) if literal else "", _words_of(before), clause.body[cut + 1 :] if cut < len(clause.body) else [])


def _looked_up(value: list[Token]) -> str | None:
    """The label in `the value of LABEL`; None where the words are something else."""
    words = [t.lower for t in value[:2]]
    return _words_of(value[2:]) if len(value) > 2 and words[0] in ("value", "content", "number") and words[1] == "of" else None


def _fill(clause: Clause, text: str, before: str, after: list[Token]) -> Part:
    words = [t.lower for t in after]
    bare = [t for t in after if t.lower not in STOP | _MANY | {",", ":"} and _role(t.lower) is None and not _nth(t.lower)]
    upper = {"upper", "uppercase", "capital", "capitals"} & {t.lower for t in clause.body}
    lower = {"lowercase", "lower"} & {t.lower for t in clause.body}
    targets = [phrase for phrase in (before, _words_of(bare)) if phrase]
    return Part(
        kind="fill",
        targets=tuple(targets),
        text=text.upper() if upper else text.lower() if lower else text,
        roles=_roles(words) or ROLES["field"],
        ordinal=_ordinal(words),
        many=bool(_MANY & set(words)),
        clause=f"{clause.verb} {_words_of(clause.body)}",
    )


def _shouted(token: Token) -> bool:
    return len(token.text) > 1 and token.text.isupper()


def _into(rest: list[Token]) -> list[Token]:
    start = next((n + 1 for n, t in enumerate(rest) if t.lower in {"into", "in", "as", "for", "to"}), None)
    return rest[start:] if start is not None else []


def _roles(words: list[str]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for word in words:
        found |= _role(word) or frozenset()
    return found


def _role(word: str) -> frozenset[str] | None:
    for form in (word, word.removesuffix("es"), word.removesuffix("s")):
        if form in ROLES:
            return ROLES[form]
    return None


def _nth(word: str) -> int | None:
    match = _NTH.match(word)
    return int(match[1]) if match else ORDINALS.get(word)


def _ordinal(words: list[str]) -> int | None:
    return next((n for n in map(_nth, words) if n), None)


def _words_of(some: list[Token], *, quoted: bool = True) -> str:
    return " ".join(t.text for t in some if quoted or not t.quoted)


def _texts(instruction: str) -> tuple[str, ...]:
    every = tokens(instruction)
    quoted = [t.text for t in every if t.quoted]
    values = [
        t.text
        for n, t in enumerate(every)
        if not t.quoted and n and (t.text[0].isupper() or t.text[0] in "@#$" or any(c.isdigit() for c in t.text))
    ]
    return tuple(dict.fromkeys(quoted + values))
