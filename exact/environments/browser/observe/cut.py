"""The beginning of a page that is too large to be read as a whole, in the form of the browser's own answers.

A page can make more text than anybody reads, in moments: its tree would keep the browser, this process and every environment beside it busy
for minutes. So the page says how large it is before it is read (`exact.size` in size.js), and a script reads the beginning of a large one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from exact.config import BrowserConfig
from exact.environments.browser.observe.dom import STYLES, read_documents
from exact.environments.browser.observe.implied import accessible_node
from exact.environments.browser.page.script import script_call
from exact.environments.browser.page.tab import Tab
from exact.errors import EnvironmentFailure
from exact.observation import Box

_MOST = {"nodes": 2000, "text": 1000, "texts": 60_000, "controls": 150}
"""Nodes, characters of one text and of all, and controls that can be acted on, which are read of each document."""
_FRAMES = 10
"""Documents of a large page that are read."""
_NAME, _LATE = 1000, 40
"""Most characters of a name, and of a name after as many as all texts may have."""
_CHECKED, _SELECTED, _CLICKABLE = 1, 2, 4


def is_too_large(tab: Tab, config: BrowserConfig) -> bool:
    """Return whether a tab's page is too large to be read as a whole."""
    elements, characters = tab.size
    return tab.is_unreadable or elements > config.page_elements or characters > config.page_characters


async def read_beginning(tab: Tab, config: BrowserConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the beginning of a page as answers of `DOMSnapshot.captureSnapshot` and `Accessibility.getFullAXTree`.

    May raise Playwright's Error.
    """
    frames = list(tab.frames)[:_FRAMES]
    main = tab.main_frame
    frames.sort(key=lambda frame: frame != main)
    said = _note(tab, config)
    found = await asyncio.gather(*(_document(tab, frame, said if frame == main else "") for frame in frames))
    texts = _Strings()
    documents = [_snapshot(each, frame, texts) for frame, each in zip(frames, found, strict=True)]
    snapshot = {"documents": documents, "strings": texts.all}
    nodes, left = list[dict[str, Any]](), _MOST["texts"]
    for document in read_documents(snapshot, Box(0, 0, config.width, config.height)):
        for node in document.nodes:
            made = accessible_node(node, document)
            if made["role"]["value"]:
                made["name"]["value"] = name = made["name"]["value"][: _NAME if left > 0 else _LATE]
                left -= len(name)
                nodes.append({**made, "backendDOMNodeId": node.backend, "ignored": False})
    return snapshot, {"nodes": nodes}


class _Strings:
    """The table of strings of a snapshot."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._known: dict[str, int] = {}

    def at(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = len(self.all)
            self.all.append(text)
        return self._known[text]


async def _document(tab: Tab, frame: str, said: str) -> dict[str, Any]:
    """Return what cut.js reads of a frame, with the backend ids of its controls as `backends`."""
    try:
        found = dict(await tab.evaluate_in(frame, script_call("observe/cut", _MOST, list(STYLES), said)))
        found["backends"] = await tab.backends(frame, "globalThis.exact?.cut ?? []")
    except EnvironmentFailure:  # a document without a root
        nothing = [-1, 9, "#document", "", [], None, [], "", 0]
        return {"url": "", "title": "", "scroll": (0, 0), "nodes": [nothing], "handles": [], "backends": []}
    return found


def _snapshot(found: Mapping[str, Any], frame: str, texts: _Strings) -> dict[str, Any]:
    at = texts.at
    nodes: list[list[Any]] = found["nodes"]
    backends = dict(zip(found["handles"], found["backends"], strict=False))
    drawn = [index for index, node in enumerate(nodes) if node[5]]

    def flagged(flag: int) -> dict[str, list[int]]:
        return {"index": [index for index, node in enumerate(nodes) if node[8] & flag]}

    valued = [index for index, node in enumerate(nodes) if node[7]]
    return {
        "frameId": at(frame), "documentURL": at(found["url"]), "title": at(found["title"]),
        "scrollOffsetX": found["scroll"][0], "scrollOffsetY": found["scroll"][1],
        "nodes": {
            "parentIndex": [node[0] for node in nodes],
            "nodeType": [node[1] for node in nodes],
            "nodeName": [at(node[2]) for node in nodes],
            "nodeValue": [at(node[3]) for node in nodes],
            "backendNodeId": [backends.get(index, -index - 1) for index in range(len(nodes))],
            "attributes": [[at(each) for each in node[4]] for node in nodes],
            "isClickable": flagged(_CLICKABLE), "inputChecked": flagged(_CHECKED), "optionSelected": flagged(_SELECTED),
            "contentDocumentIndex": {"index": [], "value": []},
            "inputValue": {"index": valued, "value": [at(nodes[index][7]) for index in valued]},
        },
        "layout": {
            "nodeIndex": drawn,
            "styles": [[at(style) for style in nodes[index][6]] for index in drawn],
            "text": [-1] * len(drawn),
            "bounds": [nodes[index][5] for index in drawn],
        },
    }  # fmt: skip


def _note(tab: Tab, config: BrowserConfig) -> str:
    """Return what is cut of a page, and why."""
    elements, characters = tab.size
    size = (
        "more than the browser could hand over" if tab.is_unreadable else f"{_about(elements)} elements and {_about(characters)} characters"
    )
    return (
        f"exact shows the beginning of this page only, at most {_MOST['nodes']:,} nodes and {_MOST['text']:,} characters of each text. "
        f"It has {size}; browser.page_elements allows {config.page_elements:,}, browser.page_characters {config.page_characters:,}."
    )


def _about(count: int) -> str:
    """Return a count, rounded: a page that grows all the time is not another state each time."""
    return f"over {count // 10 ** (len(str(count)) - 1) * 10 ** (len(str(count)) - 1):,}" if count >= 10 else str(count)
