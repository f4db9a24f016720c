"""Side effects of what the browser refuses by itself, of what is blocked during a reset, and writes that are redirected."""

from __future__ import annotations

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import BrowserConfig
from exact.environments.base import SideEffect
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup
from exact.task import Task
from tests.conftest import CONFIG
from tests.environments.browser.outside import serving
from tests.environments.browser.pages import find

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def click(environment: BrowserEnvironment, name: str) -> tuple[SideEffect, ...]:
    step = await environment.step(environment.actions.parse(f"click [{find(environment.observation, name).id}]"))
    return step.effects


SOCKETS = {
    "page": "new WebSocket('{url}')",
    "worker": "new Worker('/script?run=' + encodeURIComponent('new WebSocket(`{url}`)'))",
    "empty frame": "document.body.append(Object.assign(document.createElement('iframe'), {{name: 'f'}})); new f.WebSocket('{url}')",
}


@pytest.mark.parametrize("code", SOCKETS.values(), ids=SOCKETS.keys())
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_refused_websocket_is_a_side_effect_of_its_step(browser: Browser, code: str, host: str) -> None:
    with serving() as site:
        url = f"ws://{host}:{site.port}/socket"
        site.pages["/"] = f'<button onclick="{code.format(url=url)}">Go</button>'
        task = Task(id="effects/socket", instruction="", start=f"http://localhost:{site.port}/")
        async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=True) as environment:
            await environment.reset(task)
            effects = [*await click(environment, "Go"), *(await environment.step(environment.actions.parse("wait"))).effects]
    own = host == "localhost"
    assert [(e.kind, e.method, e.url, e.is_blocked) for e in effects] == [("blocked", "WEBSOCKET", url, own)]
    assert site.sockets == 0


async def test_a_page_that_connects_again_and_again_reports_its_socket_once_a_step(browser: Browser) -> None:
    with serving() as site:
        site.pages[
            "/"
        ] = """<p>-</p><script>const connect = () => { const socket = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
            socket.onclose = () => setTimeout(connect, 20); }; connect()</script><button>Go</button>"""
        task = Task(id="effects/again", instruction="", start=f"http://localhost:{site.port}/")
        async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=True) as environment:
            await environment.reset(task)
            steps = [await click(environment, "Go") for _ in range(3)]
    assert all(len([effect for effect in effects if not effect.late]) <= 1 for effects in steps)
    assert not any(effect.is_blocked for effects in steps for effect in effects)


async def test_what_was_blocked_during_a_reset_is_reported_by_the_first_step(browser: Browser) -> None:
    with serving() as site:
        site.pages[
            "/"
        ] = f"""<img src="http://127.0.0.1:{site.port}/pixel"><script>fetch('/text', {{method: 'DELETE'}}).catch(() => 0)</script>
            <button>Go</button>"""
        task = Task(id="effects/reset", instruction="", start=f"http://localhost:{site.port}/")
        async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=True) as environment:
            for _ in range(2):
                await environment.reset(task)
                effects = await click(environment, "Go")
                assert {(e.kind, e.method, e.late, e.is_blocked) for e in effects} == {
                    ("blocked", "GET", True, False),
                    ("blocked", "DELETE", True, False),
                }
                assert not await click(environment, "Go")
    assert "DELETE /text" not in site.asked


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("how", ["form", "fetch"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_write_that_is_redirected_to_an_allowed_origin_arrives(
    browser: Browser, httpserver: HTTPServer, status: int, how: str, host: str
) -> None:
    arrived = list[tuple[str, str, bytes]]()

    def land(request: Request) -> Response:
        arrived.append((request.method, request.host.partition(":")[0], request.get_data()))
        return Response("<p>Landed", content_type="text/html", headers={"Access-Control-Allow-Origin": "*"})

    target = f"http://{host}:{httpserver.port}/land"
    page = "<form method=post action=/go><input name=a value=b><button>form</button></form>"
    page += "<button onclick=\"fetch('/go', {method: 'POST', body: new URLSearchParams({a: 'b'})}).catch(() => 0)\">fetch</button>"
    httpserver.expect_request("/").respond_with_data(page, content_type="text/html")
    httpserver.expect_request("/go").respond_with_data("", status=status, headers={"Location": target, "Access-Control-Allow-Origin": "*"})
    httpserver.expect_request("/land").respond_with_handler(land)
    config = BrowserConfig(screenshots=False, allow_origins=(f"http://{host}:{httpserver.port}",))
    task = Task(id="effects/redirect", instruction="", start=f"http://localhost:{httpserver.port}/")
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as environment:
        await environment.reset(task)
        effects = await click(environment, how)
    assert arrived == [("POST", host, b"a=b")]
    assert [(e.kind, e.url, e.status) for e in effects] == [
        ("request", f"http://localhost:{httpserver.port}/go", status),
        ("request", target, 200),
    ]
