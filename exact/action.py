"""Actions, and the grammar that an environment gives them.

An action is written as text: a verb, then its arguments: `click [12]`, `fill [3] "Ann"`, `drag [4] to [7]`, and `find {"name": "Ann"}` for
a tool. `ActionSpace.parse` reads a model's text; two texts with the same meaning have the same `key`.
"""

from __future__ import annotations

import difflib
import enum
import json
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal

import msgspec

from exact.errors import ActionError


class Action(msgspec.Struct, frozen=True, gc=False):
    """One action in an environment's action space. Made by an ActionSpace; equal if the canonical text is equal."""

    name: str
    args: tuple[str | float, ...]
    key: str
    """Canonical text, e.g. `press "Control+a"`. Parsing it gives an equal action."""
    elements: tuple[str, ...] = ()
    """Ids of the named elements, in order."""

    def __str__(self) -> str:
        return self.key


class Parameter(enum.Enum):
    """Kind of an argument, which decides how it is written."""

    ELEMENT = "[id]"
    TEXT = '"text"'
    NUMBER = "number"
    OBJECT = "{...}"
    """A JSON object, such as the arguments of a tool. As an argument it is its canonical text: members sorted, no spaces but after `,` and
    `:`. One that is not written is empty."""


_WORDS = {
    Parameter.ELEMENT: "the id of an element in brackets",
    Parameter.TEXT: "a text in quotation marks",
    Parameter.NUMBER: "a number",
    Parameter.OBJECT: "a JSON object",
}


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of action."""

    name: str
    form: tuple[Parameter | str, ...] = ()
    """Arguments in order. A plain string is a required word, with `|` between alternatives."""
    help: str = ""
    """Description for prompts: one short sentence."""
    normalise: Callable[[tuple[str | float, ...]], tuple[str | float, ...]] | None = None
    """Function that maps arguments to their canonical form. Raises ActionError for meaningless ones."""
    final: bool = False
    """Whether the action ends the attempt."""
    grammar: str = ""
    """Grammar (GBNF) of each text or number as it is written, quotes included, for models whose answers are constrained. Empty: any."""
    code: str = ""
    """Language of the code, if the only argument is code. A model writes it as a fenced block below the verb."""
    shape: str = ""
    """Form of an argument that is an object, for prompts: `{"name": text}`. Empty: `{...}`."""

    @property
    def usage(self) -> str:
        """The written form: `drag [id] to [id]`; for code, the verb alone."""
        if self.code:
            return self.name
        known = {Parameter.OBJECT: self.shape} if self.shape else {}
        return " ".join((self.name, *(known.get(p, p.value) if isinstance(p, Parameter) else p for p in self.form)))

    @property
    def takes(self) -> str:
        """The arguments in words: `fill takes the id of an element in brackets, and a text in quotation marks`. A model can copy none."""
        *before, last = [_WORDS[p] if isinstance(p, Parameter) else " or ".join(p.split("|")) for p in self.form] or ["nothing more"]
        return f"{self.name} takes {', '.join(before)}{', and ' if before else ''}{last}"


_TOKEN = re.compile(
    r"""\s*(?:
        \[\s*(?P<element>[\w:.-]+)\s*\]
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|“[^”]*”|„[^“”]*[“”]|«[^»]*»|‘[^’]*’)
      | (?P<number>-?\d+(?:\.\d+)?)(?![\w.])
      | (?P<word>\w+)
      | (?P<object>\{)
    )""",
    re.S | re.X,
)
_AMBIGUOUS = re.compile(r'^("[A-Za-z]:|"\\\\[\w.$-]+)\\([nrtbf])')
"""Matches the beginning of a written text whose escape would read as part of a Windows path."""
_ID = re.compile(r"[\w:.-]{1,200}")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\(?![\\\"/]|u[0-9a-fA-F]{4})|\\\\[\w.$-]+\\(?![\\\"/]|u[0-9a-fA-F]{4})")
_DECODER = json.JSONDecoder(strict=False)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", '"': '"', "'": "'", "\\": "\\"}


class ActionSpace:
    """The verbs of an environment, and their parser."""

    def __init__(self, verbs: Sequence[Verb | str]) -> None:
        """Create a space from verbs. A name alone is a verb without arguments."""
        made = [Verb(name=verb) if isinstance(verb, str) else verb for verb in verbs]
        self.verbs = {verb.name: verb for verb in made}

    @property
    def code(self) -> Verb | None:
        """The verb that runs code, if there is one."""
        return next((verb for verb in self.verbs.values() if verb.code), None)

    def pointing(self) -> ActionSpace:
        """Return the verbs that need no element ids, for agents that see none."""
        return ActionSpace([verb for verb in self.verbs.values() if Parameter.ELEMENT not in verb.form])

    def without(self, names: Collection[str]) -> ActionSpace:
        """Return the verbs of other names."""
        return ActionSpace([verb for verb in self.verbs.values() if verb.name not in names])

    def parse(self, text: str) -> Action:
        """Return the one action written in `text`. Raises ActionError that names the expected form."""
        tokens = _tokens(text.strip())
        if not tokens or tokens[0][0] != "word":
            raise ActionError(f"no action in {_short(text)}: begin with one of {', '.join(self.verbs)}")
        verb, given = self._verb(tokens[0][1]), tokens[1:]
        if not given and verb.form == (Parameter.OBJECT,):
            given = [("object", "{}")]
        kinds = [p.name.lower() if isinstance(p, Parameter) else "word" for p in verb.form]
        if [kind for kind, _ in given] != kinds:
            raise ActionError(f"{_short(text)} does not fit: {verb.takes}")
        args: list[str | float] = []
        for expected, (kind, value) in zip(verb.form, given, strict=True):
            if _is_slot(expected):
                args.append(float(value) if kind == "number" else value)
            elif value != expected:
                raise ActionError(f"{_short(text)} does not fit: {verb.takes}")
        return self.action(verb.name, *args)

    def action(self, name: str, *args: str | float) -> Action:
        """Return an action from a verb and its arguments. Raises ActionError if they do not fit the verb."""
        verb = self._verb(name)
        slots = [p for p in verb.form if _is_slot(p)]
        if len(slots) != len(args) or not all(map(_fits, slots, args)):
            raise ActionError(f"{name} with {_short(', '.join(map(repr, args)))} does not fit: {verb.takes}")
        args = tuple(a if isinstance(a, str) else float(a) + 0.0 for a in args)  # + 0.0: no negative zero
        values = verb.normalise(args) if verb.normalise else args
        rest, words, elements = list(values), [name], []
        for p in verb.form:
            if not _is_slot(p):
                words.append(str(p))
                continue
            value = rest.pop(0)
            if p is Parameter.ELEMENT:
                elements.append(str(value))
            words.append(_written(p, value))
        return Action(name, tuple(values), " ".join(words), tuple(elements))

    def renamed(self, action: Action, names: Mapping[str, str]) -> Action:
        """Return the action with other element ids. names: new ids by old ids; other ids stay."""
        slots = [p for p in self._verb(action.name).form if _is_slot(p)]
        elements = [p is Parameter.ELEMENT for p in slots]
        return self.action(action.name, *(names.get(str(a), a) if it else a for a, it in zip(action.args, elements, strict=True)))

    def describe(self) -> str:
        """Return one line for each verb, for prompts and `--help`."""
        width = max((len(verb.usage) for verb in self.verbs.values()), default=0)
        return "\n".join(f"{verb.usage:{width}}  {verb.help}".rstrip() for verb in self.verbs.values())

    def is_final(self, action: Action) -> bool:
        """Return whether the action ends the attempt."""
        return self.verbs[action.name].final

    def _verb(self, name: str) -> Verb:
        """Return the verb of that name. Raises ActionError with the nearest valid one."""
        if name not in self.verbs:
            near = difflib.get_close_matches(name, self.verbs, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(self.verbs)}"
            raise ActionError(f"unknown action {_short(name)}: {hint}")
        return self.verbs[name]


def _tokens(text: str) -> list[tuple[str, str]]:
    """Split a text into tokens: kind and value. Raises ActionError for anything that is not one action."""
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match or match.lastgroup is None:
            raise ActionError(f"cannot read {_short(text[at:])} in {_short(text)}: write one action, nothing else")
        kind, value, at = match.lastgroup, match[match.lastgroup], match.end()
        if kind == "object":
            value, at = _object_at(text, match.start("object"))
        found.append((kind, _unquoted(value) if kind == "text" else value))
        if not text[at:].strip():
            break
    return found


def canonical_object(found: object) -> str:
    """Return the canonical text of a JSON object. Raises ValueError for what JSON cannot say, and RecursionError."""
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return json.dumps(found, ensure_ascii=False, sort_keys=True, allow_nan=False)


def _object_at(text: str, begins: int) -> tuple[str, int]:
    """Return the canonical text of the JSON object that begins at a place, and where it ends. Raises ActionError."""
    try:
        found, end = _DECODER.raw_decode(text, begins)
        return canonical_object(found), end
    except (ValueError, RecursionError) as error:
        raise ActionError(f'cannot read {_short(text[begins:])}: write a JSON object, such as {{"name": "text"}}') from error


def _is_canonical(text: str) -> bool:
    """Return whether a text is a JSON object as `canonical_object` writes it."""
    try:
        return canonical_object(_DECODER.decode(text)) == text
    except (ValueError, RecursionError):
        return False


def _unquoted(text: str) -> str:
    r"""Return the content of a quoted text: JSON's escapes and `\'`.

    A backslash before anything else stands for itself. In a Windows path such as `"C:\new"` every backslash does.
    """
    content = text[1:-1]
    if _WINDOWS_PATH.match(content):
        return content.replace('\\"', '"')
    plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[0]), content)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # joins escaped surrogate pairs


def _is_slot(parameter: Parameter | str) -> bool:
    """Return whether the position takes an argument instead of a fixed word."""
    return isinstance(parameter, Parameter) or "|" in parameter


def _fits(slot: Parameter | str, value: str | float) -> bool:
    """Return whether a value fits a slot, so that its written form reads as the same value."""
    if not isinstance(value, str):
        return slot is Parameter.NUMBER and abs(value) <= sys.float_info.max  # NaN fails too
    if slot is Parameter.ELEMENT:
        return bool(_ID.fullmatch(value))
    if slot is Parameter.TEXT:
        return not _LONE_SURROGATE.search(value)
    if slot is Parameter.OBJECT:
        return not _LONE_SURROGATE.search(value) and _is_canonical(value)
    return isinstance(slot, str) and value in slot.split("|")


def _written(parameter: Parameter | str, value: str | float) -> str:
    """Return the written form of an argument."""
    if parameter is Parameter.ELEMENT:
        return f"[{value}]"
    if parameter is Parameter.TEXT:
        text = json.dumps(value, ensure_ascii=False)
        return _AMBIGUOUS.sub(lambda match: f"{match[1]}\\u{ord(_ESCAPED[match[2]]):04x}", text)
    return value if isinstance(value, str) else f"{Decimal(repr(float(value))):f}".removesuffix(".0")


def _short(text: str) -> str:
    """Return the text in quotes, cut to 80 characters."""
    return repr(text if len(text) <= 80 else text[:77] + "...")
