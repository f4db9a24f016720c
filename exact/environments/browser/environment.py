"""A browser environment: one context, its tabs, and the actions in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exact.action import Action, ActionSpace
from exact.config import BrowserConfig
from exact.environments.base import Capabilities, SideEffect, Snapshot, Transition
from exact.environments.browser.act import upload
from exact.environments.browser.act.act import Body, act
from exact.environments.browser.act.grammar import BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.browser.act.partial import Halfway
from exact.environments.browser.launch.launch import Browser
from exact.environments.browser.launch.trace import Trace
from exact.environments.browser.login import Session
from exact.environments.browser.network.interceptor import Ward
from exact.environments.browser.observe import redaction
from exact.environments.browser.observe.describe import moved
from exact.environments.browser.observer import Observer
from exact.environments.browser.page.clipboard import Clipboard
from exact.environments.browser.page.clock import START, Clock
from exact.environments.browser.page.dialogs import Dialogs
from exact.environments.browser.page.downloads import Downloads
from exact.environments.browser.page.ids import Ids
from exact.environments.browser.page.script import script_call
from exact.environments.browser.page.setup import Beginning, PageSetup, place_of, tabs_of
from exact.environments.browser.page.tab import Tab, Target
from exact.environments.browser.page.timeouts import PATIENCE, Patience
from exact.environments.browser.page.window import Window
from exact.environments.browser.secrets import Veil
from exact.environments.browser.shared import Common
from exact.environments.browser.task_config import launched_alike, of_task
from exact.environments.sites.accounts import Leased, Login
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.safety import origin, origins, target_refusal
from exact.task import Outcome, Score, Task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Page

Evaluator = Callable[["Page", Outcome], Awaitable[Score]]
_VERDICT = 600.0
"""Seconds in which an evaluator has to give its verdict: it may open pages, and ask models that are tried again."""
_SOON = 500
"""Milliseconds within which a timer that an event handler sets is waited for."""
_DRAGS = ("drag", "drag_at")


class BrowserEnvironment:
    """One environment in a browser context of its own. Made by BrowserFactory."""

    def __init__(
        self,
        browser: Browser,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        isolated: bool,
        simulation: bool,
        evaluator: Evaluator | None,
        common: Common | None = None,
        login: Leased | None = None,
    ) -> None:
        """`common`: of environments that are opened together. `login`: the account that this environment has, if they lease some."""
        self._browser, self._setup, self._base, self._evaluator = browser, setup, config, evaluator
        self._config = config
        """That of the task."""
        self._isolated, self._simulation = isolated, simulation
        common = common or Common.of(config)
        self._log_in, self._login = common.log_in, login
        self._veil, self._window = Veil(self._logins), Window()
        self._observer = Observer(common.masks, common.names, self._window, self._veil)
        self._clock = Clock(config.clock) if config.clock else None
        self._context: BrowserContext | None = None
        self._context_id = ""
        self._ward = Ward((), writes=False, frames=self._window)
        self._dialogs = Dialogs("accept" if setup.one_page else config.dialogs)
        self._downloads = self._new_downloads()
        self._clipboard: Clipboard | None = None
        self._trace = Trace()
        self._files: dict[str, Path] = {}
        self._behind: Sequence[str] = ()
        """Of a page that was restored: addresses to which going back leads, the next one last."""
        self._task: Task | None = None
        self._seen: Observation | None = None
        """The last observation."""
        self._terminated = True
        self._patience = Patience(lambda: self._config.settle_seconds)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            fidelity="replay",
            isolated=self._isolated,
            screenshots=self._config.screenshots,
            evaluates=self._evaluator is not None,
        )

    @property
    def actions(self) -> ActionSpace:
        return PAGE_ACTIONS if self._setup.one_page else BROWSER_ACTIONS

    @property
    def page(self) -> Page:
        """The present page, for evaluators. Raises EnvironmentFailure before the first reset."""
        return self._tab.page

    async def reset(self, task: Task) -> Observation:
        """The task's start, in a browser context that knows nothing of before: cookies, storage and scripts are gone."""
        self._observer.mask_for(task)
        if self._config.learn_masks and self._observer.masks.begin(task):
            await self._learn(task)
        return await self._reset(task)

    async def _learn(self, task: Task) -> None:
        """See the start three times, the last two without a reset between them: what differs is volatile."""
        await self._reset(task)
        first = self._observer.looks
        await self._reset(task)
        self._observer.masks.learn(first, second := self._observer.looks)
        async with self._environment("look"):
            await self._look(run=False)
        self._observer.masks.learn(second, self._observer.looks)

    async def _reset(self, task: Task) -> Observation:
        self._terminated = True
        async with self._environment("reset"):
            await self._anew(task)
            await self._prepare(task)
            await self._open_tabs(task)
            await self._arrive_logged_in(task)
            if not self._dialogs.is_asked:
                await self._set_out(task)
            _, observation, terminated = await self._look()
        if terminated:
            raise EnvironmentFailure(f"{task.id} is over before it begins: check the page's set-up")
        self._ward.take()
        self._terminated = False
        return observation

    @property
    def _obstacle(self) -> str:
        """What stands in the way of any snapshot; empty if nothing does."""
        if self._terminated or self._task is None or not self._window.tabs:
            return "no episode is under way"
        if self._dialogs.is_open:
            return "a dialog is open"
        if self._window.is_opening:
            return "a page is opening"
        if any(tab.traffic.navigating for tab in self._window.tabs):
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
                raise EnvironmentFailure(f"nobody is logged in at {self._tab.page.url} after the log-in script: check browser.login")

    async def _forget_ways(self) -> None:
        """Leave no trace of how somebody logged in: neither in the history nor in the ids."""
        await self._tab.page.goto("about:blank")
        await self._tab.cdp.send("Page.resetNavigationHistory")
        self._observer.ids = Ids()

    @property
    def _session(self) -> Session:
        assert self._context is not None and self._task is not None

        async def look() -> Observation:
            self._patience.renew()
            return (await self._look())[1]

        return Session(
            self._config.login, self._who, self._context, lambda: self._tab, self._ward, self._task.start,
            self.actions, self._start, self._do, look,
        )  # fmt: skip

    @property
    def _who(self) -> str:
        """Name of the account that this environment has leased; empty if none."""
        return self._login.now.name if self._login else ""

    async def _set_out(self, task: Task) -> None:
        """What the set-up wants done on the start page."""
        if self._setup.begin:
            await self._begin(task)
        if self._setup.instruction:
            self._observer.instruction = self._veil.hide(
                str(await self._tab.evaluate(self._setup.instruction, page_environment=True) or "")
            )

    async def _anew(self, task: Task, now: int = START) -> None:
        """In a context that knows nothing of before, for a task. `now`: what its clock shows, if it is held."""
        before, self._config, self._task = self._config, of_task(self._base, task), task
        if not launched_alike(self._config, self._base):
            raise UsageError(f"task {task.id} wants a browser of its own: open its environments with its configuration")
        if before != self._config or self._config.permissions or self._config.login.certificate or not await self._renew():
            await self._leave()
            await self._enter(now)
        self._task, self._observer.ids, self._observer.instruction, self._behind = task, Ids(), "", ()
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
        self._browser.guard.admit(self._context_id, Ward(self._ward.allowed, writes=True, frames=self._window))
        try:
            with self._patience.unlimited():
                await self._setup.prepare(Beginning(task, self._context, self._tab.page, self._simulation))
            await self._tab.page.goto("about:blank")
            await self._tab.cdp.send("Page.resetNavigationHistory")
        finally:
            self._browser.guard.admit(self._context_id, self._ward)

    async def _open_tabs(self, task: Task) -> None:
        """The task's further tabs, below that of its start page. Raises EnvironmentFailure."""
        assert self._context is not None
        for url in tabs_of(task):
            await self._start(url)
            await self._context.new_page()
            await self._ward.no_popups()
            await self._window.all_open()

    async def step(self, action: Action) -> Transition:
        """Carry out one action and settle; see Environment."""
        if self._terminated:
            raise ActionError("the episode is over: reset first")
        if action.name not in self.actions.verbs:
            raise ActionError(f"unknown action {action}: valid: {', '.join(self.actions.verbs)}")
        if self.actions.is_final(action):
            self._terminated = True
            return Transition(observation=None, terminated=True)
        before, halfway = self._seen, ""
        async with self._environment(f"step {action.key}"):
            try:
                await self._do(action)
            except Halfway as error:
                halfway = self._veil.hide(str(error))
            except ActionError as error:
                raise ActionError(self._veil.hide(str(error))) from error.__cause__
            settled, observation, self._terminated = await self._look()
            if not self._terminated:
                self._log_in.check(self._session, observation.url)
        effects = tuple(self._veil.effect(effect) for effect in self._ward.take())
        same = settled and not (self._terminated or self._clock) and before is not None and before.fingerprint == observation.fingerprint
        if halfway and same and not effects:
            raise ActionError(halfway)
        info = self._unsettled(settled)
        if halfway:
            info["refused"] = halfway
        if same and before and action.name in _DRAGS and (found := moved(before.elements, observation.elements)):
            info["moved"] = found
        if refused := self._downloads.refused:
            self._downloads.refused, refused = "", self._veil.hide(refused)
            if same and len(effects) == 1:
                raise ActionError(refused)  # nothing else came of it
            info["download"] = refused
        return Transition(
            observation=None if self._terminated else observation,
            terminated=self._terminated,
            effects=effects,
            info=info,
        )

    def _unsettled(self, settled: bool) -> dict[str, str]:
        """What is to be said of a page that did not come to rest."""
        if url := self._window.unanswered():
            return {"unsettled": f"{self._veil.hide(url)} did not answer for {self._config.answer_seconds:g} s: its loading was stopped"}
        return {} if settled else {"unsettled": f"still changing after {self._config.settle_seconds:g} s"}

    async def _do(self, action: Action) -> None:
        """Carry out one action, as far as the next dialog. A tab that closes itself under it takes the rest of it along."""
        from playwright.async_api import Error

        for tab in self._window.tabs:
            tab.traffic.mark()
        self._observer.way = f"{self._seen.fingerprint if self._seen else ''} {action.key}"
        if self._dialogs.is_asked:
            await self._dialogs.act(action, self._veil.fill, self._veil.hide)
            return
        tab = self._tab
        body = Body(
            tab=tab, ids=self._observer.ids, width=self._config.width, height=self._config.height, others=self._window.others,
            focus=self._window.focus, refusal=self._refusal, behind=self._back, fill=self._veil.fill, files=self._files,
            clipboard=self._clipboard,
        )  # fmt: skip
        try:
            await self._dialogs.race(act(body, action), goes_on=True)
        except Error as error:
            if not await self._window.goes_on(tab, error):
                raise

    async def snapshot(self) -> Snapshot:
        raise EnvironmentFailure("this browser has no snapshots: return by reset and replay")

    async def restore(self, snapshot: Snapshot) -> Observation:
        raise EnvironmentFailure("this browser has no snapshots: return by reset and replay")

    async def evaluate(self, outcome: Outcome) -> Score:
        """The benchmark's verdict on the present page; the page is not reset by it."""
        if self._evaluator is None:
            raise UsageError("this environment has no evaluator: its outcomes are judged, not scored")
        async with self._environment("evaluate"):
            with self._patience.unlimited():
                try:
                    async with asyncio.timeout(_VERDICT) as limit:
                        return await self._evaluator(self.page, msgspec.structs.replace(outcome, task=self._task))
                except TimeoutError as error:
                    if limit.expired():
                        raise EnvironmentFailure(f"evaluate: there was no verdict within {_VERDICT:g} s") from error
                    raise

    async def close(self) -> None:
        self._terminated = True
        await self._leave()

    @property
    def _tab(self) -> Tab:
        return self._window.present

    def _new_downloads(self, had: tuple[str, ...] = ()) -> Downloads:
        return Downloads(self._config.download_bytes, self._browser.store, lambda effect: self._ward.record(effect), had)

    def _back(self) -> str:
        if len(self._window.tabs) > 1 or not self._behind:
            return ""
        *self._behind, url = self._behind
        return url

    def _refusal(self, url: str) -> str:
        return target_refusal(url, self._ward.allowed)

    def _ward_of(self, task: Task) -> Ward:
        allowed = origins(task.start, *task.origins, *self._config.allow_origins)
        explores = {"rollback": self._isolated, "observe": False, "free": True}[self._config.speculation]
        only = self._undone if self._simulation and self._config.speculation == "rollback" else None
        ward = Ward(allowed, writes=explores or not self._simulation, frames=self._window, only=only)
        ward.veil = self._veil.hide
        ward.own, ward.headers = origins(task.start, *task.origins), self._log_in.headers(self._config.login)
        ward.most = self._config.download_bytes
        return ward

    def _logins(self) -> tuple[Login, ...]:
        """Whose secrets are known by name only."""
        return (*((self._login.now,) if self._login else ()), *self._log_in.logins(self._config.login))

    @property
    def _undone(self) -> tuple[str, ...] | None:
        """Origins at which an isolated environment's writes are undone; None: all."""
        return None

    async def _renew(self) -> bool:
        """Empty the context instead of opening another one, three times as fast. False where it is not certain that nothing stays.

        Only in an isolated environment, whose servers keep nothing that a cache could hold on to, and only if the one page never left its
        origin.
        """
        from playwright.async_api import Error

        if self._dialogs.is_open:  # its page can be asked nothing
            return False
        window = self._window
        if not self._isolated or self._clock or self._patience.broken or window.opened != 1 or len(window.tabs) != 1 or window.is_opening:
            return False
        try:
            with self._dialogs.unasked():
                return await self._tab.renew()
        except (Error, EnvironmentFailure):
            return False

    async def _enter(self, now: int = START) -> None:
        """Open a context and its first tab."""
        self._patience.broken, self._window.opened = "", 0
        page = await self._connect(now)
        self._context_id = await self._adopt(page)
        await self._browser.keep_downloads(self._context_id)

    @property
    def _origins(self) -> tuple[str, ...]:
        """Those of the task."""
        return origins(self._task.start, *self._task.origins) if self._task else ()

    async def _connect(self, now: int = START) -> Page:
        """Enter the browser; popups are looked at from now on. Gives the first page. `now`: what its clock shows, if it is held."""
        timers = () if self._clock else (script_call("page/timers", _SOON),)  # held timers are not waited for
        shadows = script_call("page/shadows", redaction.rules(self._config.mask))
        self._context, page = await self._browser.enter(
            self._config, (*timers, script_call("page/fetches"), shadows, *self._setup.init_scripts), self._origins
        )
        if not self._simulation:
            await self._trace.begin(self._context, self._config.traces, self._task.id if self._task else "")
        if self._clock:
            await self._clock.hold(self._context, now)
        if self._task is not None and (place := place_of(self._task)):
            await self._context.set_geolocation({"latitude": place[0], "longitude": place[1]})
            await self._context.grant_permissions(["geolocation"])
        self._context.set_default_timeout(PATIENCE * 1000)
        self._context.on("page", self._popup)
        return page

    async def _adopt(self, page: Page) -> str:
        """A page that was opened is the present one from now on. Gives the CDP id of its browser context."""
        tab, target = await self._watch(page, self._window.opened)
        self._window.opened += 1
        self._window.add(tab)
        return target.context

    async def _watch(self, page: Page, index: int = 0) -> tuple[Tab, Target]:
        """Look at a page from now on. `index`: which of the episode's pages it is."""
        page.on("dialog", self._dialog)
        page.on("crash", lambda _: self._patience.lose("the page crashed"))
        tab = Tab(page, await self._browser.attach(page), index, self._config.answer_seconds)
        tab.cdp.on("Page.downloadWillBegin", lambda event: self._downloads.begin(event))
        tab.cdp.on("Page.downloadProgress", lambda event: self._downloads.progress(event))
        dressed, opened = self._browser.dress(tab.cdp, self._config), tab.open(self._setup, redaction.rules(self._config.mask))
        return tab, (await asyncio.gather(dressed, opened))[1]

    def _popup(self, page: Page) -> None:
        self._ward.record(SideEffect(kind="tab", url=page.url))
        self._window.open(self._adopt_popup(page))

    async def _adopt_popup(self, page: Page) -> None:
        from playwright.async_api import Error

        with suppress(Error):  # closed again before it was looked at
            await self._adopt(page)
            self._ward.forget(self._tab.main_frame)

    async def _dialog(self, dialog: Dialog) -> None:
        url = dialog.page.url if dialog.page else ""
        self._ward.record(SideEffect(kind="dialog", method=dialog.type, url=url, detail=dialog.message))
        await self._dialogs.opened(dialog)

    async def _start(self, url: str) -> None:
        from playwright.async_api import Error

        try:
            self._observer.way = url
            self._patience.renew()
            answer = await self._dialogs.race(self._tab.page.goto(url or "about:blank", wait_until="load"), goes_on=True)
        except Error as error:
            if self._window.unanswered():
                seconds = self._config.answer_seconds
                raise EnvironmentFailure(f"the start page {url} did not answer for {seconds:g} s: raise browser.answer_seconds") from error
            blocked = [effect for effect in self._ward.take() if effect.kind == "blocked"]
            if blocked:
                way_out = f"allow {origin(blocked[0].url)} with --allow-origin if it belongs to the task"
                raise EnvironmentFailure(f"the start page {url} leads to {blocked[0].url}: {way_out}") from error
            if "net::ERR_" in str(error):
                raise EnvironmentFailure(self._unopened(url, _why(error).removeprefix("Page.goto: ").partition(" at ")[0])) from error
            raise
        if answer is not None and answer.status >= 500:  # what would be done on it is no attempt at the task
            raise EnvironmentFailure(self._unopened(url, f"status {answer.status}"))
        await self._dialogs.race(self._settle())

    def _unopened(self, url: str, why: str) -> str:
        return f"the start page {url} cannot be opened ({why}){self._setup.way_out(url) if self._setup.way_out else ''}"

    async def _begin(self, task: Task) -> None:
        began = self._tab.evaluate(f"({self._setup.begin})({task.seed})", page_environment=True)
        await (self._clock.under(began) if self._clock else began)

    async def _settle(self, *, run: bool = True) -> bool:
        """Wait until the page is quiet. False if it still was not at the cap. `run`: whether a clock that is held runs its step."""
        try:
            async with asyncio.timeout(self._config.settle_seconds):
                await self._quiet()
                if self._clock and run:
                    await self._clock.run(self._window.tabs)
                    await self._quiet()
        except TimeoutError:
            return False
        return True

    async def _quiet(self) -> None:
        from playwright.async_api import Error

        while True:
            await self._ward.no_popups()
            await self._window.all_open()
            tab = self._tab
            try:
                await tab.quiet()
            except Error as error:
                if not await self._window.goes_on(tab, error):
                    raise
            await self._downloads.done()
            if not self._window.is_opening and tab is self._tab:
                return

    async def _look(self, *, run: bool = True, expected: str = "") -> tuple[bool, Observation, bool]:
        """Settle and observe: whether the page became quiet, what is seen, and whether the episode is over.

        A page that has the `expected` fingerprint already need not settle.
        """
        found = None if self._dialogs.is_asked else await self._dialogs.race(self._look_at_page(run, expected))
        settled, observation, over = found or (True, self._observer.dialog(self._dialogs, self._downloads), False)
        self._seen = observation
        return settled, observation, over

    async def _look_at_page(self, run: bool, expected: str) -> tuple[bool, Observation, bool]:
        from playwright.async_api import Error

        settled = bool(expected)
        while True:
            settled, tab = settled or await self._settle(run=run), self._tab
            try:
                observation, over = await self._observer.page(self._config, self._downloads, self._setup.terminated)
            except Error as error:
                if not (tab.left(error) or await self._window.goes_on(tab, error)):
                    raise
            else:
                if not expected or observation.fingerprint == expected:
                    return settled, observation, over
            settled, expected = False, ""

    async def _leave(self) -> None:
        """Let go of the context. Never raises."""
        from playwright.async_api import Error

        context, self._context = self._context, None
        self._terminated = True
        self._browser.guard.dismiss(self._context_id)
        self._window.clear()
        self._dialogs.clear()
        if self._clipboard:
            self._clipboard.close()
        if context is not None:
            try:
                await self._trace.end(self._veil.hide)
            finally:
                with suppress(Error):
                    await self._browser.leave(context)

    @asynccontextmanager
    async def _environment(self, what: str) -> AsyncIterator[None]:
        """The boundary at which a browser's failures become EnvironmentFailure."""
        from playwright.async_api import Error

        try:
            async with self._patience.limited():
                yield
        except TimeoutError as error:
            self._terminated = True
            raise EnvironmentFailure(f"{what}: {error}") from error
        except Error as error:
            self._terminated = True
            why = self._patience.broken or _why(error)
            if not self._browser.playwright.is_connected():
                why = "the browser is gone: launch it again"
            raise EnvironmentFailure(f"{what}: {why}") from error


def _why(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
