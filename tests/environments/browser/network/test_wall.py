"""The wall in front of a plain browser: what the interceptor does not see reaches no server that is not admitted.

The servers are the judges.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import BrowserConfig, ProxyConfig
from exact.environments.base import SideEffect
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup, launch
from exact.errors import EnvironmentFailure
from exact.task import Task
from tests.conftest import CONFIG
from tests.environments.browser.outside import Site, serving
from tests.environments.browser.pages import find

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Ear:
    """A TCP server that keeps the first bytes of each connection."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                made, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._hear, args=(made,), daemon=True).start()

    def _hear(self, made: socket.socket) -> None:
        with made:
            self.heard.append(made.recv(4096))

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def listening() -> Iterator[Ear]:
    ear = Ear()
    try:
        yield ear
    finally:
        ear.close()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as site:
        yield site


def task(site: Site, path: str = "/", host: str = "localhost") -> Task:
    return Task(id="wall/site", instruction="Look.", start=f"http://{host}:{site.port}{path}")


def environments(browser: Browser, config: BrowserConfig = CONFIG) -> BrowserFactory:
    return BrowserFactory(browser, PageSetup(), config, isolated=False)


async def click(environment: BrowserEnvironment, name: str) -> tuple[SideEffect, ...]:
    step = await environment.step(environment.actions.parse(f"click [{find(environment.observation, name).id}]"))
    return step.effects


TRIES = {
    "WebSocket": "new WebSocket('ws://127.0.0.1:{port}/x')",
    "WebSocket of an empty frame": """document.body.append(Object.assign(document.createElement('iframe'), {{name: 'f'}}));
        new f.WebSocket('ws://127.0.0.1:{port}/x')""",
    "WebSocket of a data frame": """document.body.append(Object.assign(document.createElement('iframe'), {{src:
        'data:text/html,<script>new WebSocket(`ws://127.0.0.1:{port}/x`)</scr' + 'ipt>'}}))""",
    "WebSocket of a blob frame": """document.body.append(Object.assign(document.createElement('iframe'), {{src: URL.createObjectURL(
        new Blob(['<script>new WebSocket(`ws://127.0.0.1:{port}/x`)</scr' + 'ipt>'], {{type: 'text/html'}}))}}))""",
    "TURN over TCP": """const p = new RTCPeerConnection({{iceServers: [{{urls: 'turn:127.0.0.1:{port}?transport=tcp', username: 'a',
        credential: 'b'}}]}}); p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o))""",
    "TURN over TLS": """const p = new RTCPeerConnection({{iceServers: [{{urls: 'turns:127.0.0.1:{port}?transport=tcp', username: 'a',
        credential: 'b'}}]}}); p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o))""",
    "preconnect": "document.head.append(Object.assign(document.createElement('link'), {{rel: 'preconnect', href: 'http://127.0.0.1:{port}'}}))",
    "speculation rules": """document.head.append(Object.assign(document.createElement('script'), {{type: 'speculationrules',
        textContent: JSON.stringify({{prefetch: [{{source: 'list', urls: ['http://127.0.0.1:{port}/x'], eagerness: 'immediate'}}]}})}}))""",
    "FedCM": """navigator.credentials?.get({{identity: {{providers: [
        {{configURL: 'http://127.0.0.1:{port}/config.json', clientId: '1'}}]}}}}).catch(() => 0)""",
}
RAW = ("WebSocket of an empty frame", "WebSocket of a data frame", "WebSocket of a blob frame", "TURN over TCP", "TURN over TLS")
"""Attempts of which nothing but the first bytes tells that they are no reads."""


@pytest.mark.parametrize("attempt", TRIES)
async def test_nothing_reaches_a_server_that_is_not_admitted(browser: Browser, site: Site, attempt: str) -> None:
    with listening() as ear:
        code = TRIES[attempt].format(port=ear.port).replace('"', "&quot;")
        site.pages["/"] = f'<button onclick="{code}">Go</button><p id=p>-</p>'
        async with environments(browser).open(simulation=True) as environment:
            await environment.reset(task(site))
            await click(environment, "Go")
            for _ in range(2):
                await environment.step(environment.actions.parse("wait"))
    assert ear.heard == []


@pytest.mark.parametrize("attempt", RAW)
async def test_an_admitted_server_gets_no_raw_bytes_while_exploring(browser: Browser, site: Site, attempt: str) -> None:
    with listening() as ear:
        code = TRIES[attempt].format(port=ear.port).replace('"', "&quot;")
        site.pages["/"] = f'<button onclick="{code}">Go</button>'
        config = BrowserConfig(screenshots=False, allow_origins=(f"http://127.0.0.1:{ear.port}",))
        async with environments(browser, config).open(simulation=True) as environment:
            await environment.reset(task(site))
            effects = [*await click(environment, "Go")]
            for _ in range(2):
                effects += (await environment.step(environment.actions.parse("wait"))).effects
    assert not any(ear.heard)
    if attempt.startswith("TURN") and not browser.is_apart:  # in a namespace there is no interface to try it on
        assert any(effect.kind == "blocked" and str(ear.port) in effect.url for effect in effects)


async def test_a_websocket_opens_where_writes_are_allowed(browser: Browser, site: Site) -> None:
    site.pages["/"] = """<p>-</p><script>new WebSocket(location.origin.replace('http', 'ws') + '/socket').onmessage =
        e => document.querySelector('p').textContent = e.data</script>"""
    async with environments(browser).open(simulation=False) as environment:
        await environment.reset(task(site))
        async with asyncio.timeout(10):
            while "number 1" not in environment.observation.text:
                await environment.step(environment.actions.parse("wait"))
    async with environments(browser).open(simulation=True) as environment:
        await environment.reset(task(site))
        await environment.step(environment.actions.parse("wait"))
    assert site.sockets == 1


async def test_one_context_does_not_admit_what_another_may_reach(browser: Browser, site: Site) -> None:
    with serving() as other:
        site.pages["/"] = f"""<button onclick="document.body.append(Object.assign(document.createElement('iframe'), {{name: 'f'}}));
            new f.WebSocket('ws://localhost:{other.port}/socket')">Go</button>"""
        other.pages["/"] = "<p>Other"
        async with environments(browser).open(simulation=False) as one, environments(browser).open(simulation=False) as two:
            await one.reset(task(site))
            await two.reset(task(other))
            await click(one, "Go")
            await one.step(one.actions.parse("wait"))
        assert other.sockets == 0


async def test_the_errors_of_servers_that_are_not_there_keep_their_names(browser: Browser) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for start, name in ((f"http://127.0.0.1:{port}/", "CONNECTION_REFUSED"), ("http://nowhere.invalid/", "NAME_NOT_RESOLVED")):
        async with environments(browser).open(simulation=True) as environment:
            with pytest.raises(EnvironmentFailure, match=name):
                await environment.reset(Task(id="wall/none", instruction="", start=start))


async def test_a_denied_host_is_blocked_where_it_is_allowed(executable: str, site: Site) -> None:
    site.pages["/"] = f"<a href='http://127.0.0.1:{site.port}/text'>Go</a>"
    config = BrowserConfig(screenshots=False, allow_origins=(f"http://127.0.0.1:{site.port}",), deny=("127.0.0.0/8",))
    async with launch(config) as browser, environments(browser, config).open(simulation=False) as environment:
        with pytest.raises(EnvironmentFailure):  # localhost is denied too, by the address that it leads to
            await environment.reset(task(site))
    config = BrowserConfig(screenshots=False, allow_origins=(f"http://127.0.0.1:{site.port}",), deny=(f"http://127.0.0.1:{site.port}",))
    async with launch(config) as browser, environments(browser, config).open(simulation=False) as environment:
        await environment.reset(task(site))
        assert [effect.detail for effect in await click(environment, "Go")] == [f"http://127.0.0.1:{site.port} is on the deny-list"]
    assert "GET /text" not in site.asked


@pytest.mark.parametrize("spelling", ["localhost.", "LOCALHOST", "LocalHost."])
async def test_a_mapped_host_is_reached_by_every_spelling_and_only_where_it_is_mapped(executable: str, site: Site, spelling: str) -> None:
    with serving() as real:
        site.pages["/"] = "<p>Mapped"
        real.pages["/"] = "<p>Real"
        async with (
            launch(CONFIG, {"localhost": f"127.0.0.1:{site.port}"}) as browser,
            environments(browser).open(simulation=False) as environment,
        ):
            assert "Mapped" in (await environment.reset(task(real, host=spelling))).text
        assert real.asked == []


async def test_a_proxy_serves_the_browser_behind_the_wall(executable: str, httpserver: HTTPServer) -> None:
    heard = list[str]()

    def answer(request: Request) -> Response:
        heard.append(request.url)
        return Response(f"<p>{len(heard)}</p><img src=/pixel>", content_type="text/html")

    for path in ("/", "/pixel", "/two"):
        httpserver.expect_request(path).respond_with_handler(answer)
    config = BrowserConfig(screenshots=False, proxy=ProxyConfig(server=f"http://127.0.0.1:{httpserver.port}"))
    async with launch(config) as browser, environments(browser, config).open(simulation=False) as environment:
        await environment.reset(Task(id="wall/proxy", instruction="", start="http://shop.example/"))
        step = await environment.step(environment.actions.parse('goto "http://shop.example/two"'))
        assert step.observation is not None and step.observation.url.endswith("/two")
    assert {"http://shop.example/", "http://shop.example/pixel", "http://shop.example/two"} <= set(heard)
