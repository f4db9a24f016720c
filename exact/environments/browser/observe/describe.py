"""A state as text, and as a fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from exact.environments.browser.observe.masks import Masks, Part
from exact.environments.browser.observe.tree import keyboard_target
from exact.observation import Element

_DRAWN = ("graphics-symbol", "Canvas")
"""Roles of which little but the place is known: it is written out, and identifies them."""
_FAR, _TOLD = 3, 5
"""CSS pixels from which on an element has moved; how many that have are named."""


def text(elements: Iterable[Element]) -> str:
    """One element a line, indented: `[4] button "Submit" focused`. Names and values are JSON strings, so page text stays on its line."""
    return "\n".join(_line(element) for element in elements)


def _line(element: Element) -> str:
    parts = [f"{'  ' * element.depth}[{element.id}] {element.role}"]
    if element.name:
        parts.append(json.dumps(element.name, ensure_ascii=False))
    if element.value is not None:
        parts.append(f"value={json.dumps(element.value, ensure_ascii=False)}")
    parts.extend(element.states)
    if element.role in _DRAWN and element.box:
        parts.append(_geometry(element))
    if not element.visible:
        parts.append("(outside the view)")
    return " ".join(parts)


class Digests(NamedTuple):
    """What identifies a state. Hex SHA-256."""

    fingerprint: str
    """Of what is not volatile."""
    volatile: str
    """Of all, where something is volatile; else empty."""


def fingerprint(
    url: str, elements: Sequence[Element], tabs: Sequence[str] = (), masks: Masks | None = None, places: Sequence[str] = ()
) -> Digests:
    """What identifies a state: URL, other tabs, and of each element depth, role, name, value, states and whether it is in view.

    Left out: ids and boxes (except of drawn shapes, which have nothing else), DOM attributes, caret, and the focus on anything that
    typing does not change (else every click on a button would be a new state). Scrolling counts as far as it shows other elements.
    `places`: where each element is in its document, for masks that were learned.
    """
    masks = masks or Masks()
    found = [part(element) for element in elements]
    whole: list[object] = [url, list(tabs), *found]
    masked: list[object] = [masks.address(url), [masks.address(tab) for tab in tabs], *masks.parts(elements, found, places)]
    return Digests(_digest(masked), "" if whole == masked else _digest(whole))


def moved(before: Sequence[Element], after: Sequence[Element]) -> str:
    """Which elements stand elsewhere, and by how far to the right and down in CSS pixels: what a fingerprint leaves out. Empty if all moved
    alike, as by scrolling."""
    places = {element.id: element.box for element in before}
    ways = [
        (f"[{element.id}]", round(element.box.x - was.x), round(element.box.y - was.y))
        for element in after
        if element.box and (was := places.get(element.id))
    ]
    if len({way[1:] for way in ways}) < 2:
        return ""
    found = [f"{id} moved by {x},{y}" for id, x, y in ways if max(abs(x), abs(y)) >= _FAR]
    return ", ".join(found[:_TOLD])


def part(element: Element) -> Part:
    """What identifies one element, in the order of masks.FIELDS."""
    states = [state for state in element.states if state != "focused" or keyboard_target(element)]
    place = _geometry(element) if element.role in _DRAWN and element.box else ""
    return [element.depth, element.role, element.name, element.value, states, element.visible, place]


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def _geometry(element: Element) -> str:
    box = element.box
    return f"{box.width:.0f}x{box.height:.0f} at {box.x:.0f},{box.y:.0f}" if box else ""
