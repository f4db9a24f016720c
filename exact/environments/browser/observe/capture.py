"""What a page shows now, read in one go: its documents, elements and HTML."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.observe.dom import STYLES, Document, read
from exact.environments.browser.observe.html import html
from exact.environments.browser.observe.redaction import Redaction
from exact.environments.browser.observe.tree import build, whole
from exact.environments.browser.page.cdp import raw_send
from exact.environments.browser.page.ids import Ids
from exact.environments.browser.page.tab import Tab
from exact.observation import Box, Element


class Capture(NamedTuple):
    """Without what is masked."""

    documents: list[Document]
    elements: tuple[Element, ...]
    url: str
    title: str
    html: str
    """Empty where it was not asked for."""


def questions(tab: Tab) -> list[Awaitable[Any]]:
    """What is asked of a browser about a tab's page, at once. They raise Playwright's Error where a document goes away meanwhile."""
    send = raw_send(tab.cdp)
    return [
        send("DOMSnapshot.captureSnapshot", {"computedStyles": list(STYLES)}),
        *(send("Accessibility.getFullAXTree", {"frameId": frame}) for frame in list(tab.frames)),
    ]


def page(tab: Tab, ids: Ids, config: BrowserConfig, hide: Callable[[str], str], answers: Sequence[Any]) -> Capture:
    """The page, of the answers to the questions; ids are given to what is new. `hide`: what an agent may read of a text in its HTML."""
    snapshot, *trees = answers
    documents = read(snapshot, Box(0, 0, config.width, config.height))
    nodes = [node for tree in trees for node in tree["nodes"]]
    redaction = Redaction.of(documents, nodes) if config.mask else None
    elements = build(documents, nodes, ids, tab.index, tab.traffic.documents, redaction)
    title = whole(documents[0].title)
    text = ""
    if config.html:
        known = {(place.frame, place.backend): element for element in elements if (place := ids.location(element.id))}
        text = whole(html(documents, known, redaction, hide))
    return Capture(documents, elements, documents[0].url, redaction.text(title) if redaction else title, text)
