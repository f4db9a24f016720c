"""Log-ins before a task begins, by a file with cookies and storage, by a script or by headers, and checks whether they expired."""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

from exact.action import Action, ActionSpace
from exact.config import LoginConfig
from exact.environments.browser.act.grammar import resolve_names
from exact.environments.browser.network.policy import RequestPolicy
from exact.environments.browser.page.tab import Tab
from exact.environments.sites.accounts import Login, value_of
from exact.environments.sites.site import Account
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.safety import origin, refusal

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

State = dict[str, Any]
"""Cookies and storage as in Playwright's `storage_state`: `cookies`, and the `localStorage` of each of `origins`."""
_COOKIE_KEYS = ("name", "value", "domain", "path", "expires", "httpOnly", "secure", "sameSite", "partitionKey")
_BLANK_PAGE = "/exact-blank"


class LoginSession(NamedTuple):
    """The environment that logs in, at the start of a task."""

    config: LoginConfig
    account: str
    """Name of the account; empty where all environments have the same."""
    context: BrowserContext
    tab: Callable[[], Tab]
    policy: RequestPolicy
    home: str
    """Address at which the task starts."""
    actions: ActionSpace
    open: Callable[[str], Awaitable[None]]
    """Opens an address and waits until the page is quiet."""
    do: Callable[[Action], Awaitable[None]]
    observe: Callable[[], Awaitable[Observation]]


class Authenticator:
    """The log-ins of environments that are opened together. They share a session that a script began until it expires."""

    def __init__(self) -> None:
        self._sessions: dict[str, State] = {}

    def headers(self, config: LoginConfig) -> dict[str, str]:
        """Return the headers of requests to the task's origins. Raises UsageError where an environment variable is not set."""
        found = {name: value_of(f"header {name}", value, os.environ) for name, value in config.headers.items()}
        if config.user:
            pair = f"{value_of('login.user', config.user, os.environ)}:{value_of('login.password', config.password, os.environ)}"
            found["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return found

    def logins(self, config: LoginConfig) -> tuple[Login, ...]:
        """Return the secrets that agents know by name only. Raises UsageError where an environment variable is not set."""
        return _logins(tuple(config.secrets.items()))

    async def begin(self, session: LoginSession) -> bool:
        """Log in before the start page of a task is opened. Return whether pages were opened for it.

        Raises EnvironmentFailure where it fails, and UsageError for an invalid file.
        """
        config = session.config
        if state := self._sessions.get(session.account):
            return await _restore(session, state)
        if config.state:
            return await _restore(session, await asyncio.to_thread(_read_state, Path(config.state)))
        if config.script:
            await self._run_script(session)
            return True
        return False

    async def renew(self, session: LoginSession, url: str) -> bool:
        """Log in again where the start page at `url` shows that the log-in expired. Return whether that was done.

        Raises EnvironmentFailure where it fails.
        """
        if not _expired(session, url):
            return False
        self._sessions.pop(session.account, None)
        if not session.config.script:
            way_out = f"renew {session.config.state} with `exact login`" if session.config.state else "check browser.login"
            raise EnvironmentFailure(f"not logged in at {url}: {way_out}")
        await session.context.clear_cookies()
        await self._run_script(session)
        return True

    def check(self, session: LoginSession, url: str) -> None:
        """Check the log-in after a step that led to `url`.

        Raises EnvironmentFailure where it has expired; a fresh environment logs in again.
        """
        if _expired(session, url):
            self._sessions.pop(session.account, None)
            raise EnvironmentFailure(f"the log-in expired during the task, at {url}")

    async def _run_script(self, session: LoginSession) -> None:
        """Run the log-in script, whose writes are sent. Raises EnvironmentFailure with the step that failed."""
        session.policy.unrestricted_writes = True
        try:
            await session.open(urljoin(session.home, session.config.url))
            seen = await session.observe()
            for number, text in enumerate(session.config.script, 1):
                try:
                    await session.do(session.actions.parse(resolve_names(text, seen.elements)))
                except ActionError as error:
                    raise EnvironmentFailure(f"the log-in script's step {number}, {text}, failed: {error}") from error
                seen = await session.observe()
        finally:
            session.policy.unrestricted_writes = False
        if _expired(session, seen.url):
            raise EnvironmentFailure(f"not logged in after the log-in script, at {seen.url}: check browser.login.secrets")
        if session.config.expired:  # otherwise an expired session could not be recognized
            self._sessions[session.account] = await _current_state(session)


def _expired(session: LoginSession, url: str) -> bool:
    if session.config == LoginConfig():
        return False
    refused, session.policy.unauthorized = session.policy.unauthorized, ""
    return bool(refused) or bool(session.config.expired and re.search(session.config.expired, url))


async def _restore(session: LoginSession, state: State) -> bool:
    """Restore cookies and storage. Return whether pages were opened for it."""
    cookies = [{key: each[key] for key in _COOKIE_KEYS if key in each} for each in state.get("cookies", ())]
    if cookies:
        await session.context.add_cookies(cookies)  # type: ignore[arg-type]
    opened = False
    for each in state.get("origins", ()):
        if refusal(each["origin"], session.policy.allowed) or not each.get("localStorage"):
            continue
        opened, address = True, origin(each["origin"]) + _BLANK_PAGE
        session.policy.blank_pages.add(address)
        await session.open(address)
        entries = json.dumps([[entry["name"], entry["value"]] for entry in each["localStorage"]])
        await session.tab().evaluate(f"{entries}.forEach(([name, value]) => localStorage.setItem(name, value))")
    return opened


async def _current_state(session: LoginSession) -> State:
    """Return the cookies of the context, and the storage of the present page."""
    tab = session.tab()
    state: State = {"cookies": list(await session.context.cookies()), "origins": []}
    if here := origin(tab.page.url):
        entries = await tab.evaluate("Object.entries(localStorage)")
        state["origins"].append({"origin": here, "localStorage": [{"name": name, "value": value} for name, value in entries]})
    return state


def _read_state(path: Path) -> State:
    try:
        state = json.loads(path.expanduser().read_text("utf-8"))
        if not isinstance(state, dict) or not isinstance(state.get("cookies", []), list):
            raise ValueError("no object with cookies and origins")
    except OSError as error:
        raise UsageError(f"there is no log-in at {path} ({error.strerror}): make it with `exact login`") from error
    except ValueError as error:
        raise UsageError(f"{path} is no log-in: {error}: make it with `exact login`") from error
    return state


@functools.lru_cache(maxsize=64)
def _logins(secrets: tuple[tuple[str, str], ...]) -> tuple[Login, ...]:
    return (Login(Account(name="login", fields=dict(secrets)), os.environ),) if secrets else ()
