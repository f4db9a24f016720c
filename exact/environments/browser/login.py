"""Log-ins before a task begins: by a file with cookies and storage, by a script, by headers; and what tells that one has expired."""

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
"""As Playwright's `storage_state` has it: `cookies`, and of each of `origins` its `localStorage`."""
_COOKIE = ("name", "value", "domain", "path", "expires", "httpOnly", "secure", "sameSite", "partitionKey")
_BLANK = "/exact-blank"


class LoginSession(NamedTuple):
    """One environment at the start of a task, as a log-in sees it."""

    config: LoginConfig
    who: str
    """Name of the account; empty where there is one for all."""
    context: BrowserContext
    tab: Callable[[], Tab]
    policy: RequestPolicy
    home: str
    """Where the task starts."""
    actions: ActionSpace
    open: Callable[[str], Awaitable[None]]
    """Go to an address and wait for it."""
    do: Callable[[Action], Awaitable[None]]
    look: Callable[[], Awaitable[Observation]]


class Authenticator:
    """What environments that are opened together know of their log-ins. A session that a script began is used by all until it expires."""

    def __init__(self) -> None:
        self._kept: dict[str, State] = {}

    def headers(self, config: LoginConfig) -> dict[str, str]:
        """What each request to the task's origins carries. Raises UsageError where a variable is not set."""
        found = {name: value_of(f"header {name}", value, os.environ) for name, value in config.headers.items()}
        if config.user:
            pair = f"{value_of('login.user', config.user, os.environ)}:{value_of('login.password', config.password, os.environ)}"
            found["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return found

    def logins(self, config: LoginConfig) -> tuple[Login, ...]:
        """The secrets that are known by name only. Raises UsageError where a variable is not set."""
        return _logins(tuple(config.secrets.items()))

    async def begin(self, session: LoginSession) -> bool:
        """Before a task's start page. Whether pages were opened for it. Raises EnvironmentFailure, UsageError."""
        config = session.config
        if kept := self._kept.get(session.who):
            return await _restore(session, kept)
        if config.state:
            return await _restore(session, await asyncio.to_thread(_read, Path(config.state)))
        if config.script:
            await self._follow(session)
            return True
        return False

    async def renew(self, session: LoginSession, url: str) -> bool:
        """On a task's start page: log in again if nobody is logged in; whether that was done. Raises EnvironmentFailure where it fails."""
        if not _expired(session, url):
            return False
        self._kept.pop(session.who, None)
        if not session.config.script:
            way_out = f"renew {session.config.state} with `exact login`" if session.config.state else "check browser.login"
            raise EnvironmentFailure(f"nobody is logged in at {url}: {way_out}")
        await session.context.clear_cookies()
        await self._follow(session)
        return True

    def check(self, session: LoginSession, url: str) -> None:
        """After a step. Raises EnvironmentFailure where the session has expired: a fresh environment logs in again."""
        if _expired(session, url):
            self._kept.pop(session.who, None)
            raise EnvironmentFailure(f"the log-in expired in the middle of the task, at {url}")

    async def _follow(self, session: LoginSession) -> None:
        """Do what the script says; its writes are sent. Raises EnvironmentFailure with the step that could not be done."""
        session.policy.unrestricted_writes = True
        try:
            await session.open(urljoin(session.home, session.config.url))
            seen = await session.look()
            for number, text in enumerate(session.config.script, 1):
                try:
                    await session.do(session.actions.parse(resolve_names(text, seen.elements)))
                except ActionError as error:
                    raise EnvironmentFailure(f"the log-in script's step {number}, {text}, cannot be done: {error}") from error
                seen = await session.look()
        finally:
            session.policy.unrestricted_writes = False
        if _expired(session, seen.url):
            raise EnvironmentFailure(f"after the log-in script nobody is logged in, at {seen.url}: check browser.login.secrets")
        if session.config.expired:  # else nobody could tell that it is over
            self._kept[session.who] = await _taken(session)


def _expired(session: LoginSession, url: str) -> bool:
    if session.config == LoginConfig():
        return False
    refused, session.policy.unauthorized = session.policy.unauthorized, ""
    return bool(refused) or bool(session.config.expired and re.search(session.config.expired, url))


async def _restore(session: LoginSession, state: State) -> bool:
    """Cookies and storage as they were. Whether pages were opened for it."""
    cookies = [{key: each[key] for key in _COOKIE if key in each} for each in state.get("cookies", ())]
    if cookies:
        await session.context.add_cookies(cookies)  # type: ignore[arg-type]
    opened = False
    for each in state.get("origins", ()):
        if refusal(each["origin"], session.policy.allowed) or not each.get("localStorage"):
            continue
        opened, address = True, origin(each["origin"]) + _BLANK
        session.policy.blank_pages.add(address)
        await session.open(address)
        entries = json.dumps([[entry["name"], entry["value"]] for entry in each["localStorage"]])
        await session.tab().evaluate(f"{entries}.forEach(([name, value]) => localStorage.setItem(name, value))")
    return opened


async def _taken(session: LoginSession) -> State:
    """What the context holds now."""
    tab = session.tab()
    state: State = {"cookies": list(await session.context.cookies()), "origins": []}
    if here := origin(tab.page.url):
        entries = await tab.evaluate("Object.entries(localStorage)")
        state["origins"].append({"origin": here, "localStorage": [{"name": name, "value": value} for name, value in entries]})
    return state


def _read(path: Path) -> State:
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
