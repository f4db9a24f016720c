"""The connection to a browser that exact did not start: the user's Chrome, or a hosted one. It is not closed.

The DevTools address of a browser that another user or program runs. Its answers are not trusted.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any

from exact.config import BrowserConfig
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.launch.driver import start_driver
from exact.environments.browser.network.interceptor import RequestInterceptor
from exact.environments.browser.network.recording import recording_of
from exact.environments.browser.page.downloads import LocalDownloadStore
from exact.environments.sites.accounts import value_of
from exact.errors import EnvironmentFailure, UsageError
from exact.machine import scratch
from exact.origins import host_name, origin, split_url
from exact.text import inert

if TYPE_CHECKING:
    from playwright.async_api import Browser as PlaywrightBrowser
    from playwright.async_api import BrowserContext


NO_WALL = (
    "browser.cdp_url: no wall stands around that browser: in search too, it may send what is no request "
    "(WebRTC, DNS queries, preconnections)"
)
"""Notice for a user who lets exact use their browser."""
_CONNECT_SECONDS, _CLOSE_SECONDS, _READ_SECONDS = 30.0, 10.0, 2.0
"""Seconds to connect, to disconnect, and to read the storage of a tab."""


@asynccontextmanager
async def connect(config: BrowserConfig, hosts: Mapping[str, str]) -> AsyncIterator[Browser]:
    """Use the browser at `browser.cdp_url` while the block runs. Its tabs and its default context stay as they are.

    Environments have separate contexts in it, which are closed. Requests of other contexts pass untouched. Raises UsageError if
    `hosts` maps names, which a running browser cannot be told, and EnvironmentFailure if no browser answers.
    """
    from playwright.async_api import Error

    if hosts:
        raise UsageError(f"browser.cdp_url: a running browser cannot be told where {next(iter(hosts))} is: let exact start the browser")
    address = value_of("browser.cdp_url", config.cdp_url, os.environ)
    endpoint = await websocket_of(address, seconds=_CONNECT_SECONDS)
    async with AsyncExitStack() as last:
        folder = last.enter_context(scratch("browser"))
        playwright = await last.enter_async_context(start_driver())
        try:
            browser = await playwright.chromium.connect_over_cdp(
                endpoint, no_defaults=True, artifacts_dir=folder / "artifacts", timeout=_CONNECT_SECONDS * 1000
            )
            last.push_async_callback(_disconnect, browser)
            async with asyncio.timeout(_CONNECT_SECONDS):
                cdp = await browser.new_browser_cdp_session()
                interceptor = RequestInterceptor(cdp, recording_of(config.recording), shared=True)
                await interceptor.start()
        except Error as error:
            raise no_browser(
                address, str(error).strip().removeprefix("BrowserType.connect_over_cdp: ").replace(endpoint, shown(endpoint))
            ) from error
        except TimeoutError as error:
            raise no_browser(address, f"no answer within {_CONNECT_SECONDS:g} s") from error
        await asyncio.to_thread((folder / "downloads").mkdir)
        try:
            store = LocalDownloadStore(str(folder / "downloads"), cdp)
            yield Browser(browser, interceptor, store, cdp, devices=playwright.devices, user_state=_UserState(browser))
        finally:
            interceptor.stop()
            with suppress(Error):  # the browser is gone
                await cdp.send("Fetch.disable")


class _UserState:
    """The log-in of the person whose browser it is: cookies of the default context, and the storage of open tabs."""

    def __init__(self, browser: PlaywrightBrowser) -> None:
        self._context: BrowserContext | None = browser.contexts[0] if browser.contexts else None

    async def __call__(self, origins: Iterable[str]) -> dict[str, Any]:
        """Return the default context's storage for some origins, in the form of `storage_state`. No page is opened."""
        from playwright.async_api import Error

        wanted, found = list(origins), dict[str, Any]()
        if self._context is None or not wanted:
            return {}
        for page in self._context.pages:
            here = origin(page.url)
            if here in wanted and here not in found:
                with suppress(Error, TimeoutError):  # a tab that does not answer, or was just closed
                    async with asyncio.timeout(_READ_SECONDS):
                        entries = await page.evaluate("Object.entries(localStorage)")
                        found[here] = [{"name": name, "value": value} for name, value in entries]
        try:
            cookies = await self._context.cookies(wanted)
        except Error as error:
            raise EnvironmentFailure(f"the browser at browser.cdp_url is gone: {str(error).splitlines()[0]}") from error
        return {"cookies": cookies, "origins": [{"origin": each, "localStorage": entries} for each, entries in found.items()]}


async def _disconnect(browser: PlaywrightBrowser) -> None:
    """Close the contexts that were opened and the connection. The browser keeps running."""
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await browser.close()


_LONGEST = 2**16
"""Maximum bytes of the answer of `/json/version`."""
_LINE = 300
"""Maximum characters of a text of the browser in an error."""


async def websocket_of(address: str, *, seconds: float) -> str:
    """Return the WebSocket of the DevTools at an address: the address itself, or the one that `/json/version` there names.

    Raises EnvironmentFailure if nothing or no browser answers in time, and if the answer leads to another host: a redirect is not
    followed.
    """
    if address.startswith(("ws://", "wss://")):
        return address
    import msgspec

    connection = _connection(address, seconds)
    try:
        async with asyncio.timeout(seconds):
            status, body = await asyncio.to_thread(_get, connection, _version(address))
    except TimeoutError as error:
        raise no_browser(address, f"no answer within {seconds:g} s") from error
    except (OSError, HTTPException, ValueError) as error:
        raise no_browser(address, str(error) or type(error).__name__) from error
    finally:
        _close(connection)
    if status != 200 or len(body) > _LONGEST:
        what = f"gives status {status}" if status != 200 else f"has more than {_LONGEST} bytes"
        raise no_browser(address, f"/json/version {what}")
    try:
        found = msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError) as error:
        raise no_browser(address, "/json/version gives no JSON object") from error
    return _same_host(address, found.get("webSocketDebuggerUrl"))


def _connection(address: str, seconds: float) -> HTTPConnection:
    parts = split_url(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        return kind(parts.hostname or "", parts.port, timeout=seconds)
    except (ValueError, HTTPException) as error:
        raise no_browser(address, "this is no address of DevTools") from error


def _get(connection: HTTPConnection, path: str) -> tuple[int, bytes]:
    """Return the status and the beginning of the body of a path."""
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read(_LONGEST + 1)


def _close(connection: HTTPConnection) -> None:
    """Close a connection. A thread that still reads from it ends."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()


def no_browser(address: str, reason: str) -> EnvironmentFailure:
    """Return the failure of an address at which no browser answers. The reason may be the browser's own text."""
    said = inert(reason.strip().partition("\n")[0].replace(address, shown(address)), _LINE)
    return EnvironmentFailure(
        f"no browser answers at browser.cdp_url {shown(address)}: {said}: start one with --remote-debugging-port=9222"
    )


def shown(address: str) -> str:
    """Return an address without the path and query, which may hold a token of a hosted browser."""
    parts = split_url(address)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # no number, or too large a one
        port = ""
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else "(not an address)"


def _version(address: str) -> str:
    """Return the path at which a browser at an address describes itself."""
    parts = split_url(address)
    return f"{parts.path.rstrip('/')}/json/version{f'?{parts.query}' if parts.query else ''}"


def _same_host(address: str, found: object) -> str:
    """Return the WebSocket that DevTools named, if it belongs to the requested host."""
    parts = split_url(found) if isinstance(found, str) else None
    if parts is None or parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise no_browser(address, "/json/version names no WebSocket")
    if host_name(parts.hostname) != host_name(split_url(address).hostname or ""):
        raise no_browser(address, f"it leads to another host, {shown(parts.geturl())}; if you trust that, give its address")
    return parts.geturl()
