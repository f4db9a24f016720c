"""A capture of a page: its documents, elements and HTML, read at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.observe.cut import is_too_large, read_beginning
from exact.environments.browser.observe.dom import STYLES, Document, read_documents
from exact.environments.browser.observe.html import page_html
from exact.environments.browser.observe.media import MediaStates
from exact.environments.browser.observe.redaction import Redaction
from exact.environments.browser.observe.tree import build_elements, replace_surrogates
from exact.environments.browser.page.cdp import PageTooLarge, raw_send
from exact.environments.browser.page.garbage import no_collection
from exact.environments.browser.page.ids import Ids
from exact.environments.browser.page.tab import Tab
from exact.observation import Box, Element


class Capture(NamedTuple):
    """The state of a page, without what is masked."""

    documents: list[Document]
    elements: tuple[Element, ...]
    url: str
    title: str
    html: str
    """The shortened HTML; empty where the configuration does not ask for it."""


def capture_commands(tab: Tab, config: BrowserConfig) -> list[Awaitable[Any]]:
    """Send the CDP commands for a capture of a tab's page, and return their pending answers.

    Of a page that is too large, only the beginning is read. An answer raises Playwright's Error where a document goes away meanwhile.
    """
    if is_too_large(tab, config):
        beginning = asyncio.ensure_future(read_beginning(tab, config))
        return [_part(beginning, 0), _part(beginning, 1)]
    snapshot = asyncio.ensure_future(raw_send(tab.cdp)("DOMSnapshot.captureSnapshot", {"computedStyles": list(STYLES)}))
    return [snapshot, *tab.accessible.read(snapshot)]


async def _part(answers: Awaitable[tuple[Any, Any]], index: int) -> Any:
    return (await answers)[index]


@no_collection()
def build_capture(
    tab: Tab, ids: Ids, config: BrowserConfig, hide: Callable[[str], str], answers: Sequence[Any], media: MediaStates | None = None
) -> Capture:
    """Build the capture from the answers to `capture_commands`. New elements get new ids.

    `hide` removes from a text of the HTML what an agent may not read. `media`: what `read_media` returned for the page. Raises PageTooLarge
    for elements with too much to say, of a page that is not cut yet.
    """
    snapshot, *trees = answers
    documents = read_documents(snapshot, Box(0, 0, config.width, config.height))
    nodes = [node for tree in trees for node in tree["nodes"]]
    redaction = Redaction.for_page(documents, nodes) if config.mask else None
    elements = build_elements(documents, nodes, ids, tab.index, tab.traffic.documents, redaction, media or {})
    if not is_too_large(tab, config):
        tab.accessible.learn(snapshot, nodes)
    if sum(len(each.name) + len(each.value or "") for each in elements) > config.page_characters and not is_too_large(tab, config):
        raise PageTooLarge
    title = replace_surrogates(documents[0].title)
    text = ""
    if config.html:
        known = {(place.frame, place.backend): element for element in elements if (place := ids.location(element.id))}
        text = replace_surrogates(page_html(documents, known, redaction, hide))
    return Capture(documents, elements, documents[0].url, redaction.text(title) if redaction else title, text)
