"""Videos and sounds of a page: whether they play, whether they are muted, and the time at which they were paused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from exact.environments.browser.page.cdp import script
from exact.environments.browser.page.tab import Tab
from exact.errors import EnvironmentFailure

_MOST = 20
"""Media elements that are queried on one page."""
_STEP = 5
"""Seconds of a paused medium that count as one place."""
_SHORT = 10.0
"""Seconds below which a sound without controls is a signal: it ends by itself, and identifies no state."""


class Media(NamedTuple):
    """State of one video or audio element."""

    states: tuple[str, ...]
    """`paused` or `playing`, `ended`, `muted`."""
    place: str | None
    """Time at which it is paused, such as `1:05`; None at the start, and while it plays: that changes by itself."""
    heard: bool
    """Whether it was begun, and is not a short signal."""


MediaStates = Mapping[tuple[str, int], Media]
"""Media by the frame and the backend id of their elements."""


async def read_media(tab: Tab, snapshot: Mapping[str, Any]) -> MediaStates:
    """Return the states of a page's media. `snapshot`: the answer of `DOMSnapshot.captureSnapshot`. Costs nothing on a page without any."""
    from playwright.async_api import Error

    async def ask(frame: str, backend: int) -> Media | None:
        with suppress(Error, EnvironmentFailure):  # it vanished meanwhile
            return media_state(await tab.call(backend, frame, script("observe/media")))
        return None

    places = list(_places(snapshot))[:_MOST]
    if not places:
        return {}
    answers = await asyncio.gather(*(ask(*place) for place in places))
    return {place: answer for place, answer in zip(places, answers, strict=True) if answer is not None}


def _places(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield frame and backend id of each media element."""
    strings = snapshot["strings"]
    names = {index for index, name in enumerate(strings) if name in ("VIDEO", "AUDIO", "video", "audio")}
    for document in snapshot["documents"] if names else ():
        nodes = document["nodes"]
        for name, kind, backend in zip(nodes["nodeName"], nodes["nodeType"], nodes["backendNodeId"], strict=True):
            if name in names and kind == 1:
                yield strings[document["frameId"]], backend


def media_state(answer: Mapping[str, Any]) -> Media:
    """Return the state of a medium from the answer of media.js."""
    paused, seconds, length = bool(answer["paused"]), int(answer["seconds"]), answer["length"]
    states = ("ended" if answer["ended"] else "paused" if paused else "playing", *(("muted",) if answer["muted"] else ()))
    at = seconds // _STEP * _STEP
    place = f"{at // 60}:{at % 60:02}" if paused and at else None
    return Media(states, place, heard=not (paused and not seconds) and (length is None or length >= _SHORT))
