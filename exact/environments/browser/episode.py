"""The preparation of an episode: its browser context, request policy, log-in, start page and trace."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from exact.action import Action, ActionSpace
from exact.config import BrowserConfig
from exact.environments.base import Person, PersonQuestion
from exact.environments.browser.act import upload
from exact.environments.browser.act.grammar import ASK_USER, BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.browser.hooks import EpisodeHooks
from exact.environments.browser.interaction import Interaction, cookies_of
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.launch.context import browser_config_of, same_launch, with_device
from exact.environments.browser.launch.trace import PlaywrightTrace
from exact.environments.browser.login import LoginSession
from exact.environments.browser.network.confirmation import Confirmations
from exact.environments.browser.network.deny import DenyList
from exact.environments.browser.network.flow import SecretFlow
from exact.environments.browser.network.gate import Gate, writable
from exact.environments.browser.network.message import Cookie
from exact.environments.browser.network.rules import PolicyRules
from exact.environments.browser.observe import redaction
from exact.environments.browser.observer import Observer
from exact.environments.browser.page.cdp import script_call
from exact.environments.browser.page.ids import Ids
from exact.environments.browser.page.setup import Beginning, PageSetup, geolocation_of, tabs_of
from exact.environments.browser.page.timeouts import PAGE_TIMEOUT, START
from exact.environments.browser.presume.presume import WritePresumption
from exact.environments.browser.secrets import SecretMasking
from exact.environments.browser.shared import Memo, OpenTab, SharedState
from exact.environments.browser.tabs import Tabs
from exact.environments.sites.accounts import AccountLease, Login
from exact.errors import EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.origins import origins
from exact.secrecy.values import Secret
from exact.task import Task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

_SOON, _TICK = 500, 50
"""Milliseconds within which a timer that an event handler sets is waited for, and between the steps of a change that counts as an
animation."""
_PARSED = """document.readyState === 'loading' &&
  new Promise(done => document.addEventListener('DOMContentLoaded', () => done(true), {once: true}))"""
"""Script that waits until the document's own scripts have run, those that are loaded late apart."""


class EpisodeSetup:
    """Prepares the episodes of one environment, and holds the parts of the present one.

    `tabs`, `observer` and `interaction` live as long as the environment. Each method may raise EnvironmentFailure, and UsageError if
    the configuration does not fit the task.
    """

    def __init__(
        self,
        browser: Browser,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        isolated: bool,
        simulation: bool,
        shared: SharedState,
        account: AccountLease | None,
        hooks: EpisodeHooks,
    ) -> None:
        """Make a set-up. `shared`: the state that environments opened together share. `account`: the leased log-in, if any."""
        self.setup, self.isolated, self.simulation, self.account = setup, isolated, simulation, account
        self._base, self._authenticator, self._harmless, self._hooks = config, shared.authenticator, shared.harmless, hooks
        self.tabs = Tabs(browser, setup, config, shared.background)
        self.secrets = SecretMasking(self._logins, self._login_origins, self._unfilled, lambda: self.task.instruction if self.task else "")
        self.observer = Observer(shared.masks, shared.ids, self.tabs.window, self.secrets, shared.pictures)
        self.interaction = Interaction(self.tabs, self.observer, self.secrets)
        self.task: Task | None = None
        """The task of the episode; None before the first one."""
        self.context: BrowserContext | None = None
        self.context_id = ""
        """CDP id of the browser context."""
        self._pace = shared.pace
        self.person: Person | None = None
        """The person to ask; None if there is none."""
        self.presumption = WritePresumption(shared.steps)
        """Presumes whether actions write."""
        self._trace = PlaywrightTrace()

    @property
    def actions(self) -> ActionSpace:
        """The actions that an agent may take."""
        space = PAGE_ACTIONS if self.setup.one_page else BROWSER_ACTIONS
        return ActionSpace((*space.verbs.values(), ASK_USER)) if self.config.ask_user else space

    @property
    def config(self) -> BrowserConfig:
        """The configuration with the task's statements about its browser."""
        return self.tabs.config

    @property
    def account_name(self) -> str:
        """Name of the leased account; empty if there is none."""
        return self.account.login.name if self.account else ""

    async def prepare(self, task: Task) -> None:
        """Bring the environment to the start of a task: the right page, logged in, with the page set-up's scripts run."""
        if not self.simulation:
            self._pace.begin()
        await self.begin(task)
        await self._run_prepare(task)
        await self._open_tabs(task)
        await self._open_start_page(task)
        if not self.tabs.dialogs.is_asked:
            if self.setup.begin:
                await self.run_begin(task)
            if self.setup.instruction:
                instruction = await self.tabs.present.evaluate(self.setup.instruction, in_page=True)
                self.observer.instruction = self.secrets.mask(str(instruction or ""))

    async def begin(self, task: Task, now: int = START, downloads: tuple[str, ...] = (), flow: SecretFlow | None = None) -> None:
        """Begin an episode in an empty browser context.

        `now`: time of a paused clock, in milliseconds since 1970. `downloads`: lines about the files that it had downloaded before.
        `flow`: where typed secrets had got to before.
        """
        await self._hooks.before_episode()
        tabs, before, self.task = self.tabs, self.config, task
        tabs.config = with_device(browser_config_of(self._base, task), tabs.browser.devices)
        if not same_launch(self.config, self._base):
            raise UsageError(f"task {task.id} wants a browser of its own: open its environments with its configuration")
        if before != self.config or self.config.permissions or self.config.login.certificate or not await self._try_empty():
            await self.leave()
            await self._open_context(now)
        self.observer.ids, self.observer.instruction, self.observer.drawn = Ids(), "", None
        self.begin_parts(task, downloads, flow)
        self._hooks.policy_changed(tabs.policy)
        self._apply(tabs.policy)

    def begin_parts(self, task: Task, downloads: tuple[str, ...] = (), flow: SecretFlow | None = None) -> None:
        """Replace the parts that belong to an episode besides its pages: files, downloads, dialogs, clipboard, request policy."""
        self.interaction.files = upload.declared_files(task)
        self.tabs.begin(downloads)
        if not self.setup.one_page:
            self.interaction.clipboard = self.tabs.browser.clipboard()
        self.tabs.policy = self._new_policy(task, flow.copy() if flow else None)

    def resume(self, memo: Memo, context_id: str) -> None:
        """Take over the episode of a snapshot whose browser context was restored as it was. Its pages are connected afterwards."""
        self.tabs.timeouts.broken = ""
        self.task, self.tabs.config, self.context_id = memo.task, browser_config_of(self._base, memo.task), context_id
        self.observer.ids, self.observer.instruction, self.observer.drawn = memo.ids.copy(), memo.instruction, memo.drawn
        self.observer.mask_for(memo.task)
        self.begin_parts(memo.task, memo.downloads, memo.flow)
        self.tabs.policy.begin_action(resumed=True)

    def memo(self) -> Memo:
        """Return the part of the present state that a snapshot has to store besides the browser's state."""
        seen, tabs = self.interaction.seen, self.tabs
        assert self.task is not None and seen is not None
        return Memo(
            self.task,
            seen.fingerprint,
            self.observer.instruction,
            self.observer.ids.copy(),
            tabs.window.opened,
            tuple(OpenTab(tab.target.id, tab.index, tab.traffic.documents) for tab in tabs.window.tabs),
            self.observer.drawn,
            tabs.clock.now if tabs.clock else 0,
            downloads=tabs.downloads.completed,
            account=self.account_name,
            flow=tabs.policy.facts.flow.copy(),
        )

    async def connect(self, now: int = START) -> Page:
        """Enter the browser and return its first page, which is not a tab yet; popups are adopted from now on.

        `now`: time of a paused clock, in milliseconds since 1970.
        """
        tabs, task = self.tabs, self.task
        timers = () if tabs.clock else (script_call("page/timers", _SOON, _TICK),)  # timers of a paused clock are not waited for
        shadows = script_call("page/shadows", redaction.rules(self.config.mask))
        scripts = (*timers, script_call("page/name"), script_call("page/fetches"), shadows, *self.setup.init_scripts)
        task_origins = origins(task.start, *task.origins) if task else ()
        self.context, page = await tabs.browser.open_context(self.config, scripts, task_origins)
        if not self.simulation:
            await self._trace.begin(self.context, self.config.traces, task.id if task else "")
        if tabs.clock:
            await tabs.clock.pause(self.context, now)
        if task and (place := geolocation_of(task)):
            await self.context.set_geolocation({"latitude": place[0], "longitude": place[1]})
            await self.context.grant_permissions(["geolocation"])
        self.context.set_default_timeout(PAGE_TIMEOUT * 1000)
        self.context.on("page", tabs.adopt_popup)
        return page

    async def run_begin(self, task: Task) -> None:
        """Call the page set-up's `begin` function in the present page, once the page's own scripts have run."""
        await self.tabs.present.evaluate(_PARSED, in_page=True)
        call = self.tabs.present.evaluate(f"({self.setup.begin})({task.seed})", in_page=True)
        await (self.tabs.clock.run_while(call) if self.tabs.clock else call)

    async def login_has_expired(self, url: str) -> bool:
        """Return whether the page at `url`, to which a step led, shows that the log-in has expired."""
        return not self.tabs.dialogs.is_asked and await self._authenticator.has_expired(self._session, url)

    async def renew_login(self, url: str, back: str) -> None:
        """Log in again and open the page at `back`. `url`: page on which the expiry showed. Raises EnvironmentFailure."""
        await self._authenticator.renew(self._session, url)
        await self._clear_history()
        await self._open(back)

    async def leave(self) -> None:
        """Close the browser context and write its trace. Never raises."""
        from playwright.async_api import Error

        context, self.context = self.context, None
        browser = self.tabs.browser
        browser.interceptor.unregister(self.context_id)
        self.tabs.clear()
        if self.interaction.clipboard:
            self.interaction.clipboard.close()
        if context is not None:
            try:
                await self._trace.end(self.secrets.mask, pictures=lambda: not self.secrets.scrubber)
            finally:
                with suppress(Error):
                    await browser.close_context(context)

    async def _try_empty(self) -> bool:
        """Empty the context instead of opening another one, which takes three times as long. Return False if that is not possible.

        Only in an isolated environment, whose servers keep nothing that a cache could hold on to.
        """
        return self.isolated and self._hooks.keeps_context and await self.tabs.try_empty()

    async def _open_context(self, now: int) -> None:
        await self._hooks.before_context()
        tabs = self.tabs
        tabs.timeouts.broken, tabs.window.opened = "", 0
        self.context_id = (await tabs.adopt(await self.connect(now))).context
        await tabs.browser.accept_downloads(self.context_id)
        await self._hooks.after_context()

    async def _run_prepare(self, task: Task) -> None:
        """Call the page set-up's `prepare`. It is not a step of an agent, so writes are sent and no side effects are reported."""
        if self.setup.prepare is None:
            return
        assert self.context is not None
        tabs = self.tabs
        rules = tabs.policy.rules
        preparing = Gate(PolicyRules(allowed=rules.allowed, writable=rules.allowed, deny=rules.deny), tabs.window)
        self._apply(preparing)
        try:
            with tabs.timeouts.unlimited():
                await self.setup.prepare(Beginning(task, self.context, tabs.present.page, self.simulation))
            await self._clear_history()
        finally:
            self._apply(tabs.policy)

    def _apply(self, policy: Gate) -> None:
        """Let a policy decide from now on about the requests and connections of the context."""
        assert self.context is not None
        browser = self.tabs.browser
        browser.interceptor.register(self.context_id, policy)
        browser.admit(self.context, policy)

    async def _open_tabs(self, task: Task) -> None:
        """Open the task's further tabs, before the tab of its start page."""
        assert self.context is not None
        for url in tabs_of(task):
            await self._open(url)
            await self.context.new_page()
            await self.tabs.policy.no_popups()
            await self.tabs.window.all_open()

    async def _open_start_page(self, task: Task) -> None:
        """Log in if the task wants that, then open its start page."""
        if await self._authenticator.begin(self._session):
            await self._forget_login_pages()
        await self._open(task.start)
        tabs = self.tabs
        if not tabs.dialogs.is_asked and await self._authenticator.renew_at_start(self._session, tabs.present.page.url):
            await self._forget_login_pages()
            await self._open(task.start)
            if await self._authenticator.renew_at_start(self._session, url := tabs.present.page.url):
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

    def _new_policy(self, task: Task, flow: SecretFlow | None = None) -> Gate:
        """Return the gate of an episode: a simulation's writes are sent only if they are undone or `speculation` allows it.

        `flow`: where typed secrets got to before a snapshot.
        """
        config, own = self.config, origins(task.start, *task.origins)
        explores = not config.never_writes and {"rollback": self.isolated, "observe": False, "free": True}[config.speculation]
        undone = self.isolated and self._hooks.undone_origins is None
        only = self._hooks.undone_origins if self.simulation and config.speculation == "rollback" else None
        allowed = origins(task.start, *task.origins, *config.allow_origins)
        rules = PolicyRules(
            allowed=allowed, writable=writable(allowed, writes=explores or not self.simulation, only=only), own=own,
            headers=self._authenticator.headers(config.login), deny=DenyList(config.deny), harmless=self._harmless,
            learns=not self.isolated, presumes=config.never_writes or (config.speculation == "rollback" and not undone),
            guarded=self._guarded(),
            is_inside=self._hooks.is_inside, spelled=self.secrets.spelled, document_seconds=config.answer_seconds,
            document_bytes=config.download_bytes, body_bytes=config.document_bytes, counts_pages=self.simulation,
        )  # fmt: skip
        confirms = not self.simulation and config.confirm != "never"
        confirmations = Confirmations(self._ask if confirms else None, self.tabs.timeouts.unlimited)
        return Gate(
            rules,
            self.tabs.window,
            flow=flow,
            confirmations=confirmations,
            pace=self._pace,
            mask=self.secrets.mask,
            cookies=self._cookies,
            readmit=self._readmit,
        )

    async def _cookies(self, url: str) -> Sequence[Cookie]:
        """Return the cookies that a request to an address carries."""
        return await cookies_of(self.context, url) if self.context else ()

    def _guarded(self) -> frozenset[str]:
        """Return the origins that secrets of the log-in belong to, with their partners; empty if there are no secrets."""
        try:
            bound = [each.origins or self._login_origins() for each in self._logins()]
        except UsageError:  # raised when the log-in begins
            return frozenset()
        return frozenset(chain(*bound, origins(*self.config.login.partner_origins))) if bound else frozenset()

    def _readmit(self) -> None:
        """Let the context connect to no more than its gate allows now."""
        if self.context is not None:
            self.tabs.browser.admit(self.context, self.tabs.policy)
        self._hooks.policy_changed(self.tabs.policy)

    async def _ask(self, question: PersonQuestion) -> str:
        """Ask the person who watches whether a request may be sent. Return the reason if it may not; empty if it may."""
        if self.person is None:
            return "nobody was there to confirm it"
        return await self.person.allows(question)

    def _logins(self) -> tuple[Login, ...]:
        """Return the log-ins whose secrets an agent knows by name only."""
        return (*((self.account.login,) if self.account else ()), *self._authenticator.logins(self.config.login))

    def _unfilled(self) -> tuple[Secret, ...]:
        """Return the secrets that no agent types: those of headers, basic authentication and sessions."""
        return self._authenticator.secrets(self.config.login, self.account_name)

    def _login_origins(self) -> tuple[str, ...]:
        """Return the origins at which secrets may be typed that are bound to no others: those of the task's start and of its log-in."""
        start = self.task.start if self.task else ""
        return origins(start, urljoin(start, self.config.login.url))

    @property
    def _session(self) -> LoginSession:
        assert self.context is not None and self.task is not None
        tabs = self.tabs

        async def look() -> Observation:
            tabs.timeouts.renew()
            return (await self.interaction.observe()).observation

        return LoginSession(
            self.config.login, self.account_name, self.context, lambda: tabs.present, tabs.policy, self.task.start,
            self.actions, self._open, self._act_in_login, look, tabs.browser.user_state,
        )  # fmt: skip
