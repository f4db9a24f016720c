"""Label-first text: an element is written with its label before its id, `"Previous" button [1]`, so that an answer can copy it.

Actions that name elements by label: `click "Previous" button [1]`, or without the id if the label is unique.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.errors import ActionError
from exact.observation import Element, Observation
from exact.views.prune import INTERACTIVE

NAME = 60
"""Most characters of an element's name in an action. A longer one is cut, and ends with an ellipsis."""
ROLE = "role"
"""Word that stands for a role in `REFERENCE`, which answers copy."""
REFERENCE = f'"name" {ROLE} [id]'
"""Form of a reference to an element, for prompts."""

_LINE = re.compile(r'^(?P<indent> *)\[(?P<id>[\w:.-]+)\] (?P<role>\S+)(?: (?P<name>"(?:[^"\\]|\\.)*"))?(?= |$)', re.M)
_PLACE = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?P<id>[\w:.-]+)\]')


def label_first(text: str) -> str:
    """Return an observation's text with `[1] button "Previous"` as `"Previous" button [1]`. Other lines stay."""
    return _LINE.sub(lambda m: f"{m['indent']}{m['name'] + ' ' if m['name'] else ''}{m['role']} [{m['id']}]", text)


def element_label(element: Element) -> str:
    """Return a reference to an element: `"Previous" button [1]`, without a name `button [1]`. The name is data from the page."""
    name = element.name if len(element.name) <= NAME else f"{element.name[: NAME - 1].rstrip()}…"
    return f"{json.dumps(name, ensure_ascii=False) + ' ' if name.strip() else ''}{element.role} [{element.id}]"


def label_action(action: Action | str, observation: Observation) -> str:
    """Return an action's text with each element's label before its id. An id that the observation lacks stays."""

    def labelled(match: re.Match[str]) -> str:
        element = observation.element(match["id"]) if match["id"] else None
        return element_label(element) if element else match[0]

    return _PLACE.sub(labelled, str(action))


def usage(verb: Verb) -> str:
    """Return the written form of a verb: `fill "name" role [id] "text"`."""
    return verb.usage.replace(Parameter.ELEMENT.value, REFERENCE)


def describe(actions: ActionSpace) -> str:
    """Return one line for each verb, as `ActionSpace.describe` does, with elements by label."""
    width = max((len(usage(verb)) for verb in actions.verbs.values()), default=0)
    return "\n".join(f"{usage(verb):{width}}  {verb.help}".rstrip() for verb in actions.verbs.values())


_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|“[^”]*”|'(?:[^'\\]|\\.)*'"
_VERB = re.compile(r"\s*(\w+)")
_PLAIN = re.compile(rf"\s*(?:{_QUOTED}|-?\d+(?:\.\d+)?|\w+)", re.S)
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
    for place, parameter in enumerate(verb.form):
        if parameter is not Parameter.ELEMENT:
            found = _PLAIN.match(text, at)
            written = found[0] if found else ""
        else:
            found = _reference(verb, place).match(text, at)
            written = f"[{_named(found, observation.elements).id}]" if found else ""
        if found is None:
            raise ActionError(f"{text.strip()[:80]!r} does not fit: write {usage(verb)}")
        at = found.end()
        parts.append(written)
    return " ".join((*parts, text[at:])).strip()


def _reference(verb: Verb, place: int) -> re.Pattern[str]:
    """Return the pattern of a reference at a place of a verb's form. A word that the form has after it is not a role."""
    after = next((part for part in verb.form[place + 1 :] if isinstance(part, str)), "")
    role = rf"(?!(?:{after})\b)[A-Za-z][\w-]*" if after else r"[A-Za-z][\w-]*"
    label = rf"(?:(?P<before>{role})\s+)?(?P<label>{_QUOTED})(?:\s*(?P<role>{role}))?(?:\s*\[\s*(?P<id>[\w:.-]+)\s*\])?"
    return re.compile(rf"\s*(?:{label}|(?:{role}\s*)?\[\s*(?P<alone>[\w:.-]+)\s*\])", re.S)


def _named(found: re.Match[str], elements: Sequence[Element]) -> Element:
    """Return the element that a reference names. Raises ActionError."""
    by_id = {element.id: element for element in elements}
    if found["alone"]:
        if found["alone"] not in by_id:
            raise ActionError(f"there is no element [{found['alone']}] in the current observation: name one that it lists")
        return by_id[found["alone"]]
    label, role, id = _text(found["label"]), found["role"] or found["before"] or "", found["id"]
    role = "" if role == ROLE else role
    if id in by_id and _fits(by_id[id], label):
        return by_id[id]
    fit = [element for element in elements if _fits(element, label) and role.lower() in ("", element.role.lower())]
    if id in by_id:
        raise ActionError(f"[{id}] is {element_label(by_id[id])}, not {label!r}: write the label and the id of one element")
    fit = [element for element in fit if element.role in INTERACTIVE] or fit
    if len(fit) > 1:
        raise ActionError(f"{label!r} names {len(fit)} elements: add the id of one of {_listed(fit)}")
    if fit:
        return fit[0]
    names = {element.name: element for element in reversed(elements) if element.name}
    near = difflib.get_close_matches(label, names, n=1, cutoff=0.5)
    hint = f"did you mean {element_label(names[near[0]])}?" if near else "copy a label that the current observation lists"
    raise ActionError(f"there is no {role or 'element'} {label!r} in the current observation: {hint}")


def _fits(element: Element, label: str) -> bool:
    """Return whether a label is the name of an element, or the role of one without a name, up to case and space.

    One that ends with an ellipsis may be the beginning of the name.
    """
    name, given = " ".join((element.name or element.role).split()).casefold(), " ".join(label.split()).casefold()
    return name == given or (len(given) > 1 and given.endswith("…") and name.startswith(given[:-1].rstrip()))


def _listed(elements: Sequence[Element]) -> str:
    more = f" and {len(elements) - _MOST_LISTED} more" if len(elements) > _MOST_LISTED else ""
    return ", ".join(map(element_label, elements[:_MOST_LISTED])) + more


def _text(quoted: str) -> str:
    if quoted.startswith('"'):
        try:
            return str(json.loads(quoted, strict=False))
        except ValueError:
            pass
    return quoted[1:-1]
