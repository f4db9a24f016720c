"""Actions written before a page is seen: elements are named by role and name instead of an id."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence

from exact.errors import ActionError
from exact.observation import Element

_NAMED = re.compile(r"\[\s*(?P<role>[A-Za-z][\w-]*)?\s*(?P<name>\"(?:[^\"\\]|\\.)*\")\s*\]")


def resolved(text: str, elements: Sequence[Element]) -> str:
    """An action with ids in place of what elements are called: `click [button "Sign in"]`, or `click ["Sign in"]`.

    The first element with that very name, else the first whose name holds it. Raises ActionError that names the nearest.
    """
    return _NAMED.sub(lambda found: f"[{_called(found['role'] or '', json.loads(found['name']), elements).id}]", text)


def _called(role: str, name: str, elements: Sequence[Element]) -> Element:
    fit = [each for each in elements if role.lower() in ("", each.role.lower())]
    for each in (*(e for e in fit if e.name == name), *(e for e in fit if name.lower() in e.name.lower())):
        return each
    names = list(dict.fromkeys(each.name for each in fit if each.name))
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, names[:8])) or 'none'}"
    raise ActionError(f"there is no {role or 'element'} {name!r}: {hint}")
