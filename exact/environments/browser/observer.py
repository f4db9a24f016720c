"""Observing an environment: the present page or the open dialog, as an agent may see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from exact.action import Action
from exact.config import BrowserConfig
from exact.environments.browser.network.flow import SecretFlow
from exact.environments.browser.observe import capture, describe
from exact.environments.browser.observe.covering import cover, covered, secret_nodes
from exact.environments.browser.observe.describe import HiddenState, Identity, Masks
from exact.environments.browser.observe.dom import Document, document_paths, scroll_places
from exact.environments.browser.observe.drawing import DrawnState, Look, PictureMemory, look_at
from exact.environments.browser.observe.media import read_media
from exact.environments.browser.observe.redaction import Redaction, TypedFields
from exact.environments.browser.observe.refind import SeenPage
from exact.environments.browser.page.cdp import script_call
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
        media, frames = await read_media(tab, answers[0]), await capture.read_frames(tab, answers[0])
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
            screenshot, boxes = await cover(tab, screenshot, nodes, config, typed=bool(self._flow.typed))
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

    async def hides(self, config: BrowserConfig) -> Callable[[str], str]:
        """Return the function that takes out of a text what observations of the present page do not show."""
        if not (config.mask or self._flow.typed):
            return self._secrets.mask
        documents, typed = await self._documents_now(config)
        redaction = Redaction.for_page(documents, (), typed)
        return lambda text: self._secrets.mask(redaction.text(text) if redaction else text)

    async def picture(self, config: BrowserConfig) -> bytes:
        """Return a PNG of the viewport in which secrets are covered, as in an observation."""
        tab = self._window.present
        screenshot, (documents, typed) = await tab.screenshot(), await self._documents_now(config)
        nodes = [*secret_nodes(documents, self._secrets.scrubber), *typed.on(documents)]
        return (await cover(tab, screenshot, nodes, config, typed=bool(self._flow.typed)))[0]

    async def _documents_now(self, config: BrowserConfig) -> tuple[list[Document], TypedFields]:
        """Return the documents of the present tab, and their fields that hold a typed secret."""
        tab = self._window.present
        page, typed = await self._captured(tab, config)
        return page.documents, typed

    async def _captured(self, tab: Tab, config: BrowserConfig) -> tuple[capture.Capture, TypedFields]:
        answers = await asyncio.gather(*capture.capture_commands(tab, config))
        typed = self._typed(tab, self._secrets.scrubber)
        media, frames = await read_media(tab, answers[0]), await capture.read_frames(tab, answers[0])
        return capture.build_capture(tab, self.ids, config, answers, media, frames, typed), typed

    async def look(self, config: BrowserConfig) -> SeenPage:
        """Return the present page, without waiting until it is quiet. The last observation stays what agents were shown.

        Raises Playwright's Error if a document goes away meanwhile, and PageTooLarge.
        """
        page, _ = await self._captured(self._window.present, config)
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

        look = Look(tab.url, config.scale, restless, None if config.clock else again)
        self.drawn = await look_at(self.drawn, text, screenshot, look, self._pictures)
        return self.drawn.fingerprint, watched

    def _other_urls(self) -> tuple[str, ...]:
        return tuple(self._secrets.mask(other.url) for other in self._window.others)

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
