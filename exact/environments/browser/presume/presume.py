"""The presumption of one environment: whether an action would write, before it is carried out."""

from __future__ import annotations

import re
from collections import OrderedDict
from urllib.parse import urljoin

from exact.action import Action
from exact.environments.browser.presume.address import address_writes, writing_address
from exact.environments.browser.presume.controls import NO_CONTROLS, Controls, Presumption
from exact.environments.browser.presume.words import agrees, plain, writing_word
from exact.observation import Element, Observation
from exact.origins import split_url

MOST_STEPS = 4096
"""Steps that are remembered. The one that was noted first is forgotten first."""
_NUMBER = re.compile(r"\d+")
_POINTING = ("click", "click_with", "double_click", "click_at")
_SENDING_KEYS = ("Control+Enter", "Meta+Enter", "Control+s", "Meta+s")
_COPYING_KEYS = ("Control+c", "Control+x", "Meta+c", "Meta+x", "Control+Insert", "Shift+Delete")


class StepHistory:
    """Effects of earlier steps, by the element that they acted on. Environments that are opened together share them."""

    def __init__(self) -> None:
        self._wrote: OrderedDict[str, bool] = OrderedDict()

    def note(self, step: str, *, wrote: bool) -> None:
        """Note the effect of a step. One that wrote once is presumed to write from then on."""
        if step:
            self._wrote[step] = wrote or self._wrote.get(step, False)
            if len(self._wrote) > MOST_STEPS:
                self._wrote.popitem(last=False)

    def wrote(self, step: str) -> bool | None:
        """Return whether a step wrote before; None if it was never taken."""
        return self._wrote.get(step)


class WritePresumption:
    """Presumes of actions in the pages of one environment whether they write."""

    def __init__(self, history: StepHistory) -> None:
        self.history, self._controls = history, NO_CONTROLS
        self._asked = ""
        """Presumed effect of the last action, if nothing of it was sent or stopped: the page may ask for a confirmation."""

    def of(self, action: Action, seen: Observation | None, controls: Controls) -> Presumption | None:
        """Return the presumed change by an action in the observed state, by the controls of its page; None if it is presumed to read."""
        if seen is None:
            return None
        self._controls = controls
        found = self._by_history(action, seen, self._by_page(action, seen))
        self._asked = found.why if found else ""
        return found

    def note(self, action: Action, seen: Observation | None, *, wrote: bool, complete: bool) -> None:
        """Note the effect of a step. `complete`: nothing of it was stopped, so that a step that did not write is known not to."""
        if seen is not None and (wrote or complete):
            self.history.note(_step(action, seen), wrote=wrote)
        if wrote:
            self._asked = ""

    def _by_history(self, action: Action, seen: Observation, found: Presumption | None) -> Presumption | None:
        before = self.history.wrote(_step(action, seen))
        if before and found is None:
            return Presumption("it wrote before in this run", certain=True)
        return None if before is False and found and not found.certain else found

    def _by_page(self, action: Action, seen: Observation) -> Presumption | None:
        if dialog := next((each for each in seen.elements if each.role == "alertdialog" and "modal" in each.states), None):
            return self._by_dialog(action, seen, dialog)
        if action.name == "goto":
            return _by_address(urljoin(seen.url, str(action.args[0])))
        if action.name == "press":
            return self._by_key(str(action.args[0]), seen)
        if action.name in _POINTING and (target := _target(action, seen)):
            return self._controls.clicks.get(target.id) or self._by_agreement(target)
        return None

    def _by_dialog(self, action: Action, seen: Observation, dialog: Element) -> Presumption | None:
        target = _target(action, seen)
        yes = action.name in ("accept", "answer") or (action.name == "click" and target is not None and target.name in ("OK", "Leave"))
        if not yes:
            return None
        if self._asked:
            return Presumption(f"it agrees to what was asked: {self._asked}")
        word = next(filter(None, (writing_word(part) for part in re.split(r"[.?!,;:\n]", dialog.name))), "")
        return Presumption(f"it agrees to a question that says {word!r}") if word else None

    def _by_key(self, chord: str, seen: Observation) -> Presumption | None:
        focused = next((each for each in seen.elements if "focused" in each.states), None)
        if chord in _COPYING_KEYS:
            return Presumption(f"{chord} copies to the clipboard", "clipboard")
        if chord in _SENDING_KEYS:
            return Presumption(f"{chord} saves or sends")
        if focused is None or chord not in ("Enter", "Space", " "):
            return None
        if chord == "Enter" and (found := self._controls.fields.get(focused.id)):
            return found
        return self._controls.clicks.get(focused.id)

    def _by_agreement(self, target: Element) -> Presumption | None:
        if self._asked and target.role in ("button", "link", "menuitem") and agrees(target.name):
            return Presumption(f"it agrees to what was asked: {self._asked}")
        return None


def _by_address(url: str) -> Presumption | None:
    if address_writes(url):
        return Presumption("the address writes", certain=True)
    word = writing_address(url)
    return Presumption(f"the address says {word!r}") if word else None


def _target(action: Action, seen: Observation) -> Element | None:
    """Return the element that an action points at; at a point, the smallest one around it that is named."""
    if action.elements:
        return seen.element(action.elements[0])
    if action.name != "click_at":
        return None
    x, y = float(action.args[0]), float(action.args[1])
    around = [e for e in seen.elements if e.box and e.box.x <= x < e.box.x + e.box.width and e.box.y <= y < e.box.y + e.box.height]
    acted = [each for each in around if each.role not in ("StaticText", "generic", "InlineTextBox", "image", "img")]
    return min(acted or around, key=lambda each: each.box.width * each.box.height if each.box else 0.0, default=None)


def _step(action: Action, seen: Observation) -> str:
    """Return the parts of a step that are the same each time: verb, element and page, without numbers. Empty for other actions."""
    if action.name == "press":
        focused = next((each for each in seen.elements if "focused" in each.states), None)
        acted, about = focused, str(action.args[0])
    else:
        acted, about = _target(action, seen), ""
    if acted is None or (acted.role, acted.name) == ("", ""):
        return ""
    parts = split_url(seen.url)
    text = f"{action.name} {about} {acted.role} {plain(acted.name)} {parts.netloc}{parts.path}"
    return _NUMBER.sub("#", text)
