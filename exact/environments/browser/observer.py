"""Observing an environment: the present page or the open dialog, as an agent may see it.

Boxes of elements that show a secret, and screenshots in which they are covered.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from exact.action import Action
from exact.config import BrowserConfig
from exact.environments.browser.network.flow import SecretFlow
from exact.environments.browser.observe import capture, describe
from exact.environments.browser.observe.describe import HiddenState, Identity, Masks
from exact.environments.browser.observe.dom import Document, DomNode, document_paths, intersect, scroll_places
from exact.environments.browser.observe.drawing import DrawnState, Look, PictureMemory, look_at
from exact.environments.browser.observe.media import read_media
from exact.environments.browser.observe.redaction import TypedFields, is_password
from exact.environments.browser.observe.refind import SeenPage
from exact.environments.browser.page.cdp import raw_send, script_call
from exact.environments.browser.page.dialogs import Dialogs, DialogView
from exact.environments.browser.page.downloads import Downloads
from exact.environments.browser.page.ids import Ids, NodeLocation, SharedIds
from exact.environments.browser.page.tab import Tab
from exact.environments.browser.page.window import BrowserWindow
from exact.environments.browser.presume.controls import NO_CONTROLS, Controls, controls, form_senders
from exact.environments.browser.secrets import SecretMasking
from exact.observation import Box, Element, Observation, without_hash
from exact.secrecy.scrubber import Scrubber
from exact.task import Task

_LOOK_MILLISECONDS = 250
"""Milliseconds between the screenshots that show changes of the page by itself."""


class Observer:
    """Observes one environment: elements keep their ids while the page stays, secrets are replaced by names, volatile parts masked."""

    def __init__(
        self, masks: Masks, shared_ids: SharedIds, window: BrowserWindow, secrets: SecretMasking, pictures: PictureMemory | None = None
    ) -> None:
        """Make an observer.

        `masks`, `shared_ids` (of states that were seen) and `pictures` are shared by the environments of one kind.
        """
        self._pictures = pictures or PictureMemory()
        self.drawn: DrawnState | None = None
        """The picture; None if no screenshot was taken."""
        self._elements: tuple[Element, ...] = ()
        self._documents: list[Document] = []
        self.marks: dict[str, Any] = {}
        """The mark of each frame's document before it was observed."""
        self._shown: tuple[Element, ...] = ()
        """Elements of the last observation, with the ids that agents are given."""
        self._controls: Controls | None = NO_CONTROLS
        """Presumed changes by the controls of the present page; None until they are read from its documents."""
        self._targets: tuple[tuple[str, ...], ...] = ()
        """Ids of the elements that the last two actions named."""
        self._shared, self._shared_ids, self._window, self._secrets = masks, shared_ids, window, secrets
        self.masks, self._task = masks, ""
        self.identities: dict[str, Identity] = {}
        """Identities of the elements of the last observation, by their paths; empty unless masks are learned."""
        self.ids = Ids()
        self.instruction = ""
        """The instruction that the page shows; empty if the task has it."""
        self._flow = SecretFlow()
        """Where secrets were typed in this episode."""
        self.last_step = self._acted = ""
        """The last action and the state it was taken in. It identifies a state whose page cannot be observed."""
        self.hidden = HiddenState()
        self.note = ""
        """Note about the page that was opened last."""

    def begin(
        self, task: Task, ids: Ids, instruction: str = "", drawn: DrawnState | None = None, hidden: HiddenState | None = None,
        flow: SecretFlow | None = None,
    ) -> None:  # fmt: skip
        """Begin an episode: with the masks of its task, and with the other facts of the snapshot that it begins at.

        `flow`: where secrets are typed.
        """
        self._flow = flow or SecretFlow()
        self.masks, self._task = self._shared.for_task(task), task.id
        self.ids, self.instruction, self.drawn, self.hidden, self._acted = ids, instruction, drawn, hidden or HiddenState(), ""
        self.note = ""

    async def observe_page(self, config: BrowserConfig, downloads: Downloads, terminated: str) -> tuple[Observation, bool]:
        """Observe the present page, and whether the episode is over.

        The end is asked for last, so that nothing of a terminated state is observed. `terminated`: the JavaScript expression for it; empty
        if pages end no episode.
        """
        tab = self._window.present

        async def is_over() -> bool:
            return bool(terminated) and bool(await tab.evaluate(f"Boolean({terminated})", in_page=True))

        self.marks = dict(tab.marks)
        commands, screenshot = capture.capture_commands(tab, config), None
        if config.screenshots:  # the browser may answer later commands before it takes one
            *answers, screenshot = await asyncio.gather(*commands, tab.screenshot())
            over = await is_over()
        elif tab.accessible.is_known:  # its tree is requested once the snapshot is there
            answers = await asyncio.gather(*commands)
            over = await is_over()
        else:
            *answers, over = await asyncio.gather(*commands, is_over())
        media, frames = await asyncio.gather(read_media(tab, answers[0]), capture.read_frames(tab, answers[0]))
        if media:
            over = over or await is_over()
        scrubber = self._secrets.scrubber
        typed = self._typed(tab, scrubber)
        page = capture.build_capture(tab, self.ids, config, answers, media, frames, typed)
        self._learn_places(tab, typed, page.documents)
        elements, tabs = self._secrets.elements(page.elements), self._other_urls()
        paths, url, files = self._paths(page.documents, elements, config), self._secrets.mask(page.url), self._files(downloads)
        boxes = list[Box]()
        if screenshot is not None:
            nodes = [*secret_nodes(page.documents, scrubber), *typed.on(page.documents)]
            screenshot, boxes = await self._covered(tab, screenshot, nodes, config)
        step, self._acted = self._acted, ""
        self.hidden = self.hidden.after(step, url, elements, page.documents, self.masks.key)
        places, hidden = scroll_places(page.documents, config), self.hidden.text(self._secrets.mask)
        title = self._secrets.mask(page.title)
        self.hidden = self.hidden.with_title(tab.index, tab.traffic.documents, title)
        new = title if self.hidden.is_retitled(tab.index, title, self.masks) else ""
        digests = describe.fingerprint(url, elements, (*tabs, *files), self.masks, paths, places, hidden, new)
        fingerprint = digests.fingerprint
        if screenshot is not None and not over:
            digest = without_hash(fingerprint)
            drawn, watched = await self._as_drawn(tab, digest, screenshot, elements, config, boxes)
            fingerprint = drawn + fingerprint.removeprefix(digest)
            over = watched and await is_over()
        self._elements = elements
        if not over and (names := self._shared_ids.differ(self._task, fingerprint, elements)):
            self.ids.rename(names)
            page = page._replace(elements=tuple(msgspec.structs.replace(each, id=names[each.id]) for each in page.elements))
            elements = self._secrets.elements(page.elements)
        self._shown, self._documents, self._controls = elements, page.documents, None
        observation = Observation(
            text=describe.elements_text(elements),
            fingerprint=fingerprint,
            volatile=digests.volatile,
            url=url,
            title=title,
            instruction=self.instruction,
            elements=elements,
            tabs=tabs,
            downloads=files,
            senders=self._senders(page.documents, elements),
            note=self.note,
            html=self._secrets.mask(capture.capture_html(page, self.ids, self._secrets.mask)) if config.html else "",
            screenshot=None if over else screenshot,
        )
        return observation, over

    @property
    def controls(self) -> Controls:
        """Presumed changes by the controls of the page that was observed last."""
        if self._controls is None:
            nodes = {each.id: (place.frame, place.backend) for each in self._shown if (place := self.ids.location(each.id))}
            self._controls = controls(self._documents, self._shown, nodes)
        return self._controls

    def checks(self, ids: Iterable[str]) -> dict[NodeLocation, dict[str, Any]]:
        """Return the arguments of same.js for elements of the last observation, by their nodes."""
        found, known = dict[NodeLocation, dict[str, Any]](), {each.id for each in self._shown}
        for location, id in ((self.ids.location(id), id) for id in ids):
            if location is not None:
                nodes = next((each.nodes for each in self._documents if each.frame == location.frame), [])
                node = next((each for each in nodes if each.backend == location.backend), None) if id in known else None
                mark = self.marks.get(location.frame)
                found[location] = {"mark": mark, "value": node.value, "checked": node.checked} if node else {}
        return found

    @property
    def page(self) -> SeenPage:
        """The page that was observed last."""
        return SeenPage(self._documents, self._shown, self.ids, self.masks)

    async def look(self, config: BrowserConfig) -> SeenPage:
        """Return the present page, without waiting until it is quiet. The last observation stays what agents were shown.

        Raises Playwright's Error if a document goes away meanwhile, and PageTooLarge.
        """
        tab = self._window.present
        answers = await asyncio.gather(*capture.capture_commands(tab, config))
        typed = self._typed(tab, self._secrets.scrubber)
        media, frames = await asyncio.gather(read_media(tab, answers[0]), capture.read_frames(tab, answers[0]))
        page = capture.build_capture(tab, self.ids, config, answers, media, frames, typed)
        return SeenPage(page.documents, self._secrets.elements(page.elements), self.ids, self.masks)

    def observe_dialog(self, dialogs: Dialogs, downloads: Downloads) -> Observation:
        """Observe the dialog that is open. Its page does not answer meanwhile."""

        def look() -> DialogView:
            return dialogs.view(self.ids, self._window.present.index, self._secrets.mask, self.last_step)

        shown, tabs = look(), self._other_urls()
        hidden = self.hidden.text(self._secrets.mask)
        fingerprint = describe.fingerprint(shown.digest, shown.elements, tabs, self.masks, hidden=hidden).fingerprint
        if names := self._shared_ids.differ(self._task, fingerprint, shown.elements):
            self.ids.rename(names)
            shown = look()
        return Observation(
            text=describe.elements_text(shown.elements),
            fingerprint=fingerprint,
            url=self._secrets.mask(shown.url),
            instruction=self.instruction,
            elements=shown.elements,
            tabs=tabs,
            downloads=self._files(downloads),
        )

    def reuse_ids(self, ids: Ids, before: Sequence[Element], after: Sequence[Element]) -> None:
        """Give elements of a page that was loaded again, observed as `after`, the ids that elements of `before` have in `ids`."""
        self.ids = ids.moved(self.ids, before, after)

    def begin_step(self, action: Action, state: str) -> None:
        """Note an action that is about to be carried out in a state, by its fingerprint."""
        self._targets = (*self._targets[-1:], action.elements)  # their looks change by the pointer alone
        self.last_step = self._acted = f"{without_hash(state)} {action.key}"
        self.note = ""

    def _typed(self, tab: Tab, scrubber: Scrubber) -> TypedFields:
        """Return the fields of a tab's document that hold a typed secret."""
        here = [(place[2], path) for place, path in self._flow.places.items() if place[:2] == (tab.index, tab.traffic.documents)]
        backends, paths = {backend for backend, _ in here if backend >= 0}, {path for backend, path in here if backend < 0}
        return TypedFields(backends, paths, lambda text: scrubber.text(text) != text)

    def _learn_places(self, tab: Tab, typed: TypedFields, documents: list[Document]) -> None:
        """Learn ids and paths of the fields that hold a typed secret, and forget those of the tab's earlier documents."""
        if not self._flow.places:
            return
        found, known = list(typed.among(documents)), document_paths(documents)
        self._flow.places = {place: path for place, path in self._flow.places.items() if place[0] != tab.index}
        for document, node in found:
            self._flow.places[tab.index, tab.traffic.documents, node.backend] = known[document.frame, node.backend]

    async def _covered(
        self, tab: Tab, screenshot: bytes, nodes: Sequence[tuple[Document, DomNode]], config: BrowserConfig
    ) -> tuple[bytes, list[Box]]:
        """Return a screenshot in which nodes are covered, and their boxes.

        The boxes are where the browser draws the nodes before and after the screenshot. If they move meanwhile, another one is taken; if
        they always do, all of it is covered. So it is if a page is too large to be searched, and a secret was typed in this episode.
        """
        view = Box(0, 0, config.width, config.height)
        if capture.is_too_large(tab) and self._flow.typed:
            return await asyncio.to_thread(covered, screenshot, [view], config.width), [view]
        if not nodes:
            return screenshot, []
        before, after = [_box(*each, view) for each in nodes], await _places(tab, nodes, view)
        for _ in range(_TRIES):
            if all(map(_is_near, before, after)):
                boxes = [box for box in (*before, *after) if box is not None]
                break
            before = after
            screenshot = await tab.screenshot()
            after = await _places(tab, nodes, view)
        else:
            boxes = [view]
        return (await asyncio.to_thread(covered, screenshot, boxes, config.width) if boxes else screenshot), boxes

    async def _as_drawn(
        self, tab: Tab, text: str, screenshot: bytes, elements: Sequence[Element], config: BrowserConfig, secret: Sequence[Box]
    ) -> tuple[str, bool]:
        """Return the fingerprint of a state with its picture, if its text is that of the state before; and whether the page was watched.

        `text`: the fingerprint without the picture. `secret`: the boxes that are covered in it.
        """
        watched = False

        async def restless() -> list[Box]:
            boxes = [Box(*each) for each in await tab.evaluate(script_call("observe/restless"))]
            return [*boxes, *describe.restless_boxes(self._elements, elements, {id for ids in self._targets for id in ids})]

        async def again() -> bytes:
            nonlocal watched
            watched = True
            await tab.evaluate(f"exact.change({_LOOK_MILLISECONDS})")
            shot = await tab.screenshot()
            return await asyncio.to_thread(covered, shot, secret, config.width) if secret else shot

        look = Look(tab.page.url, config.scale, restless, None if config.clock else again)
        self.drawn = await look_at(self.drawn, text, screenshot, look, self._pictures)
        return self.drawn.fingerprint, watched

    def _other_urls(self) -> tuple[str, ...]:
        return tuple(self._secrets.mask(other.page.url) for other in self._window.others)

    def _files(self, downloads: Downloads) -> tuple[str, ...]:
        return tuple(self._secrets.mask(each) for each in downloads.completed)

    def _senders(self, documents: list[Document], elements: Sequence[Element]) -> tuple[str, ...]:
        senders = set(form_senders(documents))
        if not senders:
            return ()
        located = ((each.id, self.ids.location(each.id)) for each in elements)
        return tuple(id for id, location in located if location and (location.frame, location.backend) in senders)

    def _paths(self, documents: list[Document], elements: Sequence[Element], config: BrowserConfig) -> list[str]:
        """Return the path of each element in its document; an empty list unless masks are learned."""
        if not config.learn_masks:
            return []
        known = document_paths(documents)
        found = [known.get((place.frame, place.backend), "") if (place := self.ids.location(e.id)) else "" for e in elements]
        self.identities = {path: describe.identity(element) for path, element in zip(found, elements, strict=True)}
        return found


_AROUND = 3.0
"""CSS pixels around a box that are covered with it: a page may move a little while it is observed."""
_TRIES = 3
"""Screenshots that are taken until no secret moves."""
_UNDRAWN = ("script", "style", "template", "noscript", "head", "title")
_BUTTONS = ("submit", "button", "reset")


def secret_nodes(documents: Sequence[Document], scrubber: Scrubber) -> list[tuple[Document, DomNode]]:
    """Return the passwords that are filled in, and the texts and values in which a secret stands or is split."""
    drawn = [(document, *each) for document in documents for each in _texts(document)]
    texts = [text for _, _, text in drawn]
    shown = scrubber.texts(texts)
    secret = [(document, node) for (document, node, text), done in zip(drawn, shown, strict=True) if text != done]
    secret += [(document, letter) for document, node in secret if (letter := _first_letter(document, node))]
    return secret + [(document, node) for document in documents for node in document.nodes if is_password(node) and node.value]


async def _places(tab: Tab, nodes: Sequence[tuple[Document, DomNode]], view: Box) -> list[Box | None]:
    """Return the boxes in which the browser draws nodes now, as far as they are in view, with the transforms of all frames around them."""
    from playwright.async_api import Error

    send = raw_send(tab.cdp)

    async def ask(document: Document, node: DomNode) -> Box | None:
        drawn = _drawn(document, node)
        if drawn.backend < 0:  # of the beginning of a large page, which is read by a script
            return intersect(drawn.box, view)
        try:
            quads = (await send("DOM.getContentQuads", {"backendNodeId": drawn.backend}))["quads"]
        except Error:  # it is not drawn
            return None
        return intersect(_around(quads), view)

    return await asyncio.gather(*(ask(*each) for each in nodes))


def _around(quads: Sequence[Sequence[float]]) -> Box | None:
    """Return the box around quads, each a list of the coordinates of four corners; None if there are none."""
    if not quads:
        return None
    xs, ys = ([each for quad in quads for each in quad[first::2]] for first in (0, 1))
    return Box(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))


def _is_near(one: Box | None, other: Box | None) -> bool:
    """Return whether two boxes differ by less than is covered around them."""
    if one is None or other is None:
        return one is other
    sides = ((box.x, box.y, box.x + box.width, box.y + box.height) for box in (one, other))
    return all(abs(first - second) <= _AROUND for first, second in zip(*sides, strict=True))


def covered(screenshot: bytes, boxes: Iterable[Box], width: int) -> bytes:
    """Return a PNG with boxes, in CSS pixels, covered by grey. `width`: that of the viewport, in CSS pixels."""
    from PIL import Image, ImageDraw

    with Image.open(io.BytesIO(screenshot)) as image:
        picture = image.convert("RGB")
    scale = picture.width / width
    draw = ImageDraw.Draw(picture)
    for box in boxes:
        left, top = (box.x - _AROUND) * scale, (box.y - _AROUND) * scale
        draw.rectangle((left, top, (box.x + box.width + _AROUND) * scale, (box.y + box.height + _AROUND) * scale), fill=(128, 128, 128))
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _texts(document: Document) -> Iterator[tuple[DomNode, str]]:
    """Yield the nodes that may draw a text, with it, in document order."""
    for node in document.nodes:
        if node.kind == 3 or node.name.startswith("::"):
            around = document.nodes[node.parent].name if node.parent >= 0 else ""
            if node.text and around not in _UNDRAWN:
                yield node, node.text
        elif node.name in ("input", "textarea"):
            kind = node.attributes.get("type", "").lower()
            written = node.value or node.attributes.get("value" if kind in _BUTTONS else "placeholder", "")
            if written:
                yield node, written
        elif node.name in ("img", "option", "optgroup", "object") and (written := _label(node)):
            yield node, written


def _label(node: DomNode) -> str:
    return node.attributes.get("label") or node.attributes.get("alt") or ""


def _first_letter(document: Document, node: DomNode) -> DomNode | None:
    """Return the pseudo-element in which the first letter of a text is drawn, if it is drawn apart."""
    children = document.nodes[node.parent : node.index] if node.parent >= 0 else ()
    return next((each for each in children if each.name == "::first-letter"), None)


def _drawn(document: Document, node: DomNode) -> DomNode:
    """Return a node, or the nearest element around it that has a box, such as a drop-down of an option."""
    while node.box is None and node.parent >= 0:
        node = document.nodes[node.parent]
    return node


def _box(document: Document, node: DomNode, view: Box) -> Box | None:
    """Return the visible box of a node as the capture has it."""
    return intersect(_drawn(document, node).box, view)
