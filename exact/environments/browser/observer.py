"""What is seen of an environment: the present page or the open dialog, as an agent may be shown it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from exact.config import BrowserConfig
from exact.environments.browser.observe import capture, describe
from exact.environments.browser.observe.dom import Document, places
from exact.environments.browser.observe.form_senders import senders
from exact.environments.browser.observe.masks import Masks, Part
from exact.environments.browser.page.dialogs import Dialogs, DialogView
from exact.environments.browser.page.downloads import Downloads
from exact.environments.browser.page.ids import Ids, SharedIds
from exact.environments.browser.page.window import Window
from exact.environments.browser.secrets import SecretMasking
from exact.observation import Element, Observation
from exact.task import Task


class Observer:
    """Sees one environment. Elements have ids that stay while the page stays; secrets are veiled, and what is volatile is masked."""

    def __init__(self, masks: Masks, shared_ids: SharedIds, window: Window, secrets: SecretMasking) -> None:
        """`masks`: what environments of one kind know of volatile parts. `shared_ids`: of states they saw."""
        self._shared, self._shared_ids, self._window, self._secrets = masks, shared_ids, window, secrets
        self.masks, self._task = masks, ""
        self.looks: dict[str, Part] = {}
        """Of the last observation, by where elements are; kept while masks are learned."""
        self.ids = Ids()
        self.instruction = ""
        self.way = ""
        """What the last action was, and where: it tells apart what cannot be looked at."""

    def mask_for(self, task: Task) -> None:
        """Mask what is volatile in a task from now on."""
        self.masks, self._task = self._shared.of(task), task.id

    async def page(self, config: BrowserConfig, downloads: Downloads, terminated: str) -> tuple[Observation, bool]:
        """The present page, and whether the episode is over: asked last, so that nothing of a terminated state is handed on.

        `terminated`: the expression that tells it; empty where pages end no episode.
        """
        tab = self._window.present

        async def is_over() -> bool:
            return bool(terminated) and bool(await tab.evaluate(f"Boolean({terminated})", in_page=True))

        asked, screenshot = capture.questions(tab), None
        if config.screenshots:  # the browser may answer what comes after one before it is taken
            *answers, screenshot = await asyncio.gather(*asked, tab.screenshot())
            over = await is_over()
        else:
            *answers, over = await asyncio.gather(*asked, is_over())
        page = capture.page(tab, self.ids, config, self._secrets.mask, answers)
        elements, tabs = self._secrets.elements(page.elements), self._other_urls()
        where, url, kept = self._where(page.documents, elements, config), self._secrets.mask(page.url), self._files(downloads)
        digests = describe.fingerprint(url, elements, (*tabs, *kept), self.masks, where)
        if not over and (names := self._shared_ids.differ(self._task, digests.fingerprint, elements)):
            self.ids.rename(names)
            page = capture.page(tab, self.ids, config, self._secrets.mask, answers)
            elements = self._secrets.elements(page.elements)
        observation = Observation(
            text=describe.text(elements),
            fingerprint=digests.fingerprint,
            volatile=digests.volatile,
            url=url,
            title=self._secrets.mask(page.title),
            instruction=self.instruction,
            elements=elements,
            tabs=tabs,
            downloads=kept,
            senders=self._senders(page.documents, elements),
            html=self._secrets.mask(page.html),
            screenshot=None if over else screenshot,
        )
        return observation, over

    def dialog(self, dialogs: Dialogs, downloads: Downloads) -> Observation:
        """The dialog that is open; its page can be asked nothing."""

        def look() -> DialogView:
            return dialogs.view(self.ids, self._window.present.index, self._secrets.mask, self.way)

        shown, tabs = look(), self._other_urls()
        fingerprint = describe.fingerprint(shown.digest, shown.elements, tabs).fingerprint
        if names := self._shared_ids.differ(self._task, fingerprint, shown.elements):
            self.ids.rename(names)
            shown = look()
        return Observation(
            text=describe.text(shown.elements),
            fingerprint=fingerprint,
            url=self._secrets.mask(shown.url),
            instruction=self.instruction,
            elements=shown.elements,
            tabs=tabs,
            downloads=self._files(downloads),
        )

    def _other_urls(self) -> tuple[str, ...]:
        return tuple(self._secrets.mask(other.page.url) for other in self._window.others)

    def _files(self, downloads: Downloads) -> tuple[str, ...]:
        return tuple(self._secrets.mask(each) for each in downloads.completed)

    def _senders(self, documents: list[Document], elements: Sequence[Element]) -> tuple[str, ...]:
        known = set(senders(documents))
        return (
            tuple(e.id for e in elements if (place := self.ids.location(e.id)) and (place.frame, place.backend) in known) if known else ()
        )

    def _where(self, documents: list[Document], elements: Sequence[Element], config: BrowserConfig) -> list[str]:
        """Where each element is in its document; nothing where no mask asks for it."""
        if not config.learn_masks:
            return []
        known = places(documents)
        found = [known.get((place.frame, place.backend), "") if (place := self.ids.location(e.id)) else "" for e in elements]
        self.looks = {where: describe.part(element) for where, element in zip(found, elements, strict=True)}
        return found
