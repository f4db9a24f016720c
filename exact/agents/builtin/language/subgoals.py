"""Vocabulary of parsed instructions: subgoals, nouns for kinds of elements, ordinals.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from exact.agents.builtin.language.clauses import ACTION_VERBS, Token
from exact.agents.builtin.language.lexical import vocabulary

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
"""Roles, in lower case, that an element named by a noun may have."""

_NAMED_NTH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
ORDINALS = {word: n for n, word in enumerate(_NAMED_NTH, 1)} | {"last": -1}
SUBMIT_WORDS = vocabulary("submit ok okay done login send go search save confirm apply finish order buy book sign agree register")
"""Labels of buttons that usually submit a form."""

_CONDITION = vocabulary("when until while unless if greater less than odd even not")
QUANTIFIERS = frozenset({"all", "both", "each", "every"})
_NTH = re.compile(r"(\d+)(?:st|nd|rd|th)$")


class Subgoal(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One thing that the instruction asks for."""

    kind: Kind
    targets: tuple[str, ...] = ()
    """Phrases that name the element, each sufficient by itself. Empty if only roles or an ordinal identify it."""
    verb: str = ""
    """Verb that may be the label of the element to use, such as `reply` or `delete`."""
    text: str = ""
    """Text to enter, for `fill`."""
    ending: str = ""
    """Required ending of the text to enter, if `text` is only its beginning."""
    description: str = ""
    """Words that describe the text to enter, if the text itself is not given."""
    opens_next: bool = False
    """Whether the subgoal only leads to the next one, as in a path through menus."""
    roles: frozenset[str] = frozenset()
    ordinal: int | None = None
    """1-based position among the elements of these roles. -1 is the last."""
    multiple: bool = False
    surroundings: str = ""
    """The rest of the clause: words near the element."""
    clause: str = ""
    """The words that the subgoal was parsed from."""
    submits: bool = False
    """Whether the subgoal submits a form."""

    @property
    def conditional(self) -> bool:
        """Return whether completion is not fully visible: the clause has a condition, or a verb that is not understood."""
        return bool(_CONDITION & set(self.clause.casefold().split())) or (bool(self.verb) and self.verb not in ACTION_VERBS)

    @property
    def literal(self) -> bool:
        """Return whether the element is named by its label rather than described."""
        return any(c.isupper() or c.isdigit() for target in self.targets for c in target) or f'"{self.label}"' in self.clause.casefold()

    @property
    def label(self) -> str:
        """The shortest name of the element, in lower case."""
        return min(self.targets, key=len, default=self.verb).casefold()

    def __str__(self) -> str:
        what = " / ".join(self.targets) or self.verb or " ".join(sorted(self.roles))
        return " ".join(filter(None, (self.kind, repr(self.text) if self.text else "", f"#{self.ordinal}" if self.ordinal else "", what)))


class Goal(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A parsed instruction."""

    instruction: str
    subgoals: tuple[Subgoal, ...]
    literals: tuple[str, ...]
    """All text that looks like a value: quoted strings, capitalised words and numbers, in order, without duplicates."""


def is_all_caps(token: Token) -> bool:
    """Return whether the token is in capitals. It is then a label rather than grammar."""
    return len(token.text) > 1 and token.text.isupper()


def roles_named(words: list[str]) -> frozenset[str]:
    """Return the roles that the nouns among the words denote."""
    found: frozenset[str] = frozenset()
    for word in words:
        found |= roles_for_noun(word) or frozenset()
    return found


def roles_for_noun(word: str) -> frozenset[str] | None:
    """Return the roles that a noun or its plural denotes, or None if it denotes none."""
    for form in (word, word.removesuffix("es"), word.removesuffix("s")):
        if form in ROLES:
            return ROLES[form]
    return None


def names_field(word: str) -> bool:
    """Return whether a noun may denote a text field, such as `field` or `box`."""
    roles = roles_for_noun(word)
    return roles is not None and (not roles or "textbox" in roles)


def ordinal_value(word: str) -> int | None:
    """Return the number of an ordinal: 3 for `3rd` and `third`, -1 for `last`. None for other words."""
    match = _NTH.match(word)
    return int(match[1]) if match else ORDINALS.get(word)


def first_ordinal(words: list[str]) -> int | None:
    """Return the first ordinal among the words."""
    return next((n for n in map(ordinal_value, words) if n), None)


def join_tokens(some: list[Token], *, quoted: bool = True) -> str:
    """Return the tokens as text."""
    return " ".join(t.text for t in some if quoted or not t.quoted)
