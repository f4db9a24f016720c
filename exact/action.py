"""Actions, and the grammar that an environment gives them.

An action is written as text: a verb, then its arguments: `click [12]`, `fill [3] "Ann"`, `drag [4] to [7]`. `ActionSpace.parse`
reads what a model wrote; two texts that mean the same have the same `key`.
"""

from __future__ import annotations

import difflib
import enum
import json
import re
from collections.abc import Callable, Sequence

import msgspec

from exact.errors import ActionError


class Action(msgspec.Struct, frozen=True):
    """One step in an environment's action space. Made by an ActionSpace; equal when the canonical text is equal."""

    name: str
    args: tuple[str | float, ...]
    key: str
    """Canonical text, e.g. `press "Control+a"`; parsing it gives an equal action."""
    elements: tuple[str, ...] = ()
    """Ids of the elements named, in order."""

    def __str__(self) -> str:
        return self.key


class Parameter(enum.Enum):
    """What an argument is, and so how it is written."""

    ELEMENT = "[id]"
    TEXT = '"text"'
    NUMBER = "number"


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of action."""

    name: str
    form: tuple[Parameter | str, ...] = ()
    """Arguments in order; a plain string is a word that must stand there, with `|` between alternatives."""
    help: str = ""
    """What it does, for prompts: one short sentence."""
    normalise: Callable[[tuple[str | float, ...]], tuple[str | float, ...]] | None = None
    """Maps arguments to their canonical form; raises ActionError on ones that mean nothing."""
    final: bool = False
    """Whether it ends the attempt."""

    @property
    def usage(self) -> str:
        """How it is written: `drag [id] to [id]`."""
        return " ".join((self.name, *(p.value if isinstance(p, Parameter) else p for p in self.form)))


_TOKEN = re.compile(
    r"""\s*(?:
        \[\s*(?P<element>[\w:.-]+)\s*\]
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>-?\d+(?:\.\d+)?)(?![\w.])
      | (?P<word>\w+)
    )""",
    re.S | re.X,
)


class ActionSpace:
    """The verbs an environment admits, and the parser for them."""

    def __init__(self, verbs: Sequence[Verb]) -> None:
        self.verbs = {verb.name: verb for verb in verbs}

    def parse(self, text: str) -> Action:
        """The one action written in `text`. Raises ActionError that says what was expected."""
        tokens = _tokens(text.strip())
        if not tokens or tokens[0][0] != "word":
            raise ActionError(f"no action in {_short(text)}: begin with one of {', '.join(self.verbs)}")
        verb, given = self._verb(tokens[0][1]), tokens[1:]
        if len(given) != len(verb.form):
            raise ActionError(f"{_short(text)} does not fit: write {verb.usage}")
        args: list[str | float] = []
        for expected, (kind, value) in zip(verb.form, given, strict=True):
            if isinstance(expected, str):
                if value not in expected.split("|") or kind != "word":
                    raise ActionError(f"{_short(text)} does not fit: write {verb.usage}")
                if "|" in expected:
                    args.append(value)
            elif kind != expected.name.lower():
                raise ActionError(f"{_short(text)} does not fit: write {verb.usage}")
            else:
                args.append(float(value) if expected is Parameter.NUMBER else value)
        return self.action(verb.name, *args)

    def action(self, name: str, *args: str | float) -> Action:
        """An action from a verb and its arguments. Raises ActionError on a wrong number or kind of them."""
        verb = self._verb(name)
        slots = [p for p in verb.form if isinstance(p, Parameter) or "|" in p]
        if len(slots) != len(args) or any((p is Parameter.NUMBER) != isinstance(a, float | int) for p, a in zip(slots, args, strict=True)):
            raise ActionError(f"{name} with {len(args)} arguments does not fit: write {verb.usage}")
        values = verb.normalise(args) if verb.normalise else args
        rest, words, elements = list(values), [name], []
        for p in verb.form:
            if isinstance(p, str) and "|" not in p:
                words.append(p)
                continue
            value = rest.pop(0)
            if p is Parameter.ELEMENT:
                elements.append(str(value))
            words.append(_written(p, value))
        return Action(name, tuple(values), " ".join(words), tuple(elements))

    def describe(self) -> str:
        """One line a verb, for prompts and `--help`."""
        width = max((len(verb.usage) for verb in self.verbs.values()), default=0)
        return "\n".join(f"{verb.usage:{width}}  {verb.help}".rstrip() for verb in self.verbs.values())

    def is_final(self, action: Action) -> bool:
        """Whether the action ends the attempt."""
        return self.verbs[action.name].final

    def _verb(self, name: str) -> Verb:
        if name not in self.verbs:
            near = difflib.get_close_matches(name, self.verbs, n=1)
            raise ActionError(f"unknown action {name!r}: " + (f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(self.verbs)}"))
        return self.verbs[name]


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match or match.lastgroup is None:
            raise ActionError(f"cannot read {_short(text[at:])} in {_short(text)}: write one action, nothing else")
        kind, value = match.lastgroup, match[match.lastgroup]
        found.append((kind, _unquoted(value) if kind == "text" else value))
        at = match.end()
        if not text[at:].strip():
            break
    return found


def _unquoted(text: str) -> str:
    body = text[1:-1]
    if text[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        return re.sub(r"\\(.)", r"\1", body, flags=re.S)


def _written(parameter: Parameter | str, value: str | float) -> str:
    if parameter is Parameter.ELEMENT:
        return f"[{value}]"
    if parameter is Parameter.TEXT:
        return json.dumps(value, ensure_ascii=False)
    return f"{value:g}" if isinstance(value, float | int) else value


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
