"""Observations as OpenEnv's BrowserGym environment gives them, field by field, as plain data."""

from __future__ import annotations

import base64
from typing import Any

from exact.observation import Element, Observation
from exact.picture import pixels_of

_CLICKABLE = frozenset((
    *("button", "checkbox", "combobox", "gridcell", "link", "listbox", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "radio"),
    *("searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem"),
))  # fmt: skip


SCREENSHOT_FORMATS = ("pixels", "png")
"""Forms of a screenshot: rows of pixels, as OpenEnv's BrowserGym client reads it, and a PNG in base64, which is a hundredth as long."""


def fields(observation: Observation, goal: str, *, screenshot: str, error: str = "", last_action: str = "") -> dict[str, Any]:
    """Return the fields of an observation but `done` and `reward`. screenshot: its form; empty: None is sent in its place."""
    shot = observation.screenshot if screenshot else None
    picture: Any = shot and (base64.b64encode(shot).decode() if screenshot == "png" else pixels_of(shot))
    clickable = [element for element in observation.elements if element.role in _CLICKABLE and "disabled" not in element.states]
    ids = {each.id for each in clickable}
    return {
        "goal": goal,
        "url": observation.url,
        "text": observation.text,
        "axtree_txt": observation.text,
        "pruned_html": observation.html,
        "screenshot": picture,
        "error": error,
        "last_action_error": bool(error),
        "metadata": {
            "clickable": [{"id": each.id, "role": each.role, "name": each.name, "box": _box(each)} for each in clickable],
            "fingerprint": observation.fingerprint,
            "browsergym_obs": {
                "goal": goal,
                "open_pages_urls": [observation.url, *observation.tabs],
                "focused_element_bid": next((each.id for each in observation.elements if "focused" in each.states), ""),
                "last_action": last_action,
                "last_action_error": error,
                "extra_element_properties": {
                    each.id: {"bbox": _box(each), "visibility": float(each.visible), "clickable": each.id in ids}
                    for each in observation.elements
                },
            },
        },
    }  # fmt: skip


def _box(element: Element) -> list[float] | None:
    box = element.box
    return None if box is None else [box.x, box.y, box.width, box.height]
