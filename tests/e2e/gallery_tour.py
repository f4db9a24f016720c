"""What is done on the pages of the gallery, and what is to be seen then. The same natively and in a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from exact.environments.base import Transition
from exact.environments.browser import BrowserEnvironment
from exact.environments.browser.act.grammar import resolve_names
from exact.observation import Observation


class Stop(NamedTuple):
    """One ability: a page, and pairs of an action and what is seen after it. Elements are named by role and name."""

    page: str
    steps: Sequence[tuple[str, str]]

    @property
    def name(self) -> str:
        return self.page.strip("/")


TOUR = (
    Stop(
        "/frames",
        [
            ('click [button "Press"]', "pressed 1"),
            ('scroll_in [heading "Frames"] down', ""),
            ('click [button "Press"]', "pressed 2"),
        ],
    ),
    Stop(
        "/shadow",
        [('click ["Press open"]', "touched open"), ('click ["Press closed"]', "touched closed"), ('fill ["closed note"] "in"', '"in"')],
    ),
    Stop("/editable", [('fill [textbox "Letter"] "Hello"', "Hello"), ('type " you"', "Hello you")]),
    Stop(
        "/upload", [('upload ["Report"] "notes.txt"', "notes.txt 5: hello"), ('upload ["Attach"] "notes.txt, more.csv"', "more.csv 3: a,b")]
    ),
    Stop(
        "/choices",
        [
            ('select ["Colour"] "Green"', "Green"),
            ('select ["Sizes"] "Medium"', "Medium"),
            ('fill ["Day"] "2024-02-29"', "2024-02-29"),
            ('fill ["Paint"] "#ff8800"', "#ff8800"),
            ('fill ["Volume"] "30"', '"30"'),
        ],
    ),
    Stop("/drag", [('drag ["Card"] to ["Tray"]', "dropped card"), ('drag ["Knob"] to ["Slot"]', "let go at")]),
    Stop("/keys", [('press "Ctrl+Shift+k"', "chord KeyK"), ('press "x"', '"x"')]),
    Stop(
        "/clipboard",
        [
            ('fill ["From"] "carried"', "carried"),
            ('press "Ctrl+a"', ""),
            ('press "Ctrl+c"', ""),
            ('click ["To"]', ""),
            ('press "Ctrl+v"', '"To" value="carried"'),
        ],
    ),
    Stop("/scroll", [('scroll_in ["first row"] down', ""), ('scroll_in ["List"] right', "")]),
    Stop("/hover", [('hover ["Menu"]', "Hidden entry"), ('click ["Hidden entry"]', "chosen")]),
    Stop("/canvas", [("click_at 40 50", "dot 40,50"), ("drag_at 10 20 to 110 90", "line 10,20 to 110,90")]),
    Stop("/mouse", [('double_click ["Target"]', "twice"), ('right_click ["Target"]', "menu"), ('wheel ["Target"] up', "turned")]),
    Stop("/place", [('click ["Where"]', "at 52.5, 13.4, 10"), ('click ["May"]', "is granted")]),
    Stop("/pdf", [('click ["Paper"]', "Words on paper")]),
)
"""Abilities of one page, in one tab each."""


async def act(environment: BrowserEnvironment, seen: Observation, text: str) -> Transition:
    """Take one step on the element that it names."""
    return await environment.step(environment.actions.parse(resolve_names(text, seen.elements)))


async def go(environment: BrowserEnvironment, seen: Observation, text: str) -> Observation:
    """Return the observation after a step."""
    after = (await act(environment, seen, text)).observation
    assert after is not None
    return after
