"""Label-first text: an element is written with its label before its id, `"Previous" button [1]`, so that an answer can copy it.

Elements that have no name are named by their role and place, `"textbox under 'Password'" textbox [2]`, and those of one name have their
places behind it.

Actions that name elements by label: `click "Previous" button [1]`, or without the id if the label is unique.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.errors import ActionError
from exact.observation import LABEL_NAME, Element, Observation, places
from exact.text import without_special_tokens
from exact.views.prune import INTERACTIVE

POINTED = INTERACTIVE | {"generic", "image"}
"""Roles of elements whose places observations show."""
NAME, ROLE = "name", "role"
"""Words that stand for a name and a role in `REFERENCE`, which answers copy."""
REFERENCE = f'"{NAME}" {ROLE} [id]'
"""Form of a reference to an element, for prompts."""

_LINE = re.compile(
    r'^(?P<indent> *)\[(?P<id>[\w:.-]+)\] (?P<role>\S+)(?: (?P<name>"(?:[^"\\]|\\.)*"))?(?P<place>'
    r"(?: \d+ of \d+)?(?: (?:under|before) \"[^\"]*\")?)(?= |$)",
    re.M,
)
_PLACE = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?P<id>[\w:.-]+)\]')


def placed(observation: Observation) -> Observation:
    """Return an observation whose text shows the places of elements that role and name do not tell from others."""
    known = places(observation.elements, [each.id for each in observation.elements if each.role in POINTED])
    if not known:
        return observation

    def shown(line: re.Match[str]) -> str:
        place = "" if line["place"] else known.get(line["id"], "")
        return f"{line[0]} {place}" if place else line[0]

    return msgspec.structs.replace(observation, text=_LINE.sub(shown, observation.text))


def label_first(text: str, made: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return an observation's text with `[1] button "Previous"` as `"Previous" button [1]`. Other lines stay.

    `made`: names of the elements that have none, by id.
    """

    def by_label(line: re.Match[str]) -> str:
        named = line["name"] or (json.dumps(made[line["id"]], ensure_ascii=False) if line["id"] in made else "")
        place = "" if line["id"] in made else line["place"]
        return f"{line['indent']}{named + ' ' if named else ''}{line['role']} [{line['id']}]{place}"

    return _LINE.sub(by_label, text)


def made_names(observation: Observation, ids: Iterable[str] | None = None) -> Mapping[str, str]:
    """Return names of the elements that have none, by id: role and place, with single quotation marks. `ids`: only these elements."""
    nameless = {each.id: each for each in observation.elements if each.role in POINTED and not each.name.strip()}
    some = nameless.keys() if ids is None else nameless.keys() & set(ids)
    known = places(observation.elements, some) if some else {}
    return {id: " ".join(filter(None, (nameless[id].role, known.get(id, "").replace('"', "'")))) for id in some}


def element_label(element: Element, made: str = "") -> str:
    """Return a reference to an element: `"Previous" button [1]`. Without a name, and one that was made, it is `button [1]`.

    The name is data from the page.
    """
    name = element.name if element.name.strip() else made
    name = name if len(name) <= LABEL_NAME else f"{name[: LABEL_NAME - 1].rstrip()}…"
    return f"{json.dumps(name, ensure_ascii=False) + ' ' if name.strip() else ''}{element.role} [{element.id}]"


def label_action(action: Action | str, observation: Observation) -> str:
    """Return an action's text with each element's label before its id. An id that the observation lacks stays."""
    made = made_names(observation, [found["id"] for found in _PLACE.finditer(str(action)) if found["id"]])

    def labelled(match: re.Match[str]) -> str:
        element = observation.element(match["id"]) if match["id"] else None
        return element_label(element, made.get(element.id, "")) if element else match[0]

    return _PLACE.sub(labelled, str(action))


def usage(verb: Verb) -> str:
    """Return the written form of a verb: `fill "name" role [id] "text"`."""
    return verb.usage.replace(Parameter.ELEMENT.value, REFERENCE)


def describe(actions: ActionSpace) -> str:
    """Return one line for each verb, as `ActionSpace.describe` does, with elements by label."""
    width = max((len(usage(verb)) for verb in actions.verbs.values()), default=0)
    return "\n".join(f"{usage(verb):{width}}  {verb.help}".rstrip() for verb in actions.verbs.values())


QUOTED = r"\"(?:[^\"\\]|\\.)*\"|“[^”]*”|'(?:[^'\\]|\\.)*'"
_STANDS = re.compile(r"(?: \d+ of \d+)?(?: (?:under|before) \"[^\"]*\")?")
"""The place of an element, as observations show it behind its role."""
_VERB = re.compile(r"\s*(\w+)")
_PLAIN = re.compile(rf"\s*(?:{QUOTED}|-?\d+(?:\.\d+)?|\w+)", re.S)
_VALUE = re.compile(rf"\s*(?:value\s*=\s*)?({QUOTED})", re.S)
"""A text, also as observations show the value of a field: `value="Ann"`."""
_WORDS = re.compile(rf"\w+={QUOTED}|{QUOTED}|[^\s\"]+")
"""Matches a word of an element's line: a text, one with its name, or a state."""
_MOST_LISTED = 6
"""Most elements that an error lists."""


def parse_by_label(text: str, actions: ActionSpace, observation: Observation) -> Action:
    """Return the one action written in `text`, in which elements are named by label, by id, or by both.

    Raises ActionError if the text is not an action, if a label names no element or several, or if label and id name different elements.
    """
    return actions.parse(_by_id(text, actions, observation))


def _by_id(text: str, actions: ActionSpace, observation: Observation) -> str:
    """Return the text with ids in place of labels. Text that names no verb with elements stays."""
    begin = _VERB.match(text)
    verb = actions.verbs.get(begin[1]) if begin else None
    if begin is None or verb is None or Parameter.ELEMENT not in verb.form:
        return text
    at, parts = begin.end(), [verb.name]
    last: Element | None = None
    for place, parameter in enumerate(verb.form):
        named: Element | None = None
        if parameter is not Parameter.ELEMENT:
            shown = _VALUE.match(text, at) if parameter is Parameter.TEXT else None
            found = shown or _PLAIN.match(text, at)
            written = shown[1] if shown else found[0] if found else ""
        else:
            found = _reference(verb, place).match(text, at)
            named = _named(found, observation) if found else None
            written = f"[{named.id}]" if named else ""
        if found is None:
            takes = verb.takes.replace("the id", "the label, the role and the id")
            raise ActionError(f"{text.strip()[:80]!r} does not fit: {takes}")
        at = found.end()
        if named and found["alone"]:
            made = made_names(observation, [named.id])
            at = _described(named, made.get(named.id, ""), text, at, verb.form[place + 1 :])
        parts.append(written)
        last = named or last
    rest = text[at:]
    return " ".join((*parts, "" if last and _is_of_line(last, rest, observation) else rest)).strip()


def _reference(verb: Verb, place: int) -> re.Pattern[str]:
    """Return the pattern of a reference at a place of a verb's form. A word that the form has after it is not a role."""
    after = next((part for part in verb.form[place + 1 :] if isinstance(part, str)), "")
    no_role = rf"(?!value\s*=|(?:{after})\b)" if after else r"(?!value\s*=)"
    role = rf"{no_role}[A-Za-z][\w-]*"
    label = rf"(?:(?P<before>{role})\s+)?(?P<label>{QUOTED})(?:\s*(?P<role>{role}))?(?:\s*\[\s*(?P<id>[\w:.-]+)\s*\])?"
    return re.compile(rf"\s*(?:{label}|(?:{role}\s*)?\[\s*(?P<alone>[\w:.-]+)\s*\])", re.S)


def _described(element: Element, made: str, text: str, at: int, rest: Sequence[Parameter | str]) -> int:
    """Return where an element's own role, name, place and value end, which an answer may repeat after its id; `at` if it does not.

    `made`: its name if it has none. A verb whose text is left out is not read: neither the name nor the value is the text.
    """
    role = re.compile(rf"\s*{re.escape(element.role)}\b", re.I).match(text, at)
    if role is None:
        return at
    end = role.end()
    place, name = _STANDS.match(text, end), re.compile(rf"\s*({QUOTED})", re.S).match(text, end)
    if place and place[0] and fits(made, f"{element.role}{place[0]}".replace('"', "'")):
        end = place.end()
    elif name and fits(element.name, unquoted(name[1])):
        if bool(rest) != bool(text[name.end() :].strip()):
            return at
        end = name.end()
    value = _VALUE.match(text, end)
    return value.end() if value and not rest and element.value == unquoted(value[1]) else end


def _is_of_line(element: Element, rest: str, observation: Observation) -> bool:
    """Return whether text says only what the element's line says after its id, in that order: `value="Ann" focused`, no other id."""
    line = re.search(rf"^ *\[{re.escape(element.id)}\] (.*)$", observation.text, re.M)
    words = iter(_WORDS.findall(line[1].replace("'", '"')) if line else ())
    return all(not word.startswith("[") and word in words for word in _WORDS.findall(rest.replace("'", '"')))


def _named(found: re.Match[str], observation: Observation) -> Element:
    """Return the element that a reference names. Raises ActionError."""
    elements, made = observation.elements, made_names(observation)
    by_id = {element.id: element for element in elements}
    if found["alone"]:
        if found["alone"] not in by_id:
            raise ActionError(f"there is no element [{found['alone']}] in the current observation: name one that it lists")
        return by_id[found["alone"]]
    label, role, id = unquoted(found["label"]), found["role"] or found["before"] or "", found["id"]
    no_names = {NAME} if role == ROLE else set[str]()
    role = "" if role == ROLE else role

    def is_named(element: Element) -> bool:
        names = (element.name,) if element.name.strip() else (element.name, made.get(element.id, element.role), element.role)
        return any(fits(name, label) for name in names)

    if id in by_id and is_named(by_id[id]):
        return by_id[id]
    if id in by_id and label in no_names | {by_id[id].role} and not any(map(is_named, elements)):
        return by_id[id]
    fit = [element for element in elements if is_named(element) and role.lower() in ("", element.role.lower())]
    if id in by_id:
        raise ActionError(f"[{id}] is {_label(by_id[id], made)}, not {label!r}: write the label and the id of one element")
    fit = [element for element in fit if element.role in INTERACTIVE] or fit
    if len(fit) > 1:
        raise ActionError(f"{label!r} names {len(fit)} elements: add the id of one of {_listed(fit, made)}")
    if fit:
        return fit[0]
    names = {element.name or made.get(element.id, ""): element for element in reversed(elements)}
    near = difflib.get_close_matches(label, filter(None, names), n=1, cutoff=0.5)
    hint = f"did you mean {_label(names[near[0]], made)}?" if near else "copy a label that the current observation lists"
    raise ActionError(f"there is no {role or 'element'} {label!r} in the current observation: {hint}")


def _label(element: Element, made: Mapping[str, str]) -> str:
    return element_label(element, made.get(element.id, ""))


def fits(name: str, label: str) -> bool:
    """Return whether a label is a name, up to case, space and the brackets of special tokens.

    One that ends with an ellipsis may be the beginning of the name.
    """
    name, given = (" ".join(without_special_tokens(each).split()).casefold() for each in (name, label))
    return name == given or (len(given) > 1 and given.endswith("…") and name.startswith(given[:-1].rstrip()))


def _listed(elements: Sequence[Element], made: Mapping[str, str]) -> str:
    more = f" and {len(elements) - _MOST_LISTED} more" if len(elements) > _MOST_LISTED else ""
    return ", ".join(_label(element, made) for element in elements[:_MOST_LISTED]) + more


def unquoted(quoted: str) -> str:
    """Return what a quoted text of an answer says."""
    if quoted.startswith('"'):
        try:
            return str(json.loads(quoted, strict=False))
        except ValueError:
            pass
    return quoted[1:-1]
