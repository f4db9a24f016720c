"""Label-first text: an element is written with its label before its id, `"Previous" button [1]`, so that an answer can copy it."""

from __future__ import annotations

import json
import re

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.observation import Element, Observation

NAME = 60
"""Most characters of an element's name in an action. A longer one is cut, and ends with an ellipsis."""
REFERENCE = '"name" role [id]'
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
