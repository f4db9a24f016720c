"""A browser world: one context, its tabs, and the actions in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from exact.action import Action, ActionSpace
from exact.config import BrowserConfig
from exact.environments.base import Capabilities, Effect, Snapshot, Transition
from exact.environments.browser import describe
from exact.environments.browser.act import Body, act
from exact.environments.browser.clock import START, Clock
from exact.environments.browser.dom import STYLES, Document, places, read
from exact.environments.browser.grammar import BROWSER_ACTIONS
from exact.environments.browser.guard import Ward
from exact.environments.browser.launch import Browser
from exact.environments.browser.masks import Masks, Part
from exact.environments.browser.setup import Beginning, PageSetup, place_of, tabs_of
from exact.environments.browser.tab import Tab
from exact.environments.browser.tree import Ids, build, whole
from exact.environments.browser.watch import TIMERS
from exact.errors import ActionError, EnvironmentError_, UsageError
from exact.observation import Box, Element, Observation
from exact.safety import origin, origins, target_refusal
from exact.task import Outcome, Score, Task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Download, Page

Evaluator = Callable[["Page", Outcome], Awaitable[Score]]
_PATIENCE = 30.0
"""Seconds beyond the settling after which a page that does not answer is broken."""


class BrowserEnvironment:
    """One world in a browser context of its own. Made by BrowserWorlds."""

    def __init__(
        self,
        browser: Browser,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        sealed: bool,
        speculative: bool,
        evaluator: Evaluator | None,
        masks: Masks | None = None,
    ) -> None:
        self._browser, self._setup, self._config, self._evaluator = browser, setup, config, evaluator
        self._sealed, self._speculative = sealed, speculative
        self._shared = masks or Masks(config.masks)
        self._masks = self._shared
        self._looks: dict[str, Part] = {}
        """Of the last observation, by where elements are; kept while masks are learned."""
        self._clock = Clock(config.clock) if config.clock else None
        self._context: BrowserContext | None = None
        self._context_id = ""
        self._ward = Ward((), writes=False, frames=self._frames)
        self._tabs: list[Tab] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._dialogs = 0
        """How many are open."""
        self._behind: Sequence[str] = ()
        """Of a page that was restored: addresses to which going back leads, the next one last."""
        self._opened = 0
        self._task: Task | None = None
        self._ids = Ids()
        self._instruction = ""
        self._seen: Observation | None = None
        """The last observation."""
        self._terminated = True
        self._broken = ""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            fidelity="replay",
            sealed=self._sealed,
            screenshots=self._config.screenshots,
            evaluates=self._evaluator is not None,
        )

    @property
    def actions(self) -> ActionSpace:
        return BROWSER_ACTIONS

    @property
    def page(self) -> Page:
        """The present page, for evaluators. Raises EnvironmentError_ before the first reset."""
        return self._tab.page

    async def reset(self, task: Task) -> Observation:
        """The task's start, in a browser context that knows nothing of before: cookies, storage and scripts are gone."""
        self._masks = self._shared.of(task)
        if self._config.learn_masks and self._masks.begin(task):
            await self._learn(task)
        return await self._reset(task)

    async def _learn(self, task: Task) -> None:
        """See the start three times, the last two without a reset between them: what differs is volatile."""
        await self._reset(task)
        first = self._looks
        await self._reset(task)
        self._masks.learn(first, second := self._looks)
        async with self._world("look"):
            await self._look(run=False)
        self._masks.learn(second, self._looks)

    async def _reset(self, task: Task) -> Observation:
        self._terminated = True
        async with self._world("reset"):
            await self._anew(task)
            await self._prepare(task)
            await self._open_tabs(task)
            await self._start(task.start)
            if self._setup.begin:
                await self._begin(task)
            if self._setup.instruction:
                self._instruction = str(await self._tab.evaluate(self._setup.instruction, page_world=True) or "")
            _, observation, terminated = await self._look()
        if terminated:
            raise EnvironmentError_(f"{task.id} is over before it begins: check the page's set-up")
        self._ward.take()
        self._terminated = False
        return observation

    async def _anew(self, task: Task, now: int = START) -> None:
        """In a context that knows nothing of before, for a task. `now`: what its clock shows, if it is held."""
        self._task = task
        if not await self._renew():
            await self._leave()
            await self._enter(now)
        self._task, self._ids, self._instruction, self._behind = task, Ids(), "", ()
        self._ward = self._ward_of(task)
        self._browser.guard.admit(self._context_id, self._ward)

    async def _prepare(self, task: Task) -> None:
        """What the set-up wants done before the start page; nobody's step, so all methods go through and nothing is told of it."""
        if self._setup.prepare is None:
            return
        assert self._context is not None
        self._browser.guard.admit(self._context_id, Ward(self._ward.allowed, writes=True, frames=self._frames))
        try:
            await self._setup.prepare(Beginning(task, self._context, self._tab.page, self._speculative))
            await self._tab.page.goto("about:blank")
            await self._tab.cdp.send("Page.resetNavigationHistory")
        finally:
            self._browser.guard.admit(self._context_id, self._ward)

    async def _open_tabs(self, task: Task) -> None:
        """The task's further tabs, below that of its start page. Raises EnvironmentError_."""
        assert self._context is not None
        for url in tabs_of(task):
            await self._start(url)
            await self._context.new_page()
            await self._ward.no_popups()
            await asyncio.gather(*self._opening)

    async def step(self, action: Action) -> Transition:
        """Carry out one action and settle; see Environment."""
        if self._terminated:
            raise ActionError("the episode is over: reset first")
        if action.name not in BROWSER_ACTIONS.verbs:
            raise ActionError(f"unknown action {action}: valid: {', '.join(BROWSER_ACTIONS.verbs)}")
        if BROWSER_ACTIONS.is_final(action):
            self._terminated = True
            return Transition(observation=None, terminated=True)
        async with self._world(f"step {action.key}"):
            for tab in self._tabs:
                tab.traffic.mark()
            opener, width, height = len(self._tabs) > 1, self._config.width, self._config.height
            body = Body(self._tab, self._ids, width, height, opener, self._refusal, self._back, self._fill)
            try:
                await act(body, action)
            except ActionError as error:
                raise ActionError(self._veil(str(error))) from error.__cause__
            settled, observation, self._terminated = await self._look()
        info = {} if settled else {"unsettled": f"still changing after {self._config.settle_seconds:g} s"}
        if url := self._unanswered():
            info["unsettled"] = f"{url} did not answer for {self._config.answer_seconds:g} s: its loading was stopped"
        return Transition(
            observation=None if self._terminated else observation,
            terminated=self._terminated,
            effects=tuple(self._veiled(effect) for effect in self._ward.take()),
            info=info,
        )

    async def snapshot(self) -> Snapshot:
        raise EnvironmentError_("this browser has no snapshots: return by reset and replay")

    async def restore(self, snapshot: Snapshot) -> Observation:
        raise EnvironmentError_("this browser has no snapshots: return by reset and replay")

    async def evaluate(self, outcome: Outcome) -> Score:
        """The benchmark's verdict on the present page; the page is not reset by it."""
        if self._evaluator is None:
            raise UsageError("this world has no evaluator: its outcomes are judged, not scored")
        async with self._world("evaluate"):
            return await self._evaluator(self.page, msgspec.structs.replace(outcome, task=self._task))

    async def close(self) -> None:
        self._terminated = True
        await self._leave()

    @property
    def _tab(self) -> Tab:
        if not self._tabs:
            raise EnvironmentError_("no page is open: reset first")
        return self._tabs[-1]

    def _back(self) -> str:
        if len(self._tabs) > 1 or not self._behind:
            return ""
        *self._behind, url = self._behind
        return url

    def _unanswered(self) -> str:
        """An address that did not answer in time, told once."""
        found = ""
        for tab in self._tabs:
            found, tab.unanswered = tab.unanswered or found, ""
        return found

    def _refusal(self, url: str) -> str:
        return target_refusal(url, self._ward.allowed)

    async def _frames(self) -> set[str]:
        found: set[str] = set()
        for tab in list(self._tabs):
            found |= await tab.frame_ids()
        return found

    def _ward_of(self, task: Task) -> Ward:
        allowed = origins(task.start, *task.origins, *self._config.allow_origins)
        explores = {"rollback": self._sealed, "observe": False, "free": True}[self._config.speculation]
        only = self._undone if self._speculative and self._config.speculation == "rollback" else None
        ward = Ward(allowed, writes=explores or not self._speculative, frames=self._frames, only=only)
        ward.veil = self._veil
        return ward

    def _fill(self, text: str) -> str:
        """A text as it is typed: with what an agent knows by name only."""
        return text

    def _veil(self, text: str) -> str:
        """A text as an agent may read it."""
        return text

    def _veiled(self, effect: Effect) -> Effect:
        return msgspec.structs.replace(effect, url=self._veil(effect.url), detail=self._veil(effect.detail))

    @property
    def _undone(self) -> tuple[str, ...] | None:
        """Origins at which a sealed world's writes are undone; None: all."""
        return None

    async def _renew(self) -> bool:
        """Empty the context instead of opening another one, three times as fast. False where it is not certain that nothing stays.

        Only in a sealed world, whose servers keep nothing that a cache could hold on to, and only if the one page never left its origin.
        """
        from playwright.async_api import Error

        if not self._sealed or self._clock or self._broken or self._opened != 1 or len(self._tabs) != 1 or self._opening:
            return False
        try:
            return await self._tab.renew()
        except (Error, EnvironmentError_):
            return False

    async def _enter(self, now: int = START) -> None:
        """Open a context and its first tab."""
        self._broken, self._opened = "", 0
        page = await self._connect(now)
        self._context_id = await self._adopt(page)

    async def _connect(self, now: int = START) -> Page:
        """Enter the browser; popups are looked at from now on. Gives the first page. `now`: what its clock shows, if it is held."""
        timers = () if self._clock else (TIMERS,)  # held timers are not waited for
        self._context, page = await self._browser.enter(self._config, (*timers, *self._setup.init_scripts))
        if self._clock:
            await self._clock.hold(self._context, now)
        if self._task is not None and (place := place_of(self._task)):
            await self._context.set_geolocation({"latitude": place[0], "longitude": place[1]})
            await self._context.grant_permissions(["geolocation"])
        self._context.set_default_timeout(_PATIENCE * 1000)
        self._context.on("page", self._popup)
        return page

    async def _adopt(self, page: Page) -> str:
        """Look at a page from now on. Gives the CDP id of its browser context."""
        page.on("dialog", self._dialog)
        page.on("download", self._download)
        page.on("crash", lambda _: self._break("the page crashed"))
        tab = Tab(page, await page.context.new_cdp_session(page), self._opened, self._config.answer_seconds)
        self._opened += 1
        context = await tab.open(self._setup)
        self._tabs.append(tab)
        page.on("close", lambda _: self._tabs.remove(tab) if tab in self._tabs else None)
        return context

    def _popup(self, page: Page) -> None:
        self._ward.record(Effect(kind="tab", url=page.url))
        task = asyncio.ensure_future(self._adopt_popup(page))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _adopt_popup(self, page: Page) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # closed again before it was looked at
            await self._adopt(page)
            self._ward.forget(self._tab.main_frame)

    async def _dialog(self, dialog: Dialog) -> None:
        """Dialogs are accepted, a prompt with its default."""
        from playwright.async_api import Error

        self._ward.record(Effect(kind="dialog", method=dialog.type, url=dialog.page.url if dialog.page else "", detail=dialog.message))
        self._dialogs += 1
        try:
            with suppress(Error):
                await dialog.accept(dialog.default_value if dialog.type == "prompt" else None)
        finally:
            self._dialogs -= 1

    def _download(self, download: Download) -> None:
        self._ward.record(Effect(kind="download", method="GET", url=download.url, detail=download.suggested_filename))

    def _break(self, why: str) -> None:
        self._broken = why

    async def _start(self, url: str) -> None:
        from playwright.async_api import Error

        try:
            await self._tab.page.goto(url or "about:blank", wait_until="load")
        except Error as error:
            if self._unanswered():
                seconds = self._config.answer_seconds
                raise EnvironmentError_(f"the start page {url} did not answer for {seconds:g} s: raise browser.answer_seconds") from error
            blocked = [effect for effect in self._ward.take() if effect.kind == "blocked"]
            if blocked:
                way_out = f"allow {origin(blocked[0].url)} with --allow-origin if it belongs to the task"
                raise EnvironmentError_(f"the start page {url} leads to {blocked[0].url}: {way_out}") from error
            raise
        await self._settle()

    async def _begin(self, task: Task) -> None:
        began = self._tab.evaluate(f"({self._setup.begin})({task.seed})", page_world=True)
        await (self._clock.under(began) if self._clock else began)

    async def _settle(self, *, run: bool = True) -> bool:
        """Wait until the page is quiet. False if it still was not at the cap. `run`: whether a clock that is held runs its step."""
        try:
            async with asyncio.timeout(self._config.settle_seconds):
                await self._quiet()
                if self._clock and run:
                    await self._clock.run(self._tabs)
                    await self._quiet()
        except TimeoutError:
            return False
        return True

    async def _quiet(self) -> None:
        while True:
            await self._ward.no_popups()
            await asyncio.gather(*self._opening)
            tab = self._tab
            await tab.quiet()
            if not self._opening and tab is self._tab:
                return

    async def _look(self, *, run: bool = True) -> tuple[bool, Observation, bool]:
        """Settle and observe: whether the page became quiet, what is seen, and whether the episode is over."""
        from playwright.async_api import Error

        while True:
            settled, tab = await self._settle(run=run), self._tab
            try:
                observation, over = await self._observe()
            except Error as error:
                if not tab.left(error):
                    raise
            else:
                self._seen = observation
                return settled, observation, over

    async def _observe(self) -> tuple[Observation, bool]:
        """What is to be seen, and whether the episode is over: asked last, so that nothing of a terminated state is handed on."""
        tab, config = self._tab, self._config
        options: dict[str, Any] = {"computedStyles": list(STYLES)}
        frames = list(tab.frames)
        snapshot, terminated, *trees = await asyncio.gather(
            tab.cdp.send("DOMSnapshot.captureSnapshot", options),
            self._is_over(tab),
            *(tab.cdp.send("Accessibility.getFullAXTree", {"frameId": frame}) for frame in frames),
        )
        screenshot = None
        if config.screenshots and not terminated:
            screenshot = await tab.screenshot()
            terminated = await self._is_over(tab)
        documents = read(snapshot, Box(0, 0, config.width, config.height))
        nodes = [node for tree in trees for node in tree["nodes"]]
        elements = self._shown(build(documents, nodes, self._ids, tab.index, tab.traffic.documents))
        url, tabs = self._veil(documents[0].url), tuple(self._veil(other.page.url) for other in self._tabs if other is not tab)
        where = self._where(documents, elements)
        digests = describe.fingerprint(url, elements, tabs, self._masks, where)
        observation = Observation(
            text=describe.text(elements),
            fingerprint=digests.fingerprint,
            volatile=digests.volatile,
            url=url,
            title=self._veil(whole(documents[0].title)),
            instruction=self._instruction,
            elements=elements,
            tabs=tabs,
            screenshot=screenshot,
        )
        return observation, terminated

    def _shown(self, elements: tuple[Element, ...]) -> tuple[Element, ...]:
        """Elements as an agent may read them."""
        return elements

    def _where(self, documents: list[Document], elements: Sequence[Element]) -> list[str]:
        """Where each element is in its document; nothing where no mask asks for it."""
        if not self._config.learn_masks:
            return []
        known = places(documents)
        found = [known.get((place.frame, place.backend), "") if (place := self._ids.place(e.id)) else "" for e in elements]
        self._looks = {where: describe.part(element) for where, element in zip(found, elements, strict=True)}
        return found

    async def _is_over(self, tab: Tab) -> bool:
        return bool(self._setup.terminated) and bool(await tab.evaluate(f"Boolean({self._setup.terminated})", page_world=True))

    async def _leave(self) -> None:
        """Let go of the context. Never raises."""
        from playwright.async_api import Error

        context, self._context = self._context, None
        self._terminated = True
        self._browser.guard.dismiss(self._context_id)
        self._tabs = []
        for task in self._opening:
            task.cancel()
        if context is not None:
            with suppress(Error):
                await self._browser.leave(context)

    @asynccontextmanager
    async def _world(self, what: str) -> AsyncIterator[None]:
        """The boundary at which a browser's failures become EnvironmentError_."""
        from playwright.async_api import Error

        patience = _PATIENCE + 2 * self._config.settle_seconds
        try:
            async with asyncio.timeout(patience):
                yield
        except TimeoutError as error:
            self._terminated = True
            raise EnvironmentError_(
                f"{what}: the page did not answer for {patience:g} s: reset, or raise browser.settle_seconds"
            ) from error
        except Error as error:
            self._terminated = True
            why = self._broken or _why(error)
            if not self._browser.playwright.is_connected():
                why = "the browser is gone: launch it again"
            raise EnvironmentError_(f"{what}: {why}") from error


def _why(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
