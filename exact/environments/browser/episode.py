"""An episode: its browser context, gate, log-in, start page and trace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from exact.action import Action, ActionSpace
from exact.config import BrowserConfig, LoginConfig
from exact.environments.base import Person, PersonQuestion, Snapshot
from exact.environments.browser.act.grammar import ASK_USER, BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.browser.act.upload import declared_files
from exact.environments.browser.backend import Backend
from exact.environments.browser.interaction import Interaction, Observed, cookies_of
from exact.environments.browser.launch.options import browser_config_of, same_launch, with_device
from exact.environments.browser.launch.trace import PlaywrightTrace
from exact.environments.browser.login import LoginSession
from exact.environments.browser.network.confirmation import Confirmations
from exact.environments.browser.network.deny import DenyList
from exact.environments.browser.network.flow import SecretFlow
from exact.environments.browser.network.gate import Gate, writable
from exact.environments.browser.network.message import StoredCookie
from exact.environments.browser.network.rules import PolicyRules
from exact.environments.browser.observe import redaction
from exact.environments.browser.observer import Observer
from exact.environments.browser.page.cdp import script_call
from exact.environments.browser.page.ids import Ids
from exact.environments.browser.page.setup import Beginning, PageSetup, geolocation_of, tabs_of
from exact.environments.browser.page.timeouts import PAGE_TIMEOUT, START
from exact.environments.browser.presume.presume import WritePresumption
from exact.environments.browser.secrets import SecretMasking
from exact.environments.browser.shared import SharedState
from exact.environments.browser.snapshot.state import Memo, OpenTab, SavedPage, load_page, move_pointer, restore_fields
from exact.environments.browser.tabs import Tabs
from exact.environments.sites.accounts import AccountLease
from exact.environments.sites.lease import reset_is_due
from exact.environments.sites.site import Site
from exact.errors import EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.origins import origins
from exact.task import Task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

_SOON, _TICK = 500, 50
"""Milliseconds within which a timer that an event handler sets is waited for, and between the steps of a change that counts as an
animation."""
_PARSED = """document.readyState === 'loading' &&
  new Promise(done => document.addEventListener('DOMContentLoaded', () => done(true), {once: true}))"""
"""Script that waits until the document's own scripts have run, those that are loaded late apart."""


class BrowserEpisode:
    """The episodes of one environment, one after another: their preparation, and the parts of the present one.

    `tabs`, `observer`, `interaction` and `secrets` live as long as the environment; every episode begins them anew. Each method may raise
    EnvironmentFailure, and UsageError if the configuration does not fit the task.
    """

    def __init__(
        self,
        backend: Backend,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        simulation: bool,
        shared: SharedState | None = None,
        account: AccountLease | None = None,
        site: Site | None = None,
    ) -> None:
        """Make the parts of the episodes in the browser of a backend.

        `shared`: the state that environments opened together share. `account`: the leased log-in, if any. `site`: the site that is reset
        when an episode begins, if that is due.
        """
        shared = shared or SharedState.of(config)
        self.backend, self.setup, self.simulation, self._account = backend, setup, simulation, account
        self._base, self._authenticator, self._harmless, self._pace = config, shared.authenticator, shared.harmless, shared.pace
        self._site = site
        self.tabs = Tabs(backend, setup, config, shared.background)
        self.secrets = SecretMasking(shared.authenticator, account, config.login)
        self.observer = Observer(shared.masks, shared.ids, self.tabs.window, self.secrets, shared.pictures)
        self.interaction = Interaction(self.tabs, self.observer, self.secrets)
        self.presumption = WritePresumption(shared.steps)
        """Presumes whether actions write."""
        self.task: Task | None = None
        """The task of the episode; None before the first one."""
        self._context: BrowserContext | None = None
        self._context_id = ""
        """CDP id of the browser context."""
        self._person: Person | None = None
        self._trace = PlaywrightTrace()

    @property
    def actions(self) -> ActionSpace:
        """The actions that an agent may take."""
        space = PAGE_ACTIONS if self.setup.one_page else BROWSER_ACTIONS
        return ActionSpace((*space.verbs.values(), ASK_USER)) if self.tabs.config.ask_user else space

    def attend(self, person: Person) -> None:
        """Ask a person from now on, as the configuration provides."""
        self._person = person

    async def answer(self, question: str) -> str:
        """Return the answer of the person who watches; empty if there is none."""
        return await self._person.answer(PersonQuestion(kind="question", text=question)) or "" if self._person else ""

    async def prepare(self, task: Task) -> Observed:
        """Bring the environment to the start of a task: the right page, logged in, with the page set-up's scripts run. Observe it."""
        if not self.simulation:
            self._pace.begin()
        await self._begin(task)
        await self._run_prepare(task)
        await self._open_tabs(task)
        await self._open_start_page(task)
        if not self.tabs.dialogs.is_asked:
            await self._begin_page(task)
        return await self._observe_opened()

    async def _observe_opened(self) -> Observed:
        """Observe a page that was opened just now, once it is not blank or has been waited for long enough."""
        self.observer.note = await self.tabs.show_content()
        return await self.interaction.observe()

    async def begin_again(self, task: Task) -> Observed:
        """Begin an episode in the page that is open, if the page set-up's `begin` function can do that. Observe it."""
        self._enter(task, self.tabs.config)
        self._apply(self.tabs.gate)
        await self._begin_page(task)
        return await self.interaction.observe()

    async def resume(self, memo: Memo) -> Observed:
        """Continue the episode of a snapshot. A page is loaded; a browser that was restored is connected to. Observe it."""
        return await (self._load(memo, memo.page) if memo.page else self._reconnect(memo))

    async def _begin(self, task: Task, memo: Memo | None = None, now: int = START) -> None:
        """Begin an episode in an empty browser context.

        `memo`: the snapshot whose page is loaded then. `now`: time of a paused clock, in milliseconds since 1970.
        """
        tabs = self.tabs
        if self._site and reset_is_due(self._site):
            with tabs.timeouts.unlimited():
                await self._site.reset.call("reset", base=self._site.base)
        config = self._config_of(task)
        if not same_launch(config, self._base):
            raise UsageError(f"task {task.id} wants a browser of its own: open its environments with its configuration")
        alike = config == tabs.config and not (config.permissions or config.login.certificate)
        kept = alike and self.backend.keeps_context and await tabs.try_empty()  # opening another context takes three times as long
        if not kept:
            await self.leave()
            with tabs.timeouts.unlimited():
                await self.backend.renew()
        self._enter(task, config, memo)
        if not kept:
            self._context_id = (await tabs.adopt(await self.connect(now))).context
            await self.backend.browser.accept_downloads(self._context_id)
        self._apply(tabs.gate)

    def _config_of(self, task: Task) -> BrowserConfig:
        return with_device(browser_config_of(self._base, task), self.backend.browser.devices)

    def _enter(self, task: Task, config: BrowserConfig, memo: Memo | None = None) -> None:
        """Begin the parts of an episode, its pages apart. `memo`: the snapshot that it continues, if any."""
        self.task = task
        self.secrets.begin(task, config.login)
        gate, page = self._new_gate(task, config, memo.flow if memo else None), memo.page if memo else None
        self.tabs.begin(config, gate, memo.downloads if memo else (), page.history if page else ())
        ids, drawn = (memo.ids.copy(), memo.drawn) if memo and page is None else (Ids(), None)
        hidden = memo.hidden if memo and page is None else None
        self.observer.begin(task, ids, memo.instruction if memo else "", drawn, hidden, gate.facts.flow)
        self.interaction.begin(declared_files(task), None if self.setup.one_page else self.backend.browser.clipboard())

    async def _load(self, memo: Memo, page: SavedPage) -> Observed:
        """Load the page of a snapshot into an empty context and bring it into its state."""
        tabs, task = self.tabs, memo.task
        begins = bool(self.setup.begin) and urldefrag(page.content.url).url == urldefrag(task.start).url
        now = memo.now - (1 + begins) * tabs.config.clock  # a paused clock runs for that long until the page is restored
        await self._begin(task, memo, now)
        assert self._context is not None
        loading = load_page(tabs.present, self._context, page.content, lambda: tabs.settle(run=False))
        await tabs.dialogs.race(loading)
        await tabs.dialogs.race(tabs.settle())
        if page.elements and not begins:  # else it was blank
            await tabs.show_content()
        if tabs.dialogs.is_asked:
            raise EnvironmentFailure("restore: the page opens a dialog as it loads: return by another route")
        if begins:
            await self._run_begin(task)
            await tabs.settle()
        observe, tab, flow = self.interaction.observe, tabs.present, tabs.gate.facts.flow
        flow.places = {(tab.index, tab.traffic.documents, -number): path for number, path in enumerate(flow.places.values(), 1)}
        changed = await restore_fields(tab, page.content)
        observed = await observe(run=False)
        if observed.observation.fingerprint != memo.fingerprint and not observed.terminated:  # the changes may have to be a user's
            await restore_fields(tab, page.content, changed)
            await move_pointer(tab, page.content)
            observed = await observe(run=False)
        if observed.terminated:
            return observed
        self.observer.reuse_ids(memo.ids, page.elements, observed.observation.elements)
        return await observe(run=False)

    async def _reconnect(self, memo: Memo) -> Observed:
        """Restore the state of the old connection before the first command is sent to a restored browser, then observe."""
        tabs, browser = self.tabs, self.backend.browser
        self._enter(memo.task, self._config_of(memo.task), memo)
        tabs.gate.begin_action(resumed=True)
        self._context_id = browser.context_id
        browser.interceptor.register(self._context_id, tabs.gate)
        browser.interceptor.pause()
        _, pages = await asyncio.gather(self.connect(memo.now), tabs.watch_all(browser.pages))
        for target in pages:
            tabs.gate.forget_popup(target)  # these are not popups
        with tabs.timeouts.unlimited():
            await self.backend.resume(memo)
        self._apply(tabs.gate)
        browser.interceptor.resume()
        tabs.reopen(memo, pages)
        return await self.interaction.observe(run=False, expected=memo.fingerprint)

    async def snapshot(self) -> Snapshot:
        """Take a snapshot of the present state."""
        seen, tabs, observer = self.interaction.seen, self.tabs, self.observer
        assert self.task is not None and seen is not None
        opened = tuple(OpenTab(tab.target.id, tab.index, tab.traffic.documents) for tab in tabs.window.tabs)
        memo = Memo(
            self.task, seen.fingerprint, observer.instruction, observer.ids.copy(), tabs.window.opened, opened, observer.drawn,
            now=tabs.clock.now if tabs.clock else 0, downloads=tabs.downloads.completed, account=self._account_name,
            flow=tabs.gate.facts.flow.copy(), hidden=observer.hidden,
        )  # fmt: skip
        return await self.backend.take(tabs, seen, memo)

    def recall(self, snapshot: Snapshot) -> Memo:
        """Return the facts about a snapshot, and change to its account."""
        memo = self.backend.memo(snapshot)
        if self._account:
            self._account.change(memo.account)
        return memo

    async def connect(self, now: int = START) -> Page:
        """Enter the browser and return its first page, which is not a tab yet; popups are adopted from now on.

        `now`: time of a paused clock, in milliseconds since 1970.
        """
        tabs, task = self.tabs, self.task
        config, browser = tabs.config, self.backend.browser
        timers = () if tabs.clock else (script_call("page/timers", _SOON, _TICK),)  # timers of a paused clock are not waited for
        shadows = script_call("page/shadows", redaction.rules(config.mask))
        scripts = (*timers, script_call("page/name"), script_call("page/fetches"), shadows, *self.setup.init_scripts)
        task_origins = origins(task.start, *task.origins) if task else ()
        self._context, page = await browser.open_context(config, scripts, task_origins)
        if not self.simulation:
            await self._trace.begin(self._context, config.traces, task.id if task else "")
        if tabs.clock:
            await tabs.clock.pause(self._context, now)
        if task and (place := geolocation_of(task)):
            await self._context.set_geolocation({"latitude": place[0], "longitude": place[1]})
            await self._context.grant_permissions(["geolocation"])
        self._context.set_default_timeout(PAGE_TIMEOUT * 1000)
        self._context.on("page", tabs.adopt_popup)
        return page

    async def _begin_page(self, task: Task) -> None:
        """Call the page set-up's `begin` function, and read the goal that only the page knows."""
        if self.setup.begin:
            await self._run_begin(task)
        if self.setup.instruction:
            instruction = await self.tabs.present.evaluate(self.setup.instruction, in_page=True)
            self.observer.instruction = self.secrets.mask(str(instruction or ""))

    async def _run_begin(self, task: Task) -> None:
        """Call the page set-up's `begin` function in the present page, once the page's own scripts have run."""
        await self.tabs.present.evaluate(_PARSED, in_page=True)
        call = self.tabs.present.evaluate(f"({self.setup.begin})({task.seed})", in_page=True)
        await (self.tabs.clock.run_while(call) if self.tabs.clock else call)

    async def login_has_expired(self, url: str) -> bool:
        """Return whether the page at `url`, to which a step led, shows that the log-in has expired."""
        if self.tabs.config.login == LoginConfig() or self.tabs.dialogs.is_asked:
            return False
        return await self._authenticator.has_expired(self._session, url)

    async def renew_login(self, url: str, back: str) -> None:
        """Log in again and open the page at `back`. `url`: page on which the expiry showed. Raises EnvironmentFailure."""
        await self._authenticator.renew(self._session, url)
        await self._clear_history()
        await self._open(back)

    async def leave(self) -> None:
        """Close the browser context and write its trace. Never raises."""
        from playwright.async_api import Error

        context, self._context = self._context, None
        browser = self.backend.browser
        browser.interceptor.unregister(self._context_id)
        self.tabs.window.leave()
        self.interaction.leave()
        if context is not None:
            try:
                await self._trace.end(self.secrets.mask, pictures=lambda: not self.secrets.scrubber)
            finally:
                with suppress(Error):
                    await browser.close_context(context)

    async def _run_prepare(self, task: Task) -> None:
        """Call the page set-up's `prepare`. It is not a step of an agent, so writes are sent and no side effects are reported."""
        if self.setup.prepare is None:
            return
        assert self._context is not None
        tabs = self.tabs
        rules = tabs.gate.rules
        preparing = Gate(PolicyRules(allowed=rules.allowed, writable=rules.allowed, deny=rules.deny), tabs.window)
        self._apply(preparing)
        try:
            with tabs.timeouts.unlimited():
                await self.setup.prepare(Beginning(task, self._context, tabs.present.page, self.simulation))
            await self._clear_history()
        finally:
            self._apply(tabs.gate)

    def _apply(self, gate: Gate) -> None:
        """Let a gate decide from now on about the requests and connections of the context."""
        assert self._context is not None
        browser = self.backend.browser
        browser.interceptor.register(self._context_id, gate)
        browser.admit(self._context, gate)

    async def _open_tabs(self, task: Task) -> None:
        """Open the task's further tabs, before the tab of its start page."""
        assert self._context is not None
        for url in tabs_of(task):
            await self._open(url)
            await self._context.new_page()
            await self.tabs.gate.no_popups()
            await self.tabs.window.all_open()

    async def _open_start_page(self, task: Task) -> None:
        """Log in if the task wants that, then open its start page."""
        if await self._authenticator.begin(self._session):
            await self._forget_login_pages()
        await self._open(task.start)
        tabs = self.tabs
        if not tabs.dialogs.is_asked and await self._authenticator.renew_at_start(self._session, tabs.present.url):
            await self._forget_login_pages()
            await self._open(task.start)
            if await self._authenticator.renew_at_start(self._session, url := tabs.present.url):
                raise EnvironmentFailure(f"nobody is logged in at {url} after the log-in script: check browser.login")

    async def _forget_login_pages(self) -> None:
        """Remove the traces of a log-in from the history and from the ids of elements."""
        await self._clear_history()
        self.observer.ids = Ids()

    async def _clear_history(self) -> None:
        await self.tabs.present.page.goto("about:blank")
        await self.tabs.present.cdp.send("Page.resetNavigationHistory")

    async def _act_in_login(self, action: Action) -> None:
        """Take an action of a log-in script."""
        await self.interaction.act(action)

    async def _open(self, url: str) -> None:
        self.observer.last_step = url
        await self.tabs.open(url)

    def _new_gate(self, task: Task, config: BrowserConfig, flow: SecretFlow | None) -> Gate:
        """Return the gate of an episode: a simulation's writes are sent only if they are undone or `speculation` allows it.

        `flow`: where typed secrets had got to in the snapshot that it continues, if any.
        """
        backend, own, secrets = self.backend, origins(task.start, *task.origins), self.secrets
        explores = not config.never_writes and {"rollback": backend.isolated, "observe": False, "free": True}[config.speculation]
        undone = backend.isolated and backend.undone_origins is None
        only = backend.undone_origins if self.simulation and config.speculation == "rollback" else None
        allowed = origins(task.start, *task.origins, *config.allow_origins)
        rules = PolicyRules(
            allowed=allowed, writable=writable(allowed, writes=explores or not self.simulation, only=only), own=own,
            headers=self._authenticator.headers(config.login), deny=DenyList(config.deny), harmless=self._harmless,
            learns=not backend.isolated, presumes=config.never_writes or (config.speculation == "rollback" and not undone),
            home=secrets.home(), guarded=secrets.guarded(), spelled=secrets.spelled,
            is_inside=backend.is_inside, document_seconds=config.answer_seconds,
            document_bytes=config.download_bytes, body_bytes=config.document_bytes, counts_pages=self.simulation,
        )  # fmt: skip
        needs_yes = config.confirm != "never" or (getattr(self._person, "confirms_writes", False) and not backend.isolated)
        ask = self._ask if needs_yes and not self.simulation else None
        return Gate(
            rules, self.tabs.window, flow=flow.copy() if flow else None, pace=self._pace, mask=secrets.mask, cookies=self._cookies,
            confirmations=Confirmations(ask, self.tabs.timeouts.unlimited, spares=config.confirm == "never"), readmit=self._readmit,
        )  # fmt: skip

    async def _cookies(self, url: str) -> Sequence[StoredCookie]:
        """Return the cookies that a request to an address carries."""
        return await cookies_of(self._context, url) if self._context else ()

    def _readmit(self) -> None:
        """Let the context keep only the connections that its gate still admits."""
        if self._context is not None:
            self.backend.browser.admit(self._context, self.tabs.gate)

    async def _ask(self, question: PersonQuestion) -> str:
        """Ask the person who watches whether a request may be sent. Return the reason if it may not; empty if it may."""
        return await self._person.allows(question) if self._person else "nobody was there to confirm it"

    @property
    def _account_name(self) -> str:
        """Name of the leased account; empty if there is none."""
        return self._account.login.name if self._account else ""

    @property
    def _session(self) -> LoginSession:
        assert self._context is not None and self.task is not None
        tabs = self.tabs

        async def look() -> Observation:
            tabs.timeouts.renew()
            return (await self.interaction.observe()).observation

        return LoginSession(
            tabs.config.login, self._account_name, self._context, lambda: tabs.present, tabs.gate, self.task.start,
            self.actions, self._open, self._act_in_login, look, tabs.config.start_seconds, self.backend.browser.user_state,
        )  # fmt: skip
