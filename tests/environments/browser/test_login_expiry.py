"""A log-in that ends in the middle of a task is noticed and renewed, on sites that show it in different ways."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import LoginConfig
from exact.environments.browser import Browser, BrowserEnvironment
from exact.errors import EnvironmentFailure
from exact.task import Task

from .pages import do, find
from .test_login import home

pytestmark = pytest.mark.asyncio(loop_scope="session")

FIELDS = "<input name=user aria-label=User><input type=password aria-label=Password><button>Sign in</button>"
FORM = f"<form method=post action=/enter>{FIELDS}</form>"
NOTE = "<form method=post action=/save><input aria-label=Note><button>Save</button></form>"
SCRIPT = ('fill [textbox "User"] "ann"', 'fill ["Password"] "word"', 'click [button "Sign in"]')
TOKEN_APPLICATION = """<!doctype html><title>Tokens</title><main></main><script>
const main = document.querySelector('main');
async function show(path) {
  const answer = await fetch('/api' + path, {headers: {token: localStorage.token || ''}});
  if (answer.status === 401) {
    main.innerHTML = '<input aria-label=User><input type=password aria-label=Password><button>Sign in</button>';
    main.querySelector('button').onclick = async () => {
      localStorage.token = await (await fetch('/api/enter', {method: 'POST'})).text();
      show('/home');
    };
    return;
  }
  main.innerHTML = `<button>Log out</button><h1>${await answer.text()}</h1><a href="#orders">Orders</a>`;
  main.querySelector('a').onclick = () => show('/orders');
}
show('/home');
</script>"""


class Site:
    """A site with pages `/home`, `/orders` and `/plain`, and what it shows without a log-in. `sessions`: those that are good."""

    def __init__(self, server: HTTPServer, kind: str) -> None:
        self.kind, self.sessions, self.entered, self.saved = kind, set[str](), 0, 0
        self.home = f"http://localhost:{server.port}/home"
        server.expect_request("/enter", method="POST").respond_with_handler(self._enter)
        server.expect_request("/login").respond_with_data(FORM, content_type="text/html")
        server.expect_request("/api/enter", method="POST").respond_with_handler(lambda _: Response(self._session()))
        for path in ("/home", "/orders", "/plain", "/save", "/api/home", "/api/orders"):
            server.expect_request(path).respond_with_handler(self._answer)

    def _session(self) -> str:
        self.entered += 1
        self.sessions.add(f"s{self.entered}")
        return f"s{self.entered}"

    def _enter(self, request: Request) -> Response:
        return Response(status=302, headers={"Location": "/home", "Set-Cookie": f"session={self._session()}; Path=/"})

    def _answer(self, request: Request) -> Response:
        if self.kind == "token" and not request.path.startswith("/api"):
            return Response(TOKEN_APPLICATION, content_type="text/html")
        session = request.headers.get("token") if self.kind == "token" else request.cookies.get("session")
        if session not in self.sessions:
            match self.kind:
                case "redirect":
                    return Response(status=302, headers={"Location": "/login"})
                case "in place":
                    return Response(f"<title>Sign in</title>{FORM}", content_type="text/html")
                case "as a guest":
                    return Response("<title>Public</title><a href=/login>Log in</a><a href=/orders>Orders</a>", content_type="text/html")
                case _:
                    return Response(f"<title>Sign in</title>{FORM}", status=401, content_type="text/html")
        if self.kind == "token":
            return Response(request.path)
        if request.path == "/plain":
            return Response("<title>Plain</title>Printed", content_type="text/html")
        self.saved += request.path == "/save"
        links = "<a href=/orders>Orders</a><a href=/plain>Plain</a>"
        return Response(f"<title>{request.path}</title><a href=/login>Log out</a>{links}{NOTE}", content_type="text/html")


def task(site: Site) -> Task:
    return Task(id="site/home", instruction="Look.", start=site.home)


def login(site: Site, proof: str = "Log out", **more: str) -> LoginConfig:
    return LoginConfig(script=SCRIPT, url="/login" if site.kind != "token" else "", proof=proof, **more)  # type: ignore[arg-type]


async def click(environment: BrowserEnvironment, name: str) -> object:
    return await do(environment, f"click [{find(environment.observation, name).id}]")


@pytest.mark.parametrize("simulation", [False, True])
@pytest.mark.parametrize("kind", ["redirect", "in place", "as a guest", "status", "token"])
async def test_a_log_in_that_ended_is_renewed_and_the_action_repeated(
    browser: Browser, httpserver: HTTPServer, kind: str, simulation: bool
) -> None:
    site = Site(httpserver, kind)
    proof = '[button "Log out"]' if kind == "token" else '[link "Log out"]'
    async with home(browser, login(site, proof), simulation=simulation) as environment:
        await environment.reset(task(site))
        assert site.entered == 1
        site.sessions.clear()
        transition = await click(environment, "Orders")
        assert site.entered == 2
        assert "Log out" in environment.observation.text and "orders" in environment.observation.title + environment.observation.text
        assert transition.effects == () and transition.info == {}  # type: ignore[attr-defined]
        assert (await environment.reset(task(site))).text and site.entered == 2


async def test_a_page_without_the_proof_is_no_sign_of_an_expired_log_in(browser: Browser, httpserver: HTTPServer) -> None:
    site = Site(httpserver, "as a guest")
    async with home(browser, login(site)) as environment:
        await environment.reset(task(site))
        await click(environment, "Plain")
        assert environment.observation.title == "Plain" and site.entered == 1


async def test_a_write_that_met_an_expired_log_in_is_not_repeated(browser: Browser, httpserver: HTTPServer) -> None:
    site = Site(httpserver, "redirect")
    async with home(browser, login(site)) as environment:
        await environment.reset(task(site))
        await do(environment, f'fill [{find(environment.observation, "Note").id}] "half"')
        site.sessions.clear()
        transition = await click(environment, "Save")
        assert (environment.observation.title, site.entered, site.saved) == ("/home", 2, 0)
        assert "was renewed" in transition.info["refused"]  # type: ignore[attr-defined]
        assert [effect.url.rpartition("/")[2] for effect in transition.effects] == ["save"]  # type: ignore[attr-defined]
        await click(environment, "Save")
        assert site.saved == 1


@pytest.mark.parametrize("sends", ["fetch", "XMLHttpRequest"])
@pytest.mark.parametrize("kind", ["redirect", "status"])
async def test_a_script_that_saves_after_the_log_in_ended_is_noticed_though_the_page_stays(
    browser: Browser, httpserver: HTTPServer, kind: str, sends: str
) -> None:
    site = Site(httpserver, kind)
    way = "fetch('/save', {method: 'POST'})" if sends == "fetch" else "((x) => { x.open('POST', '/save'); x.send() })(new XMLHttpRequest())"
    page = f'<title>Settings</title><a href=/login>Log out</a><button onclick="{way}">Save</button>'
    httpserver.expect_request("/settings").respond_with_data(page, content_type="text/html")
    async with home(browser, login(site, '[link "Log out"]')) as environment:
        await environment.reset(task(site))
        await environment.step(environment.actions.parse(f'goto "{site.home.replace("/home", "/settings")}"'))
        site.sessions.clear()
        transition = await click(environment, "Save")
        assert "was renewed" in transition.info["refused"] and site.entered == 2  # type: ignore[attr-defined]
        transition = await click(environment, "Save")
        assert transition.info == {} and (site.saved, site.entered) == (1, 2)  # type: ignore[attr-defined]


async def test_a_script_that_is_denied_something_is_no_sign_of_an_expired_log_in(browser: Browser, httpserver: HTTPServer) -> None:
    site = Site(httpserver, "redirect")
    httpserver.expect_request("/admin").respond_with_data("no", status=403)
    page = "<title>Settings</title><a href=/login>Log out</a><button onclick=\"fetch('/admin', {method: 'POST'})\">Ask</button>"
    httpserver.expect_request("/settings").respond_with_data(page, content_type="text/html")
    async with home(browser, login(site)) as environment:
        await environment.reset(task(site))
        await environment.step(environment.actions.parse(f'goto "{site.home.replace("/home", "/settings")}"'))
        await click(environment, "Ask")
        assert site.entered == 1 and environment.observation.title == "Settings"


async def test_in_simulation_an_action_of_unknown_outcome_is_a_failure_that_a_reset_mends(browser: Browser, httpserver: HTTPServer) -> None:
    site = Site(httpserver, "redirect")
    async with home(browser, login(site), simulation=True) as environment:
        await environment.reset(task(site))
        await do(environment, f'fill [{find(environment.observation, "Note").id}] "half"')
        site.sessions.clear()
        with pytest.raises(EnvironmentFailure, match=r"expired during the task, at .*/login, and was renewed"):
            await click(environment, "Orders")
        assert (await environment.reset(task(site))).title == "/home" and site.entered == 2


async def test_a_file_renews_a_log_in_where_it_holds_a_newer_one(browser: Browser, httpserver: HTTPServer, tmp_path: Path) -> None:
    site, file = Site(httpserver, "redirect"), tmp_path / "state.json"

    def save(session: str) -> None:
        site.sessions = {session}
        cookie = {"name": "session", "value": session, "domain": "localhost", "path": "/", "expires": -1, "sameSite": "Lax"}
        file.write_text(json.dumps({"cookies": [cookie], "origins": []}))

    save("old")
    async with home(browser, LoginConfig(state=str(file), proof="Log out")) as environment:
        await environment.reset(task(site))
        save("new")
        await click(environment, "Orders")
        assert environment.observation.title == "/orders"
        site.sessions.clear()
        with pytest.raises(EnvironmentFailure, match=r"expired during the task, at .*/login: renew .*state.json with `exact login`"):
            await do(environment, f'goto "{site.home}"')


async def test_a_start_page_that_never_shows_the_proof_is_named(browser: Browser, httpserver: HTTPServer) -> None:
    site = Site(httpserver, "redirect")
    async with home(browser, login(site, "No such words")) as environment:
        with pytest.raises(EnvironmentFailure, match=r"at .*/home, which does not show 'No such words': check browser.login"):
            await environment.reset(task(site))


@pytest.mark.parametrize(
    "way", ["fetch('/purge', {method})", "x.open(method.method, '/purge'); x.send()", "f.submit()", "navigator.sendBeacon('/purge')"]
)
@pytest.mark.parametrize("method", ["DELETE", "POST", "PUT"])
async def test_while_a_log_in_runs_only_its_own_request_is_sent(browser: Browser, httpserver: HTTPServer, way: str, method: str) -> None:
    """The log-in page and the page behind it write as soon as they are shown, and so does a page at each action."""
    wanted = (
        f"<script>const method = {{method: '{method}'}}, x = new XMLHttpRequest(); addEventListener('load', () => {{ {way} }})</script>"
    )
    frame = "<iframe name=hole hidden></iframe><form id=f method=post action=/purge target=hole></form>"
    httpserver.expect_request("/login").respond_with_data(f"<title>Sign in</title>{FORM}{frame}{wanted}", content_type="text/html")
    httpserver.expect_request("/enter", method="POST").respond_with_data(
        "", status=302, headers={"Location": "/home", "Set-Cookie": "session=s1; Path=/"}
    )
    httpserver.expect_request("/home").respond_with_data(f"<a href=/login>Log out</a>{frame}{wanted}", content_type="text/html")
    httpserver.expect_request("/purge").respond_with_data("gone")
    start = Task(id="site/home", instruction="Look.", start=f"http://localhost:{httpserver.port}/home")
    config = LoginConfig(script=SCRIPT, url="/login", proof='[link "Log out"]')
    async with home(browser, config, simulation=True) as environment:
        await environment.reset(start)
    sent = [f"{request.method} {request.path}" for request, _ in httpserver.log if request.method != "GET"]
    assert sent == ["POST /enter"]
