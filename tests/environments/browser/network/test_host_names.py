"""Names of hosts lead a guarded browser where they lead a plain one: below `localhost`, of other scripts, and in any spelling."""

from __future__ import annotations

import pytest
from playwright.async_api import async_playwright
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import BrowserConfig
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.observation import Observation
from exact.task import Task
from tests.environments.browser.pages import find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG = BrowserConfig(screenshots=False, width=600, height=400, sandbox="never")
PAGE = "<title>{host}</title><p>{host}<p><a href='//{link}/'>Over</a>"
LOCAL = ("shop.localhost", "a.b.localhost", "SHOP.LocalHost", "büro.localhost", "xn--bro-hoa.localhost", "straße.localhost", "localhost")
MAPPED = ("bücher.test", "xn--bcher-kva.test", "Bücher。Test", "例え.test", "straße.test", "a.bücher.test")


@pytest.fixture
def site() -> HTTPServer:
    """Serve pages that say by which host they were asked for, each with a link to the host that the query names."""
    server = HTTPServer(host="127.0.0.1")

    def answer(request: Request) -> Response:
        link = request.args.get("to", "localhost")
        return Response(
            PAGE.format(host=request.headers["Host"].rpartition(":")[0], link=f"{link}:{server.port}"),
            content_type="text/html; charset=utf-8",
        )

    server.expect_request("/").respond_with_handler(answer)
    return server


async def seen_at(
    config: BrowserConfig, start: str, hosts: dict[str, str], allowed: tuple[str, ...] = (), follow: bool = False
) -> Observation:
    async with (
        launch(config, hosts) as browser,
        BrowserFactory(browser, PageSetup(hosts=hosts), config, isolated=True).open(simulation=False) as environment,
    ):
        first = await environment.reset(Task(id="name", instruction="Look.", start=start, origins=allowed))
        return await look(environment, f"click [{find(first, 'Over').id}]") if follow else first


@pytest.mark.parametrize("host", LOCAL)
async def test_a_name_below_localhost_leads_to_this_machine_as_in_a_plain_browser(site: HTTPServer, executable: str, host: str) -> None:
    with site:
        address = f"http://{host}:{site.port}/"
        async with async_playwright() as playwright:
            plain = await playwright.chromium.launch(executable_path=executable)
            page = await plain.new_page()
            await page.goto(address)
            expected = await page.title()
            await plain.close()
        assert (await seen_at(CONFIG, address, {})).title == expected


@pytest.mark.parametrize("spelled", MAPPED)
async def test_a_name_of_another_script_is_found_in_the_table_of_hosts_in_any_spelling(
    site: HTTPServer, executable: str, spelled: str
) -> None:
    with site:
        there = f"127.0.0.1:{site.port}"
        hosts = dict.fromkeys(("bücher.test", "例え.test", "xn--strae-oqa.test", "a.bücher.test"), there)
        seen = await seen_at(CONFIG, f"http://{spelled}:{site.port}/", hosts)
    names = {
        "b": "xn--bcher-kva.test",
        "x": "xn--bcher-kva.test",
        "B": "xn--bcher-kva.test",
        "例": "xn--r8jz45g.test",
        "s": "xn--strae-oqa.test",
    }
    assert seen.title == ("a.xn--bcher-kva.test" if spelled.startswith("a.") else names[spelled[0]])


@pytest.mark.parametrize("to", ["büro.localhost", "shop.localhost", "bücher.test"])
async def test_a_link_to_such_a_name_is_followed_if_the_task_allows_its_origin(site: HTTPServer, executable: str, to: str) -> None:
    with site:
        hosts, origin = {"bücher.test": f"127.0.0.1:{site.port}"}, f"http://{to}:{site.port}"
        start = f"http://localhost:{site.port}/?to={to}"
        seen = await seen_at(CONFIG, start, hosts, (origin,), follow=True)
    assert seen.title.endswith(to.replace("büro", "xn--bro-hoa").replace("bücher", "xn--bcher-kva"))
