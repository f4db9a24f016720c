"""What a page shows now, read in one go: its documents, elements and HTML."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.blank import Blank
from exact.environments.browser.dom import STYLES, Document, read
from exact.environments.browser.html import html
from exact.environments.browser.plain import plainly
from exact.environments.browser.tab import Tab
from exact.environments.browser.tree import Ids, build, whole
from exact.observation import Box, Element


class Page(NamedTuple):
    """Without what is masked."""

    documents: list[Document]
    elements: tuple[Element, ...]
    url: str
    title: str
    html: str
    """Empty where it was not asked for."""


async def capture(tab: Tab, ids: Ids, config: BrowserConfig) -> Page:
    """Read a tab's page; ids are given to what is new. Raises Playwright's Error where a document goes away meanwhile."""
    options: dict[str, Any] = {"computedStyles": list(STYLES)}
    send = plainly(tab.cdp)
    snapshot, *trees = await asyncio.gather(
        send("DOMSnapshot.captureSnapshot", options),
        *(send("Accessibility.getFullAXTree", {"frameId": frame}) for frame in list(tab.frames)),
    )
    documents = read(snapshot, Box(0, 0, config.width, config.height))
    nodes = [node for tree in trees for node in tree["nodes"]]
    blank = Blank.of(documents, nodes) if config.mask else None
    elements = build(documents, nodes, ids, tab.index, tab.traffic.documents, blank)
    title = whole(documents[0].title)
    text = ""
    if config.html:
        known = {(place.frame, place.backend): element for element in elements if (place := ids.place(element.id))}
        text = whole(html(documents, known, blank))
    return Page(documents, elements, documents[0].url, blank.text(title) if blank else title, text)
