"""Actions as an answer writes them: lines `Action: ...`, lines that are nothing but an action, objects, and plans of several.

Choices that models write without a part have one meaning in their state, or none: their forms are those of recorded answers of instruct
models (tests/agents/test_meant.py).
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from exact.action import Action, ActionSpace, Parameter
from exact.agents.form import embedded, narrow, text_of
from exact.environments.browser.act.grammar import LISTS, options_in
from exact.errors import ActionError
from exact.observation import Element, Observation
from exact.views.labels import QUOTED, fits, unquoted

ACTION = re.compile(
    r"^[ \t>*_#`-]*(?:(?P<number>\d{1,2})[.)][ \t]*)?action[ \t]*(?P<place>\d{1,2})?[ \t*_`]*[:：][ \t*]*(?P<rest>[^\n]*)$", re.I | re.M
)
"""Matches a line that says that it holds an action."""
_BARE = re.compile(r"^[ \t>*_#`-]*(?:(?P<number>\d{1,2})[.)][ \t]*)?(?P<rest>[A-Za-z_]+(?:[ \t]+[^\n]*)?)$", re.M)
"""Matches a line that may be nothing but an action."""
_LAST = re.compile(r"[.!?;:)–—][ \t]++[*_`]*+Action[*_`]*+[:：][ \t*]*+(?P<rest>[^\n]*+)\s*+\Z")
"""Matches an action that ends the prose of an answer."""
_BLOCK = re.compile(r"\s*```[^\n]*\n(?P<code>.*?)\n?[ \t]*```[ \t]*(?:\n|\Z)", re.S)
_CLOSED_QUOTE = re.compile(r""""(?:[^"\\]|\\.)*"|“[^”]*”|(?<=\s)'(?:[^'\\]|\\.)*'""")
_OPEN_QUOTE = re.compile(r"[\"“]")
_UNTIL_STRAIGHT, _UNTIL_CURLY = re.compile(r'(?:[^"\\]|\\.)*"', re.S), re.compile(r"[^”]*”")
_NEXT_LINE = re.compile(r"(?:[ \t`*\r]*\n)*[^\n]*")
_OBJECTS = json.JSONDecoder(strict=False)
_AROUND = "`* \t\r\n"
"""Characters that dress an action."""
_NAMED = re.compile(rf"\s*select\s+(?:[A-Za-z]\w*\s+)?(?P<label>{QUOTED})\s*", re.S)
_NUMBERED = re.compile(r"\s*select\s+(?:[A-Za-z]\w*\s+)?\[\s*(?P<id>[\w:.-]+)\s*\]\s*")
_REMARK = re.compile(
    r"(?<![ \t])(?:[.;!]*+\s*+\Z|[ \t]*+\(.*\)[.;!]*\s*\Z|[ \t]++(?:#|//|--|[–—]).*"
    r"|(?:[ \t]*+,[ \t]*+|[ \t]++)(?:to|because|since|so that)\b.*)",
    re.S,
)
"""Matches what may follow an action that is whole: an end mark, brackets, a comment, or a purpose."""
_NO_REMARK = re.compile(r"[][{}]|n['’]t\b|\b(?:not|never|no|or|if|unless|instead|otherwise|then|next|after|before|action)\b", re.I)
"""Matches what takes an action back, makes it depend on something, or names another."""
_LONGEST = 1_000
"""Characters of an action with a remark or as a call, at most: longer ones are asked again, so that no answer takes long to read."""
_ID = re.compile(r"\[[^\]]*\]")
_CALL = re.compile(r"\s*(?P<verb>\w+)[ \t]*\((?P<arguments>.*)\)[ \t;.]*\Z", re.S)
_ARGUMENT = re.compile(rf"\s*(?:[A-Za-z_]+\s*=\s*)?((?:{QUOTED}|[^,\"“'])+)(?:,|\Z)", re.S)
_CLICKED = frozenset(("tab", "checkbox", "radio", "treeitem", "menuitemcheckbox", "menuitemradio"))
"""Roles of elements that a click selects."""


class WrittenAction(NamedTuple):
    """An action of an answer."""

    begins: int
    ends: int
    number: int
    """Number before it; 0 if there is none."""
    says_so: bool
    """Whether its line begins with `Action:`."""
    action: Action | ActionError
    """The action, or the reason why it cannot be read."""


def plans(answer: str, actions: ActionSpace, read: Callable[[str], Action]) -> list[list[WrittenAction]]:
    """Return the actions of an answer in plans: lines `Action:` one below the other, or lines numbered one by one. Others stand alone.

    If there is none, it is the one that ends the last line, after a sentence.
    `read` returns the action of a text. Raises nothing: an action that cannot be read is there with its error.
    """
    found = list[list[WrittenAction]]()
    for each in list(_written(answer, actions, read)) or _last(answer, actions, read):
        last = found[-1][-1] if found else None
        if last and (_is_below(last, each, answer) or (last.number and each.number == last.number + 1)):
            found[-1].append(each)
        else:
            found.append([each])
    return found


def _is_below(last: WrittenAction, each: WrittenAction, answer: str) -> bool:
    return last.says_so and each.says_so and not answer[last.ends : each.begins].strip(_AROUND)


def first(plan: Sequence[WrittenAction], actions: ActionSpace) -> Action | ActionError:
    """Return the first action of a plan, or an error: its own if it stands alone, and if it ends the attempt and others follow."""
    action = plan[0].action
    if isinstance(action, ActionError) or all(isinstance(other.action, Action) and other.action.key == action.key for other in plan):
        return action
    return ActionError("the first action ends the attempt, and others follow") if actions.is_final(action) else action


def line_end(line: re.Match[str], answer: str, actions: ActionSpace) -> int:
    """Return the end of an action in the answer, including the code block or the rest of the quoted text below its line."""
    below = answer[line.end() :]
    if actions.code and line["rest"].strip("`* \t\r") == actions.code.name:
        block = _BLOCK.match(below)
        return line.end() + (block.end() if block else 0)
    return line.end() + len(_quoted_rest(line["rest"], below))


def outside_code(lines: list[re.Match[str]], answer: str, actions: ActionSpace) -> list[re.Match[str]]:
    """Return the lines that are not inside the code block or the quoted text of an earlier line."""
    found, end = list[re.Match[str]](), 0
    for line in lines:
        if line.start() >= end:
            found.append(line)
            end = line_end(line, answer, actions)
    return found


def _written(answer: str, actions: ActionSpace, read: Callable[[str], Action]) -> Iterator[WrittenAction]:
    """Yield the actions in order: lines that say so, and lines that are nothing else; then objects that hold one."""
    marked = {line.start(): line for line in outside_code(list(ACTION.finditer(answer)), answer, actions)}
    end, lines = 0, list[tuple[int, int]]()
    for line in sorted((*marked.values(), *_BARE.finditer(answer)), key=lambda each: each.start()):
        if line.start() in marked:
            end = line_end(line, answer, actions)
            if not line["rest"].strip(_AROUND):  # the action is the next line
                end = found.end() if (found := _NEXT_LINE.match(answer, end)) else end
            lines.append((line.start(), end))
            yield WrittenAction(line.start(), end, _number(line), True, _read(line, answer, actions, read))
        elif line.start() >= end:
            with contextlib.suppress(ActionError):
                action = read(_plain(line["rest"].strip(_AROUND), actions))
                yield WrittenAction(line.start(), line.end(), _number(line), False, action)
    for begins, said in embedded(answer, "action"):
        if any(start <= begins < stop for start, stop in lines):
            continue  # it is an argument
        with contextlib.suppress(ActionError):
            yield WrittenAction(begins, begins, 0, False, read(_plain(text_of(said["action"]), actions)))


def _last(answer: str, actions: ActionSpace, read: Callable[[str], Action]) -> Iterator[WrittenAction]:
    """Yield the action that ends the prose of an answer, outside of quotation marks, if it can be read."""
    line = _LAST.search(answer)
    if line and not _OPEN_QUOTE.search(_CLOSED_QUOTE.sub("", answer[: line.start("rest")])):
        action = _read(line, answer, actions, read)
        if isinstance(action, Action):
            yield WrittenAction(line.start() + 1, line.end(), 0, True, action)


def _number(line: re.Match[str]) -> int:
    return int(line["number"] or line.groupdict().get("place") or 0)


def _read(line: re.Match[str], answer: str, actions: ActionSpace, read: Callable[[str], Action]) -> Action | ActionError:
    """Return the action of a line, with the code block or the rest of the quoted text below it, or the error."""
    below = answer[line.end() :]
    text = _plain(_action_text(line["rest"], below), actions)
    try:
        return _code_action(line["rest"], below, actions) or read(text)
    except ActionError as error:
        return (_remarked(text, read) or _called(text, actions, read) if len(text) <= _LONGEST else None) or error


def _remarked(text: str, read: Callable[[str], Action]) -> Action | None:
    """Return the action that a text begins with, if the rest only says what it is for. None if there is no such action.

    What a remark quotes is the name of an element that the action names, or a part of the action.
    """
    quoted = [range(*each.span()) for each in _CLOSED_QUOTE.finditer(text)]
    for at in range(1, len(text) + 1):
        if any(at in each and at != each.start for each in quoted) or not (remark := _REMARK.match(text, at)):
            continue
        with contextlib.suppress(ActionError):
            action = read(text[:at])
            said = _CLOSED_QUOTE.findall(remark[0])
            plain = not _NO_REMARK.search(_CLOSED_QUOTE.sub("", remark[0]))
            return action if plain and all(_agrees(text[:at], each, action, read) for each in said) else None
    return None


def _agrees(text: str, quoted: str, action: Action, read: Callable[[str], Action]) -> bool:
    """Return whether a quoted text stands in the action's, or names the same element as its id does."""
    if quoted in text:
        return True
    with contextlib.suppress(ActionError):
        return read(_ID.sub(lambda _: quoted, text, count=1)).key == action.key
    return False


def _called(text: str, actions: ActionSpace, read: Callable[[str], Action]) -> Action | None:
    """Return the action that is written as a call with all of its arguments, such as `fill([2], "Ann")`. None if it is none."""
    call = _CALL.match(text)
    verb = actions.verbs.get(call["verb"]) if call else None
    if call is None or verb is None:
        return None
    given = [each[1].strip() for each in _ARGUMENT.finditer(call["arguments"])]
    placed = [
        f"[{each}]" if parameter is Parameter.ELEMENT and re.fullmatch(r"[\w:.-]+", each) else each
        for parameter, each in zip((part for part in verb.form if isinstance(part, Parameter)), given, strict=False)
    ]
    if len(placed) != len(given):
        return None
    with contextlib.suppress(ActionError):
        return read(" ".join((verb.name, *placed)))
    return None


def _code_action(rest: str, below: str, actions: ActionSpace) -> Action | None:
    """Return the action whose code is in the block below, or None if the verb takes no code.

    Raises ActionError if the block is missing.
    """
    verb = actions.code
    if verb is None or rest.strip("`* \t\r") != verb.name:
        return None
    block = _BLOCK.match(below)
    if block is None:
        raise ActionError(f"there is no block below `Action: {verb.name}`: write the code between ```{verb.code} and ```")
    return actions.action(verb.name, block["code"])


def _action_text(rest: str, below: str) -> str:
    """Return the text after `Action:`, with the lines below that end its quoted text.

    If it is empty or opens a fence, return the first line below.
    """
    if inline := (rest + _quoted_rest(rest, below)).strip(_AROUND):
        return inline
    lines = (line.strip("`* \t\r") for line in below.split("\n"))
    return next((line for line in lines if line), "")


def _plain(text: str, actions: ActionSpace) -> str:
    """Return an action's text with its verb in lower case and, outside of quoted texts, with full-width punctuation as ASCII."""
    parts, at = list[str](), 0
    for quoted in _CLOSED_QUOTE.finditer(text):
        parts += (narrow(text[at : quoted.start()]), quoted[0])
        at = quoted.end()
    whole = "".join((*parts, narrow(text[at:])))
    verb = whole.split(maxsplit=1)[0] if whole.strip() else ""
    return whole.replace(verb, verb.lower(), 1) if verb not in actions.verbs and verb.lower() in actions.verbs else whole


def _quoted_rest(rest: str, below: str) -> str:
    """Return the text below a line up to the end of the object, or to the quotation mark, that the line opens; empty if it opens none."""
    begins = rest.find("{")
    if begins >= 0 and not _OPEN_QUOTE.search(_CLOSED_QUOTE.sub("", rest[:begins])):
        with contextlib.suppress(ValueError, RecursionError):
            return below[: max(0, _OBJECTS.raw_decode(rest + below, begins)[1] - len(rest))]
    opened = _OPEN_QUOTE.search(_CLOSED_QUOTE.sub("", rest))
    if opened is None:
        return ""
    closed = (_UNTIL_CURLY if opened[0] == "“" else _UNTIL_STRAIGHT).match(below)
    return closed[0] if closed else ""


def meant(text: str, actions: ActionSpace, observation: Observation) -> Action | None:
    """Return the action that a text with the verb `select` means in a state, though it does not fit. None if it means none, or several.

    `select [3]` is a click if that is a tab, a checkbox or the like. `select "Spain"` is a choice in the list that has it.
    """
    found = dict.fromkeys(_meanings(text, observation))
    if len(found) != 1:
        return None
    [(name, *args)] = found
    verb = actions.verbs.get(name)
    return actions.action(name, *args) if verb and verb.form == (Parameter.ELEMENT, Parameter.TEXT)[: len(args)] else None


def _meanings(text: str, observation: Observation) -> Iterator[tuple[str, ...]]:
    """Yield the verb and the arguments of each meaning of a text."""
    by_name, by_id = _NAMED.fullmatch(text), _NUMBERED.fullmatch(text)

    def says(element: Element) -> bool:
        if by_id:
            return element.id == by_id["id"]
        return by_name is not None and fits(element.name, unquoted(by_name["label"]))

    for each in observation.elements if by_name or by_id else ():
        if each.role in _CLICKED and says(each):
            yield "click", each.id
        if each.role in LISTS:
            yield from (("select", each.id, option.name) for option in options_in(each, observation.elements) if says(option))
