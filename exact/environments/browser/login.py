"""Log-ins before a task begins, by a file with cookies and storage, by a script or by headers, and checks whether they expired.

The proof of a log-in: a text or an element that only a logged-in page shows.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import html
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

import msgspec

from exact.action import Action, ActionSpace
from exact.config import LoginConfig
from exact.environments.browser.act.grammar import resolve_names
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.page.cdp import script_call
from exact.environments.browser.page.tab import Tab
from exact.environments.sites.accounts import Login, value_of
from exact.environments.sites.known import LARGEST_STATE, login_secrets
from exact.environments.sites.site import Account
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.origins import origin, refusal
from exact.secrecy.state import state_secrets
from exact.secrecy.values import Secret
from exact.untrusted import compiled, read_bounded

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Locator, Page

    from exact.environments.browser.page.tab import Tab


State = dict[str, Any]
"""Cookies and storage as in Playwright's `storage_state`: `cookies`, and the `localStorage` of each of `origins`."""


class _StoredEntry(msgspec.Struct, frozen=True):
    """Entry of a storage."""

    name: str
    value: str


class _StoredOrigin(msgspec.Struct, frozen=True):
    """Storage of an origin."""

    origin: str
    localStorage: list[_StoredEntry] = []


class _StoredCookie(msgspec.Struct, frozen=True):
    """StoredCookie in a file. Playwright checks its other fields."""

    name: str
    value: str
    domain: str = ""


class _StoredState(msgspec.Struct, frozen=True):
    """Required content of a log-in file."""

    cookies: list[_StoredCookie] = []
    origins: list[_StoredOrigin] = []


_COOKIE_KEYS = ("name", "value", "domain", "path", "expires", "httpOnly", "secure", "sameSite", "partitionKey")
_BLANK_PAGE = "/exact-blank"


class LoginSession(NamedTuple):
    """The environment that logs in, at the start of a task."""

    config: LoginConfig
    account: str
    """Name of the account; empty if all environments have the same."""
    context: BrowserContext
    tab: Callable[[], Tab]
    gate: Gate
    home: str
    """Address at which the task starts."""
    actions: ActionSpace
    open: Callable[[str], Awaitable[None]]
    """Opens an address and waits until the page is quiet."""
    do: Callable[[Action], Awaitable[None]]
    observe: Callable[[], Awaitable[Observation]]
    seconds: float = 15.0
    """Seconds that the proof may take to appear on a start page, and after a log-in."""
    user_state: Callable[[Iterable[str]], Awaitable[State]] | None = None
    """Returns the log-in of the person whose browser or profile it is, for some origins. None: it has no owner."""


class Authenticator:
    """The log-ins of environments that are opened together. They share a session that a script began until it expires."""

    def __init__(self) -> None:
        self._sessions: dict[str, State] = {}
        self._session_secrets: dict[str, tuple[Secret, ...]] = {}
        """Values of the cookies and the storage of sessions, by account."""
        self._asked: dict[tuple[str, str], bool] = {}
        """Whether the server's answer for a start page holds the proof of an account, while logged in, by account and address."""

    def headers(self, config: LoginConfig) -> dict[str, str]:
        """Return the headers of requests to the task's origins. Raises UsageError if an environment variable is not set."""
        found = {name: value_of(f"header {name}", value, os.environ) for name, value in config.headers.items()}
        if config.user:
            pair = f"{value_of('login.user', config.user, os.environ)}:{value_of('login.password', config.password, os.environ)}"
            found["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return found

    def logins(self, config: LoginConfig) -> tuple[Login, ...]:
        """Return the secrets that agents know by name only. Raises UsageError if an environment variable is not set."""
        return _logins(tuple(config.secrets.items()), config.secret_origins)

    def secrets(self, config: LoginConfig, account: str) -> tuple[Secret, ...]:
        """Return the secrets that no agent types: those of headers, basic authentication, and the session of an account."""
        return (*_fixed_secrets(config), *self._session_secrets.get(account, ()))

    async def begin(self, session: LoginSession) -> bool:
        """Log in before the start page of a task is opened. Return whether pages were opened for it.

        Raises EnvironmentFailure if it fails, and UsageError for an invalid file.
        """
        config = session.config
        if state := self._sessions.get(session.account):
            return await _restore(session, state)
        if config.state:
            return await _restore(session, await asyncio.to_thread(read_state, Path(config.state)))
        if config.script:
            await self._run_script(session)
            return True
        if session.user_state is not None:
            state = await session.user_state(session.gate.rules.allowed)
            self._session_secrets[session.account] = tuple(state_secrets(state))
            return await _restore(session, state)
        return False

    async def renew_at_start(self, session: LoginSession, url: str) -> bool:
        """Log in again if the start page at `url` shows that the log-in expired. Return whether that was done.

        Raises EnvironmentFailure if it fails.
        """
        seconds = 0.0 if not session.config.proof or await asks_for_password(session.tab()) else session.seconds
        if not _is_refused(session, url) and await _proves(session, seconds):
            await self._learn(session)
            return False
        self._sessions.pop(session.account, None)
        if not session.config.script:
            raise EnvironmentFailure(f"not logged in at {url}: {_way_out(session.config)}")
        await self._log_in_anew(session)
        return True

    async def has_expired(self, session: LoginSession, url: str) -> bool:
        """Return whether the page at `url`, to which a step led, shows that the log-in has expired."""
        if _is_refused(session, url):
            return True
        config, tab = session.config, session.tab()
        denied, tab.traffic.denied = tab.traffic.denied, ""
        redirected, tab.traffic.redirected = tab.traffic.redirected, ""
        entrance = urljoin(session.home, config.url or "?")
        if not config.proof or origin(url) not in session.gate.rules.own:
            return False
        if await _proves(session):  # also a page that stays unchanged while its script is told to log in
            return bool(denied or _address(redirected) == entrance) and await self._is_logged_out(session)
        if denied or url == entrance or await asks_for_password(tab):
            return True
        return await self._is_logged_out(session)

    async def _is_logged_out(self, session: LoginSession) -> bool:
        """Return whether the server's answer for the start page lacks the proof that it had before.

        If the site's scripts write the proof, the server's answer does not show it.
        """
        if not self._asked.get((session.account, session.home)):
            return False
        return await is_in_answer(session.tab(), session.home, session.config.proof) is False

    async def renew(self, session: LoginSession, url: str) -> None:
        """Log in again in the middle of a task, which leaves the page. `url`: page that showed the expiry. Raises EnvironmentFailure."""
        self._sessions.pop(session.account, None)
        if session.config.script:
            await self._log_in_anew(session)
            return
        if not session.config.state:
            raise EnvironmentFailure(f"the log-in expired during the task, at {url}: {_way_out(session.config)}")
        await session.context.clear_cookies()
        await _restore(session, await asyncio.to_thread(read_state, Path(session.config.state)))
        await session.open(session.home)
        if _is_refused(session, session.tab().url) or not await _proves(session, session.seconds):
            raise EnvironmentFailure(f"the log-in expired during the task, at {url}: {_way_out(session.config)}")

    async def _learn(self, session: LoginSession) -> None:
        """Learn once whether the server's answer for the start page holds the proof."""
        key = session.account, session.home
        if session.config.proof and key not in self._asked:
            self._asked[key] = bool(await is_in_answer(session.tab(), session.home, session.config.proof))

    async def _log_in_anew(self, session: LoginSession) -> None:
        """Run the log-in script without the remains of an expired log-in."""
        await session.context.clear_cookies()
        if origin(session.tab().url) in session.gate.rules.own:
            await session.tab().evaluate("localStorage.clear(); sessionStorage.clear()")
        await self._run_script(session)

    async def _run_script(self, session: LoginSession) -> None:
        """Run the log-in script, whose own requests are sent. Raises EnvironmentFailure with the step that failed."""
        try:
            await session.open(urljoin(session.home, session.config.url))
            seen = await session.observe()
            for number, text in enumerate(session.config.script, 1):
                session.gate.begin_login_action(session.tab().url)
                try:
                    await session.do(session.actions.parse(resolve_names(text, seen.elements)))
                except ActionError as error:
                    raise EnvironmentFailure(f"the log-in script's step {number}, {text}, failed: {error}") from error
                seen = await session.observe()
            proven = await _proves(session, session.seconds)
        finally:
            session.gate.end_login()
        if not proven:
            lacks = f"{seen.url}, which does not show {session.config.proof!r}"
            way_out = session.gate.withheld or "check browser.login's secrets and proof"
            raise EnvironmentFailure(f"not logged in after the log-in script, at {lacks}: {way_out}")
        if _is_refused(session, seen.url):
            raise EnvironmentFailure(f"not logged in after the log-in script, at {seen.url}: check browser.login.secrets")
        if session.config.expired or session.config.proof:  # otherwise an expired session could not be recognized
            self._sessions[session.account] = await _current_state(session)
        if proven:
            self._session_secrets[session.account] = tuple(state_secrets(await _current_state(session)))


def _address(url: str) -> str:
    """Return a URL without its query and fragment."""
    return url.partition("#")[0].partition("?")[0]


def _way_out(config: LoginConfig) -> str:
    return f"renew {config.state} with `exact login`" if config.state else "check browser.login"


async def _proves(session: LoginSession, seconds: float = 0.0) -> bool:
    """Return whether the present page shows the proof, if there is one to show."""
    return not session.config.proof or await is_shown(session.tab().page, session.config.proof, seconds=seconds)


def _is_refused(session: LoginSession, url: str) -> bool:
    """Return whether the address of a page, or its status, shows that the log-in has expired."""
    if session.config == LoginConfig():
        return False
    refused, session.gate.unauthorized = session.gate.unauthorized, ""
    return bool(refused) or bool(
        session.config.expired and compiled(session.config.expired, "login.expired").found_in(url, otherwise=False)
    )


async def _restore(session: LoginSession, state: State) -> bool:
    """Restore cookies and storage. Return whether pages were opened for it."""
    cookies = [{key: each[key] for key in _COOKIE_KEYS if key in each} for each in state.get("cookies", ())]
    if cookies:
        await session.context.add_cookies(cookies)  # type: ignore[arg-type]
    opened = False
    for each in state.get("origins", ()):
        if refusal(each["origin"], session.gate.rules.allowed) or not each.get("localStorage"):
            continue
        opened, address = True, origin(each["origin"]) + _BLANK_PAGE
        session.gate.blank_pages.add(address)
        await session.open(address)
        entries = json.dumps([[entry["name"], entry["value"]] for entry in each["localStorage"]])
        await session.tab().evaluate(f"{entries}.forEach(([name, value]) => localStorage.setItem(name, value))")
    return opened


async def _current_state(session: LoginSession) -> State:
    """Return the cookies of the context, and the storage of the present page."""
    tab = session.tab()
    state: State = {"cookies": list(await session.context.cookies()), "origins": []}
    if here := origin(tab.url):
        entries = await tab.evaluate("Object.entries(localStorage)")
        state["origins"].append({"origin": here, "localStorage": [{"name": name, "value": value} for name, value in entries]})
    return state


def read_state(path: Path) -> State:
    """Return the cookies and the storage in a file. Raises UsageError for a file that holds no log-in."""
    try:
        data = read_bounded(path.expanduser(), LARGEST_STATE)
        msgspec.json.decode(data, type=_StoredState)
        state: State = json.loads(data)
    except OSError as error:
        raise UsageError(f"there is no log-in at {path} ({error.strerror}): make it with `exact login`") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no log-in: {error}: make it with `exact login`") from error
    return state


@functools.lru_cache(maxsize=64)
def _logins(secrets: tuple[tuple[str, str], ...], bound: tuple[str, ...]) -> tuple[Login, ...]:
    return (Login(Account(name="login", fields=dict(secrets), origins=bound), os.environ),) if secrets else ()


@functools.lru_cache(maxsize=64)
def _fixed_secrets_of(encoded: bytes) -> tuple[Secret, ...]:
    return tuple(login_secrets(msgspec.json.decode(encoded, type=LoginConfig), os.environ))


def _fixed_secrets(config: LoginConfig) -> tuple[Secret, ...]:
    """Return the secrets of headers, basic authentication and the file of a session, which is read once."""
    if not (config.headers or config.password or config.state):
        return ()
    return _fixed_secrets_of(msgspec.json.encode(config))


_ELEMENT = re.compile(r"\[\s*(?P<role>[A-Za-z]+)\s+(?P<name>\"(?:[^\"\\]|\\.)*\")\s*\]")
"""An element by role and name, as in log-in scripts: `[link "Log out"]`."""


async def is_shown(page: Page, proof: str, *, seconds: float = 0.0) -> bool:
    """Return whether a page shows a proof in any of its frames, waiting for it for at most `seconds`."""
    from playwright.async_api import Error

    for frame in page.frames:
        try:
            found = _locator(frame, proof)
            if await found.count():
                return True
        except Error:  # the frame is gone, or the page is being replaced
            continue
    if seconds:
        try:
            await _locator(page.main_frame, proof).first.wait_for(timeout=seconds * 1000)
            return True
        except Error:
            return False
    return False


async def is_in_answer(tab: Tab, url: str, proof: str) -> bool | None:
    """Return whether the HTML that a server answers with holds a proof. None if the present page cannot request it."""
    from playwright.async_api import Error

    try:
        text = await tab.evaluate(script_call("page/fetch_text", url))
    except (EnvironmentFailure, Error):  # the page's own policy forbids it, the server does not answer, or the page is being replaced
        return None
    words = words_of(proof)
    return words in text or html.escape(words) in text


async def asks_for_password(tab: Tab) -> bool:
    """Return whether a page shows a field for a password. A page that is being replaced shows none."""
    from playwright.async_api import Error

    try:
        return bool(await tab.evaluate(script_call("page/asks_for_password")))
    except Error as error:
        if not tab.is_navigation_error(error):
            raise
        return False


def words_of(proof: str) -> str:
    """Return the text of a proof, or the name of its element."""
    found = _ELEMENT.fullmatch(proof.strip())
    return str(json.loads(found["name"])) if found else proof


def _locator(frame: Frame, proof: str) -> Locator:
    found = _ELEMENT.fullmatch(proof.strip())
    if not found:
        return frame.get_by_text(proof).filter(visible=True)
    return frame.get_by_role(found["role"], name=words_of(proof), exact=True).filter(visible=True)  # type: ignore[arg-type]
