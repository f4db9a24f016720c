"""What a page holds besides its scripts' state: read, and put back into a fresh page.

Held: address, cookies, both storages, IndexedDB, what fields hold, what is checked, selected, edited or opened, focus and caret, scroll
of the window and of what is in it, the pointer, in all frames. Not held: the state of scripts and what they made of the document. Where
that matters the fingerprint tells.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exact.environments.browser.memo import Memo
from exact.environments.browser.page.cdp import move_mouse
from exact.environments.browser.page.script import script_call
from exact.environments.browser.page.tab import Tab
from exact.errors import EnvironmentFailure
from exact.observation import Element

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

KEPT = 512
"""Snapshots kept of one kind of environments; the least recently used goes first."""
_DATABASE_LIMIT = 4_000_000
"""Characters of JSON up to which databases are copied."""

Json = dict[str, Any]


@dataclass(frozen=True)
class PageContent:
    """Of one page."""

    frames: tuple[Json, ...]
    """What take.js gives of each frame, depth first: the first is the page itself."""
    bases: tuple[tuple[str, list[Json]], ...]
    """Databases by origin, of the origins that have any."""
    cookies: list[Any]

    @property
    def url(self) -> str:
        return str(self.frames[0]["url"])


@dataclass(frozen=True)
class PageSnapshot:
    """A state to which a page can be brought again."""

    memo: Memo
    volatile: str
    elements: tuple[Element, ...]
    """Of the last observation: they keep their ids."""
    history: tuple[str, ...]
    """Addresses to which going back leads, the next one last."""
    state: PageContent


class PageSnapshots:
    """Those of one kind of environments, by id; any environment of these can restore them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, PageSnapshot] = OrderedDict()
        self._made = 0

    def keep(self, snapshot: PageSnapshot) -> str:
        """The id it is kept by."""
        self._made += 1
        id = f"page-{self._made}"
        self._kept[id] = snapshot
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return id

    def get(self, id: str) -> PageSnapshot:
        """Raises EnvironmentFailure if it is gone."""
        if id not in self._kept:
            raise EnvironmentFailure(f"snapshot {id} is not of these environments, or was dropped: return by another route")
        self._kept.move_to_end(id)
        return self._kept[id]

    def drop(self, id: str) -> None:
        self._kept.pop(id, None)

    def __contains__(self, id: str) -> bool:
        return id in self._kept


async def take(tab: Tab, context: BrowserContext) -> PageContent:
    """What a page holds now. Raises EnvironmentFailure where some of it is out of reach."""
    frames = await _frames(tab)
    states = await asyncio.gather(*(_run(tab, frame, script_call("snapshot/take")) for frame in frames))
    here = {state["origin"] for state in states}
    if away := sorted(tab.origins - here):
        raise EnvironmentFailure(f"no snapshot now: the page has been at {away[0]} too, whose storage is out of reach")
    first = {state["origin"]: frame for state, frame in reversed(list(zip(states, frames, strict=True)))}
    copies = await asyncio.gather(*(_run(tab, frame, script_call("snapshot/copy_databases", _DATABASE_LIMIT)) for frame in first.values()))
    if refused := [copy for copy in copies if isinstance(copy, str)]:
        raise EnvironmentFailure(f"no snapshot now: {refused[0]}")
    bases = tuple((origin, copy) for origin, copy in zip(first, copies, strict=True) if copy)
    return PageContent(tuple(states), bases, list(await context.cookies()))


async def load(tab: Tab, context: BrowserContext, state: PageContent) -> None:
    """Go to the page, with cookies and storage as they were from its first script on. In a context that is empty."""
    await context.add_cookies(state.cookies)
    source = script_call("snapshot/restore_storage", state.frames)
    added = await tab.cdp.send("Page.addScriptToEvaluateOnNewDocument", {"source": source, "worldName": tab.context_name})
    try:
        await tab.page.goto(state.url, wait_until="load")
        if state.bases and await _fill(tab, state):
            await tab.page.reload(wait_until="load")
    finally:
        await tab.cdp.send("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


async def put(tab: Tab, state: PageContent, told: Sequence[Sequence[int]] = ()) -> list[list[int]]:
    """Fields, focus, scroll and storage of all frames as they were. Gives, of each frame, the indices of the fields that were not.

    `told`: of each frame, the fields of which the page gets `input` and `change` events, as if a user had changed them.
    """
    changed: list[list[int]] = []
    for index, (frame, kept) in enumerate(zip(await _frames(tab), state.frames, strict=False)):
        tell = told[index] if index < len(told) else ()
        changed.append(await _run(tab, frame, script_call("snapshot/restore_fields", kept, list(tell))))
        await _run(tab, frame, script_call("snapshot/restore_storage", [kept]))
    return changed


async def point(tab: Tab, state: PageContent) -> None:
    """The pointer over what it was over, in the page itself."""
    place = await _run(tab, tab.main_frame, script_call("snapshot/pointer", state.frames[0]))
    if place:
        await move_mouse(tab.cdp, *place)


async def _fill(tab: Tab, state: PageContent) -> bool:
    """Put the databases back. False where the page holds them open: the fingerprint tells whether that matters."""
    bases = dict(state.bases)
    for frame, kept in zip(await _frames(tab), state.frames, strict=False):
        copy = bases.pop(kept["origin"], None)
        if copy is not None:
            try:
                await _run(tab, frame, script_call("snapshot/restore_databases", copy))
            except EnvironmentFailure:
                return False
    return True


async def _frames(tab: Tab) -> list[str]:
    """Ids of all frames, depth first."""
    found: list[str] = []
    below = [(await tab.cdp.send("Page.getFrameTree"))["frameTree"]]
    while below:
        tree = below.pop()
        found.append(tree["frame"]["id"])
        below.extend(reversed(tree.get("childFrames", ())))
    return found


async def _run(tab: Tab, frame: str, expression: str) -> Any:
    return await tab.evaluate_in(frame, expression)
