"""The accessibility tree of a page: read as a whole, and of a large page only where it has changed since.

The browser makes and sends the whole tree at each request, which takes most of the time of an observation. It sends no event about changes
of a tree that was read like this. The snapshot of the DOM, which is taken anyway, tells them: it has text, attributes, fields, sizes and
styles. Nodes that differ are read again, with all that may be named by them. Where that is not certain, the whole tree is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from exact.environments.browser.page.cdp import raw_send
from exact.environments.browser.page.changed_nodes import nodes_to_read
from exact.environments.browser.page.dom_documents import Documents, documents
from exact.environments.browser.page.garbage import no_collection
from exact.environments.browser.page.script import script_call
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from exact.environments.browser.page.tab import Tab

Accessible = dict[str, Any]
"""A node of CDP's accessibility tree."""
LEAST = 2000
"""Nodes of an accessibility tree from which changes are read alone."""
_PART = 20
"""The largest part of a page that is read again node by node: one in so many."""


class AccessibleTree:
    """Reads the accessibility tree of one tab."""

    def __init__(self, tab: Tab, least: int = LEAST) -> None:
        """Make a reader. `least`: nodes of a tree from which changes are read alone."""
        self._tab, self._least = tab, least
        self._snapshot: dict[str, Any] = {}
        self._compared: tuple[dict[str, Any], Documents | None] = ({}, None)
        """The snapshot that was compared last, and what it tells."""
        self._known: dict[int, Accessible] = {}
        """Nodes that were read, by backend id, with the snapshot of the same moment."""

    @property
    def is_known(self) -> bool:
        """Whether a tree was read that may be completed: then it is read after the snapshot."""
        return bool(self._known)

    def read(self, snapshot: asyncio.Future[dict[str, Any]]) -> list[Awaitable[dict[str, Any]]]:
        """Return the pending trees of all frames, or the one of a page that is known, given the pending snapshot of its DOM.

        May raise Playwright's Error.
        """
        if self.is_known:
            return [self._changed(snapshot)]
        return self._whole()

    def learn(self, snapshot: dict[str, Any], nodes: Sequence[Accessible]) -> None:
        """Remember what was read, for the next time."""
        self._snapshot, self._known = {}, {}
        if self._compared[0] is not snapshot:
            self._compared = ({}, None)
        if len(nodes) >= self._least:
            self._snapshot, self._known = snapshot, {each["backendDOMNodeId"]: each for each in nodes if "backendDOMNodeId" in each}

    def forget(self) -> None:
        """Read the whole tree the next time."""
        self.learn({}, ())

    def _whole(self) -> list[Awaitable[dict[str, Any]]]:
        send = raw_send(self._tab.cdp)
        return [send("Accessibility.getFullAXTree", {"frameId": frame}) for frame in list(self._tab.frames)]

    async def _changed(self, snapshot: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
        focused = asyncio.gather(*(self._focused(frame) for frame in list(self._tab.frames)))
        found, focus = await asyncio.gather(snapshot, focused)
        with no_collection():
            before, now = self._compared[1] or documents(self._snapshot), documents(found)
            wanted = nodes_to_read(before, now)
        self._compared = (found, now)
        if wanted is not None:
            held = (each["backendDOMNodeId"] for each in self._known.values() if _has_focus(each))
            wanted |= {*held, *(backend for each in focus for backend in each)} & now.nodes.keys()
        read = await self._read(wanted) if wanted is not None and len(wanted) <= max(50, len(now.nodes) // _PART) else None
        if read is None:
            return {"nodes": [node for tree in await asyncio.gather(*self._whole()) for node in tree["nodes"]]}
        return {"nodes": [node for backend in now.nodes if (node := read.get(backend) or self._known.get(backend))]}

    async def _read(self, wanted: set[int]) -> dict[int, Accessible] | None:
        """Return nodes by their backend ids; None where one has gone since the snapshot, as on a page that changes all the time."""
        from playwright.async_api import Error

        send = raw_send(self._tab.cdp)
        asked = [send("Accessibility.getPartialAXTree", {"backendNodeId": each, "fetchRelatives": False}) for each in wanted]
        answers = await asyncio.gather(*asked, return_exceptions=True)  # all of them: the page may fail more than one
        failed = [each for each in answers if isinstance(each, BaseException)]
        if other := [each for each in failed if not isinstance(each, Error)]:
            raise other[0]
        told = (each for each in answers if not isinstance(each, BaseException))
        return None if failed else {node["backendDOMNodeId"]: node for answer in told for node in answer["nodes"]}

    async def _focused(self, frame: str) -> list[int]:
        try:
            return await self._tab.backends(frame, script_call("page/active_element"))
        except EnvironmentFailure:  # a document without a root
            return []


def _has_focus(node: Accessible) -> bool:
    return any(each["name"] == "focused" for each in node.get("properties", ()))
