"""A browser world: one context, its tabs, and the actions in them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exact.action import Action, ActionSpace
from exact.config import BrowserConfig
from exact.environments.accounts import Leased, Login
from exact.environments.base import Capabilities, Effect, Snapshot, Transition
from exact.environments.browser import blank, describe, upload
from exact.environments.browser.act import Body, act
from exact.environments.browser.capture import capture
from exact.environments.browser.clipboard import Clipboard
from exact.environments.browser.clock import START, Clock
from exact.environments.browser.dialogs import Dialogs
from exact.environments.browser.dom import Document, places
from exact.environments.browser.downloads import Downloads
from exact.environments.browser.grammar import BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.browser.guard import Ward
from exact.environments.browser.launch import Browser
from exact.environments.browser.login import LogIn, Session
from exact.environments.browser.masks import Masks, Part
from exact.environments.browser.setup import Beginning, PageSetup, place_of, tabs_of
from exact.environments.browser.tab import Tab
from exact.environments.browser.task_config import launched_alike, of_task
from exact.environments.browser.trace import Trace
from exact.environments.browser.tree import Ids
from exact.environments.browser.watch import SHADOWS, TIMERS
from exact.errors import ActionError, EnvironmentError_, UsageError
from exact.observation import Element, Observation
from exact.safety import origin, origins, target_refusal
from exact.task import Outcome, Score, Task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Dialog, Page

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
        log_in: LogIn | None = None,
        login: Leased | None = None,
    ) -> None:
        """`log_in`: what worlds that are opened together share of it. `login`: the account that this world has, if they lease some."""
        self._browser, self._setup, self._base, self._evaluator = browser, setup, config, evaluator
        self._config = config
        """That of the task."""
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
        """The present one last, before it the one that was it before."""
        self._opening: set[asyncio.Task[None]] = set()
        self._dialogs = Dialogs("accept" if setup.one_page else config.dialogs)
        self._downloads = self._new_downloads()
        self._clipboard: Clipboard | None = None
        self._log_in, self._login = log_in or LogIn(), login
        self._trace = Trace()
        self._files: dict[str, Path] = {}
        self._behind: Sequence[str] = ()
        """Of a page that was restored: addresses to which going back leads, the next one last."""
        self._opened = 0
        self._way = ""
        """What the last action was, and where: it tells apart what cannot be looked at."""
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
        return PAGE_ACTIONS if self._setup.one_page else BROWSER_ACTIONS

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
            await self._arrive_logged_in(task)
            if not self._dialogs.is_asked:
                await self._set_out(task)
            _, observation, terminated = await self._look()
        if terminated:
            raise EnvironmentError_(f"{task.id} is over before it begins: check the page's set-up")
        self._ward.take()
        self._terminated = False
        return observation

    @property
    def _obstacle(self) -> str:
        """What stands in the way of any snapshot; empty if nothing does."""
        if self._terminated or self._task is None or not self._tabs:
            return "no episode is under way"
        if self._dialogs.is_open:
            return "a dialog is open"
        if self._opening:
            return "a page is opening"
        if any(tab.traffic.navigating for tab in self._tabs):
            return "a page is loading"
        return "a file is coming in" if self._downloads.under_way else ""

    async def _arrive_logged_in(self, task: Task) -> None:
        """At the task's start page, as who the task wants to be there."""
        if await self._log_in.begin(self._session):
            await self._forget_ways()
        await self._start(task.start)
        if not self._dialogs.is_asked and await self._log_in.renew(self._session, self._tab.page.url):
            await self._forget_ways()
            await self._start(task.start)
            if await self._log_in.renew(self._session, self._tab.page.url):
                raise EnvironmentError_(f"nobody is logged in at {self._tab.page.url} after the log-in script: check browser.login")

    async def _forget_ways(self) -> None:
        """Leave no trace of how somebody logged in: neither in the history nor in the ids."""
        await self._tab.page.goto("about:blank")
        await self._tab.cdp.send("Page.resetNavigationHistory")
        self._ids = Ids()

    @property
    def _session(self) -> Session:
        assert self._context is not None and self._task is not None

        async def look() -> Observation:
            return (await self._look())[1]

        return Session(
            self._config.login, self._who, self._context, lambda: self._tab, self._ward, self._task.start,
            self.actions, self._start, self._do, look,
        )  # fmt: skip

    @property
    def _who(self) -> str:
        """Name of the account that this world has leased; empty if none."""
        return self._login.now.name if self._login else ""

    async def _set_out(self, task: Task) -> None:
        """What the set-up wants done on the start page."""
        if self._setup.begin:
            await self._begin(task)
        if self._setup.instruction:
            self._instruction = str(await self._tab.evaluate(self._setup.instruction, page_world=True) or "")

    async def _anew(self, task: Task, now: int = START) -> None:
        """In a context that knows nothing of before, for a task. `now`: what its clock shows, if it is held."""
        before, self._config, self._task = self._config, of_task(self._base, task), task
        if not launched_alike(self._config, self._base):
            raise UsageError(f"task {task.id} wants a browser of its own: open its worlds with its configuration")
        if before != self._config or self._config.permissions or self._config.login.certificate or not await self._renew():
            await self._leave()
            await self._enter(now)
        self._task, self._ids, self._instruction, self._behind = task, Ids(), "", ()
        self._begin_episode(task)
        self._ward = self._ward_of(task)
        self._browser.guard.admit(self._context_id, self._ward)

    def _begin_episode(self, task: Task, downloads: tuple[str, ...] = ()) -> None:
        """What an agent has besides pages."""
        self._files, self._downloads = upload.declared(task), self._new_downloads(downloads)
        self._dialogs.clear()
        if not self._setup.one_page:
            self._dialogs.mode = self._config.dialogs
            self._clipboard = self._browser.clipboard()

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
        if action.name not in self.actions.verbs:
            raise ActionError(f"unknown action {action}: valid: {', '.join(self.actions.verbs)}")
        if self.actions.is_final(action):
            self._terminated = True
            return Transition(observation=None, terminated=True)
        before = self._seen
        async with self._world(f"step {action.key}"):
            try:
                await self._do(action)
            except ActionError as error:
                raise ActionError(self._veil(str(error))) from error.__cause__
            settled, observation, self._terminated = await self._look()
            if not self._terminated:
                self._log_in.check(self._session, observation.url)
        effects = tuple(self._veiled(effect) for effect in self._ward.take())
        info = {} if settled else {"unsettled": f"still changing after {self._config.settle_seconds:g} s"}
        if url := self._unanswered():
            info["unsettled"] = f"{url} did not answer for {self._config.answer_seconds:g} s: its loading was stopped"
        if refused := self._downloads.refused:
            self._downloads.refused = ""
            if before is not None and before.fingerprint == observation.fingerprint and len(effects) == 1:
                raise ActionError(refused)  # nothing else came of it
            info["download"] = refused
        return Transition(
            observation=None if self._terminated else observation,
            terminated=self._terminated,
            effects=effects,
            info=info,
        )

    async def _do(self, action: Action) -> None:
        """Carry out one action, as far as the next dialog."""
        for tab in self._tabs:
            tab.traffic.mark()
        self._way = f"{self._seen.fingerprint if self._seen else ''} {action.key}"
        if self._dialogs.is_asked:
            await self._dialogs.act(action, self._fill)
            return
        body = Body(
            tab=self._tab, ids=self._ids, width=self._config.width, height=self._config.height, others=self._others, focus=self._focus,
            refusal=self._refusal, behind=self._back, fill=self._fill, files=self._files, clipboard=self._clipboard,
        )  # fmt: skip
        await self._dialogs.race(act(body, action), goes_on=True)

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

    @property
    def _others(self) -> list[Tab]:
        """The other tabs, in the order in which they were opened."""
        return sorted(self._tabs[:-1], key=lambda tab: tab.index)

    async def _focus(self, tab: Tab) -> None:
        """Make a tab the present one."""
        self._tabs.remove(tab)
        self._tabs.append(tab)
        await tab.page.bring_to_front()

    def _new_downloads(self, had: tuple[str, ...] = ()) -> Downloads:
        return Downloads(self._config.download_bytes, self._browser.store, lambda effect: self._ward.record(effect), had)

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
        ward.own, ward.headers = origins(task.start, *task.origins), self._log_in.headers(self._config.login)
        ward.most = self._config.download_bytes
        return ward

    @property
    def _logins(self) -> tuple[Login, ...]:
        """Whose secrets are known by name only."""
        return (*((self._login.now,) if self._login else ()), *self._log_in.logins(self._config.login))

    def _fill(self, text: str) -> str:
        """A text as it is typed: with what an agent knows by name only."""
        for login in self._logins:
            text = login.fill(text)
        return text

    def _veil(self, text: str) -> str:
        """A text as an agent may read it."""
        for login in self._logins:
            text = login.veil(text)
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

        if self._dialogs.is_open:  # its page can be asked nothing
            return False
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
        await self._browser.keep_downloads(self._context_id)

    @property
    def _origins(self) -> tuple[str, ...]:
        """Those of the task."""
        return origins(self._task.start, *self._task.origins) if self._task else ()

    async def _connect(self, now: int = START) -> Page:
        """Enter the browser; popups are looked at from now on. Gives the first page. `now`: what its clock shows, if it is held."""
        timers = () if self._clock else (TIMERS,)  # held timers are not waited for
        shadows = f"{SHADOWS}({json.dumps(blank.rules(self._config.mask))})"
        self._context, page = await self._browser.enter(self._config, (*timers, shadows, *self._setup.init_scripts), self._origins)
        if not self._speculative:
            await self._trace.begin(self._context, self._config.traces, self._task.id if self._task else "")
        if self._clock:
            await self._clock.hold(self._context, now)
        if self._task is not None and (place := place_of(self._task)):
            await self._context.set_geolocation({"latitude": place[0], "longitude": place[1]})
            await self._context.grant_permissions(["geolocation"])
        self._context.set_default_timeout(_PATIENCE * 1000)
        self._context.on("page", self._popup)
        return page

    async def _adopt(self, page: Page, cdp: CDPSession | None = None) -> str:
        """Look at a page from now on. Gives the CDP id of its browser context."""
        page.on("dialog", self._dialog)
        page.on("crash", lambda _: self._break("the page crashed"))
        tab = Tab(page, cdp or await page.context.new_cdp_session(page), self._opened, self._config.answer_seconds)
        self._opened += 1
        tab.cdp.on("Page.downloadWillBegin", lambda event: self._downloads.begin(event))
        tab.cdp.on("Page.downloadProgress", lambda event: self._downloads.progress(event))
        dressed, opened = self._browser.dress(tab.cdp, self._config), tab.open(self._setup, blank.rules(self._config.mask))
        context = (await asyncio.gather(dressed, opened))[1]
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
        url = dialog.page.url if dialog.page else ""
        self._ward.record(Effect(kind="dialog", method=dialog.type, url=url, detail=dialog.message))
        await self._dialogs.opened(dialog)

    def _break(self, why: str) -> None:
        self._broken = why

    async def _start(self, url: str) -> None:
        from playwright.async_api import Error

        try:
            self._way = url
            await self._dialogs.race(self._tab.page.goto(url or "about:blank", wait_until="load"), goes_on=True)
        except Error as error:
            if self._unanswered():
                seconds = self._config.answer_seconds
                raise EnvironmentError_(f"the start page {url} did not answer for {seconds:g} s: raise browser.answer_seconds") from error
            blocked = [effect for effect in self._ward.take() if effect.kind == "blocked"]
            if blocked:
                way_out = f"allow {origin(blocked[0].url)} with --allow-origin if it belongs to the task"
                raise EnvironmentError_(f"the start page {url} leads to {blocked[0].url}: {way_out}") from error
            raise
        await self._dialogs.race(self._settle())

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
            await self._downloads.done()
            if not self._opening and tab is self._tab:
                return

    async def _look(self, *, run: bool = True, expected: str = "") -> tuple[bool, Observation, bool]:
        """Settle and observe: whether the page became quiet, what is seen, and whether the episode is over.

        A page that has the `expected` fingerprint already need not settle.
        """
        found = None if self._dialogs.is_asked else await self._dialogs.race(self._look_at_page(run, expected))
        settled, observation, over = found or (True, self._dialog_observation(), False)
        self._seen = observation
        return settled, observation, over

    async def _look_at_page(self, run: bool, expected: str) -> tuple[bool, Observation, bool]:
        from playwright.async_api import Error

        settled = bool(expected)
        while True:
            settled, tab = settled or await self._settle(run=run), self._tab
            try:
                observation, over = await self._observe()
            except Error as error:
                if not tab.left(error):
                    raise
            else:
                if not expected or observation.fingerprint == expected:
                    return settled, observation, over
            settled, expected = False, ""

    def _dialog_observation(self) -> Observation:
        shown, tabs = self._dialogs.shown(self._ids, self._tab.index, self._veil, self._way), self._other_urls()
        digest = describe.fingerprint(shown.digest, shown.elements, tabs).fingerprint
        return Observation(
            text=describe.text(shown.elements),
            fingerprint=digest,
            url=self._veil(shown.url),
            instruction=self._instruction,
            elements=shown.elements,
            tabs=tabs,
            downloads=self._downloads.kept,
        )

    def _other_urls(self) -> tuple[str, ...]:
        return tuple(self._veil(other.page.url) for other in self._others)

    async def _observe(self) -> tuple[Observation, bool]:
        """What is to be seen, and whether the episode is over: asked last, so that nothing of a terminated state is handed on."""
        tab, config = self._tab, self._config
        page, terminated = await asyncio.gather(capture(tab, self._ids, config), self._is_over(tab))
        screenshot = None
        if config.screenshots and not terminated:
            screenshot = await tab.screenshot()
            terminated = await self._is_over(tab)
        elements, tabs = self._shown(page.elements), self._other_urls()
        where, url, downloads = self._where(page.documents, elements), self._veil(page.url), self._downloads.kept
        digests = describe.fingerprint(url, elements, (*tabs, *downloads), self._masks, where)
        observation = Observation(
            text=describe.text(elements),
            fingerprint=digests.fingerprint,
            volatile=digests.volatile,
            url=url,
            title=self._veil(page.title),
            instruction=self._instruction,
            elements=elements,
            tabs=tabs,
            downloads=downloads,
            html=self._veil(page.html),
            screenshot=screenshot,
        )
        return observation, terminated

    def _shown(self, elements: tuple[Element, ...]) -> tuple[Element, ...]:
        """Elements as an agent may read them."""
        if not self._logins:
            return elements
        replace, veil = msgspec.structs.replace, self._veil
        return tuple(replace(each, name=veil(each.name), value=each.value and veil(each.value)) for each in elements)

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
        self._dialogs.clear()
        if self._clipboard:
            self._clipboard.close()
        for task in self._opening:
            task.cancel()
        if context is not None:
            await self._trace.end(self._veil)
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
