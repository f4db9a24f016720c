"""Snapshots: the part that is kept outside the browser, and the state of a page without that of its scripts.

The state of a page is read, and restored in a fresh page.

It holds address, cookies, both storages, IndexedDB, the values of fields, checked, selected, edited or opened items, focus and
caret, scroll positions and the pointer, in all frames. It does not hold the state of scripts, nor their changes to the document. The
fingerprint shows whether that matters.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exact.environments.browser.network.flow import SecretFlow
from exact.environments.browser.observe.describe import HiddenState
from exact.environments.browser.observe.drawing import DrawnState
from exact.environments.browser.page.cdp import move_mouse, script_call
from exact.environments.browser.page.ids import Ids
from exact.environments.browser.page.tab import Tab
from exact.errors import EnvironmentFailure
from exact.observation import Element
from exact.task import Task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

MOST_SNAPSHOTS = 512
"""Maximum number of snapshots that are retained for environments of one kind; the least recently used is dropped first."""
_DATABASE_LIMIT = 4_000_000
"""Characters of JSON up to which databases are copied."""

Json = dict[str, Any]


@dataclass(frozen=True)
class PageContent:
    """The state of one page."""

    frames: tuple[Json, ...]
    """The answer of take.js for each frame, depth first: the first one is the page itself."""
    bases: tuple[tuple[str, list[Json]], ...]
    """Databases by origin, for the origins that have any."""
    cookies: list[Any]

    @property
    def url(self) -> str:
        return str(self.frames[0]["url"])


@dataclass(frozen=True)
class SavedPage:
    """A page that is loaded again to return to a snapshot."""

    elements: tuple[Element, ...]
    """The elements of the last observation, whose ids are restored."""
    history: tuple[str, ...]
    """Addresses that going back leads to, the next one last."""
    content: PageContent


@dataclass(frozen=True)
class OpenTab:
    """A tab that was open when a snapshot was taken."""

    target: str
    """CDP id of the tab's target, which a restored browser keeps."""
    index: int
    """Number of the tab among the pages of the episode, from 0."""
    documents: int
    """Number of documents that the main frame has had."""


@dataclass(frozen=True)
class Memo:
    """The part of a state that is kept outside the browser. Element ids stay the same in every fork."""

    task: Task
    fingerprint: str
    """Fingerprint of the last observation."""
    instruction: str
    ids: Ids
    opened: int
    """Number of pages opened in the episode."""
    tabs: tuple[OpenTab, ...]
    """The open tabs; the last one is the tab in front."""
    drawn: DrawnState | None = None
    """The picture; None if no screenshots are taken."""
    now: int = 0
    """Time of a paused page clock in milliseconds since 1970; 0 if the clock runs."""
    downloads: tuple[str, ...] = ()
    """Lines about the files downloaded in the episode."""
    site: str = ""
    """Name of the state of an outside site that was saved with the snapshot; empty if none was."""
    account: str = ""
    """Name of the account that the browser is logged in with; empty if it has none."""
    page: SavedPage | None = None
    """The page to load; None if the snapshot holds the whole browser."""
    flow: SecretFlow | None = None
    """Where typed secrets have got to; None at the start of a task."""
    hidden: HiddenState | None = None
    """The part of the state that its text does not show; None at the start of a task."""


class PageSnapshots:
    """The snapshots of pages, by id. Any of the environments that share them can restore them."""

    def __init__(self) -> None:
        self._memos: OrderedDict[str, Memo] = OrderedDict()
        self._made = 0

    def add(self, memo: Memo) -> str:
        """Retain a snapshot. Return its id."""
        self._made += 1
        id = f"page-{self._made}"
        self._memos[id] = memo
        if len(self._memos) > MOST_SNAPSHOTS:
            self._memos.popitem(last=False)
        return id

    def get(self, id: str) -> Memo:
        """Return a snapshot. Raises EnvironmentFailure if it is gone."""
        if id not in self._memos:
            raise EnvironmentFailure(f"snapshot {id} is not of these environments, or was dropped: return by another route")
        self._memos.move_to_end(id)
        return self._memos[id]

    def drop(self, id: str) -> None:
        self._memos.pop(id, None)

    def __contains__(self, id: str) -> bool:
        return id in self._memos


async def read_content(tab: Tab, context: BrowserContext) -> PageContent:
    """Read the state of a page. Raises EnvironmentFailure if a part of it is out of reach."""
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


async def load_page(tab: Tab, context: BrowserContext, state: PageContent, settle: Callable[[], Awaitable[object]]) -> None:
    """Load the page in an empty context, with cookies and storage restored before its first script runs.

    `settle` waits for the page if its databases are restored too. Raises EnvironmentFailure if it cannot be opened.
    """
    await context.add_cookies(state.cookies)
    source = script_call("snapshot/restore_storage", state.frames)
    added = await tab.cdp.send("Page.addScriptToEvaluateOnNewDocument", {"source": source, "worldName": tab.context_name})
    try:
        if error := (await tab.navigate(state.url)).error:
            raise EnvironmentFailure(f"restore: {state.url} cannot be opened (net::ERR_{error}): return by another route")
        if state.bases:
            await settle()
            if await _restore_databases(tab, state):
                await tab.page.reload(wait_until="commit")
    finally:
        await tab.cdp.send("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


async def restore_fields(tab: Tab, state: PageContent, reported: Sequence[Sequence[int]] = ()) -> list[list[int]]:
    """Restore fields, focus, scroll positions and storage of all frames. Return, for each frame, the indices of the fields that differed.

    `reported`: for each frame, the fields for which the page gets `input` and `change` events, as if a user had changed them.
    """
    changed: list[list[int]] = []
    for index, (frame, frame_state) in enumerate(zip(await _frames(tab), state.frames, strict=False)):
        report = reported[index] if index < len(reported) else ()
        changed.append(await _run(tab, frame, script_call("snapshot/restore_fields", frame_state, list(report))))
        await _run(tab, frame, script_call("snapshot/restore_storage", [frame_state]))
    return changed


async def move_pointer(tab: Tab, state: PageContent) -> None:
    """Move the pointer to the element that it was over, in the page itself."""
    place = await _run(tab, tab.main_frame, script_call("snapshot/pointer", state.frames[0]))
    if place:
        await move_mouse(tab.cdp, *place)


async def _restore_databases(tab: Tab, state: PageContent) -> bool:
    """Restore the databases. Return False if the page holds them open; the fingerprint shows whether that matters."""
    bases = dict(state.bases)
    for frame, frame_state in zip(await _frames(tab), state.frames, strict=False):
        copy = bases.pop(frame_state["origin"], None)
        if copy is not None:
            try:
                await _run(tab, frame, script_call("snapshot/restore_databases", copy))
            except EnvironmentFailure:
                return False
    return True


async def _frames(tab: Tab) -> list[str]:
    """Return the ids of all frames, depth first."""
    found: list[str] = []
    below = [(await tab.cdp.send("Page.getFrameTree"))["frameTree"]]
    while below:
        tree = below.pop()
        found.append(tree["frame"]["id"])
        below.extend(reversed(tree.get("childFrames", ())))
    return found


async def _run(tab: Tab, frame: str, expression: str) -> Any:
    return await tab.evaluate_in(frame, expression)
