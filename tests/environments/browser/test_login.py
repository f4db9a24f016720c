"""Log-ins: by file, script, header and certificate; renewed when they expire, and never told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from html import escape
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.action import Action
from exact.config import BrowserConfig, CertificateConfig, LoginConfig, ProxyConfig
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup, launch
from exact.environments.browser.interaction import Interaction
from exact.environments.browser.network.trust import pinned_keys
from exact.environments.sites.site import Account, Outside
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.task import Task
from tests.http_server import BriefServer

from ..leaps import Leaps
from .outside import serving
from .pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

FORM = """<title>Log in</title><form method=post action=/enter><input name=user aria-label=User>
<input type=password name=word aria-label=Password><button>Sign in</button></form>"""
SCRIPT = ('fill [textbox "User"] "<user>"', 'fill ["Password"] "<word>"', 'click [button "Sign in"]')
SECRETS = {"user": "ann", "word": "$EXACT_TEST_WORD"}
WORD = "s3cret-word"


@pytest.fixture(autouse=True)
def word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACT_TEST_WORD", WORD)


class Shop:
    """A site behind a form. `sessions`: those that are good."""

    def __init__(self, server: HTTPServer) -> None:
        self.sessions: set[str] = set()
        self.entered = 0
        self.home = f"http://localhost:{server.port}/home"
        server.expect_request("/form").respond_with_data(FORM, content_type="text/html")
        server.expect_request("/enter", method="POST").respond_with_handler(self._enter)
        server.expect_request("/home").respond_with_handler(self._home)

    def _enter(self, request: Request) -> Response:
        if request.form["word"] != WORD:
            return Response(status=302, headers={"Location": "/form"})
        self.entered += 1
        self.sessions.add(f"s{self.entered}")
        return Response(status=302, headers={"Location": "/home", "Set-Cookie": f"session=s{self.entered}; Path=/"})

    def _home(self, request: Request) -> Response:
        if request.cookies.get("session") not in self.sessions:
            return Response(status=302, headers={"Location": "/form"})
        return Response(f"<title>Home</title><p>Hello ann, your word is {WORD}<input aria-label=Word>", content_type="text/html")


@pytest.fixture
def shop(httpserver: HTTPServer) -> Shop:
    return Shop(httpserver)


@asynccontextmanager
async def opened(browser: Browser, config: BrowserConfig, *, simulation: bool = False) -> AsyncIterator[BrowserEnvironment]:
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=simulation) as environment:
        yield environment


@asynccontextmanager
async def home(browser: Browser, login: LoginConfig, *, simulation: bool = False) -> AsyncIterator[BrowserEnvironment]:
    async with opened(browser, BrowserConfig(screenshots=False, login=login), simulation=simulation) as environment:
        yield environment


def task(shop: Shop) -> Task:
    return Task(id="shop/home", instruction="Look.", start=shop.home)


async def test_a_script_logs_in_with_secrets_that_no_observation_shows(browser: Browser, shop: Shop) -> None:
    async with home(browser, LoginConfig(script=SCRIPT, secrets=SECRETS, expired="/form$"), simulation=True) as environment:
        seen = await environment.reset(task(shop))
        assert seen.title == "Home" and "your word is <secret:word>" in seen.text and WORD not in repr(seen)
        typed = await look(environment, f'fill [{find(seen, "Word").id}] "<word>"')
        assert find(typed, "Word").value == "<secret:word>"
        assert await environment.page.evaluate("document.querySelector('input').value") == WORD
        with pytest.raises(Exception, match="no page to go back to"):
            await do(environment, "go_back")


async def test_each_step_of_a_script_has_the_whole_of_a_pages_limit(browser: Browser, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    leaps, act = Leaps(monkeypatch), Interaction.act

    async def slow(interaction: Interaction, action: Action) -> None:
        await leaps.by(25)
        await act(interaction, action)

    monkeypatch.setattr(Interaction, "act", slow)
    async with home(browser, LoginConfig(script=SCRIPT, secrets=SECRETS, expired="/form$")) as environment:
        assert (await environment.reset(task(shop))).title == "Home"


async def test_a_session_is_used_again_and_renewed_when_it_has_expired(browser: Browser, shop: Shop) -> None:
    async with home(browser, LoginConfig(script=SCRIPT, secrets=SECRETS, expired="/form$")) as environment:
        for _ in range(2):
            assert (await environment.reset(task(shop))).title == "Home"
        assert shop.entered == 1
        shop.sessions.clear()
        assert (await environment.reset(task(shop))).title == "Home" and shop.entered == 2
        shop.sessions.clear()
        assert (await look(environment, f'goto "{shop.home}"')).title == "Home" and shop.entered == 3
        assert (await environment.reset(task(shop))).title == "Home" and shop.entered == 3


async def test_a_script_that_does_not_fit_names_the_step(browser: Browser, shop: Shop) -> None:
    async with home(browser, LoginConfig(script=('fill [textbox "Usr"] "x"',), url="/form", expired="/form$")) as environment:
        with pytest.raises(EnvironmentFailure, match=r"step 1, .*there is no textbox 'Usr': did you mean 'User'"):
            await environment.reset(task(shop))
    async with home(browser, LoginConfig(script=SCRIPT, secrets={**SECRETS, "word": "wrong"}, expired="/form$")) as environment:
        with pytest.raises(EnvironmentFailure, match=r"not logged in after the log-in script, at .*: check browser.login.secrets"):
            await environment.reset(task(shop))
    async with home(browser, LoginConfig(script=SCRIPT, secrets={"user": "$EXACT_NOWHERE"})) as environment:
        with pytest.raises(UsageError, match="export EXACT_NOWHERE"):
            await environment.reset(task(shop))


async def test_a_state_file_logs_in_and_an_expired_one_says_what_to_do(browser: Browser, shop: Shop, tmp_path: Path) -> None:
    shop.sessions.add("kept")
    site, file = shop.home.removesuffix("/home"), tmp_path / "state.json"
    cookie = {"name": "session", "value": "kept", "domain": "localhost", "path": "/", "expires": -1, "sameSite": "Lax", "extra": 1}
    storage = [{"origin": site, "localStorage": [{"name": "theme", "value": "dark"}]}]
    file.write_text(json.dumps({"cookies": [cookie], "origins": storage}))
    async with home(browser, LoginConfig(state=str(file), expired="/form$")) as environment:
        assert (await environment.reset(task(shop))).title == "Home"
        assert await environment.page.evaluate("localStorage.theme") == "dark"
        shop.sessions.clear()
        with pytest.raises(EnvironmentFailure, match=r"not logged in at .*/form: renew .*state.json with `exact login`"):
            await environment.reset(task(shop))
    async with home(browser, LoginConfig(state=str(tmp_path / "none.json"))) as environment:
        with pytest.raises(UsageError, match="make it with `exact login`"):
            await environment.reset(task(shop))


async def test_headers_and_basic_authentication_go_to_the_tasks_origins_only(browser: Browser, httpserver: HTTPServer) -> None:
    heard: list[tuple[str, str, str]] = []

    def answer(request: Request) -> Response:
        heard.append((request.host.partition(":")[0], request.headers.get("X-Key", ""), request.headers.get("Authorization", "")))
        if "Authorization" not in request.headers:
            return Response("who?", status=401, headers={"WWW-Authenticate": "Basic"})
        return Response(f"<p>In</p><img src='http://127.0.0.1:{httpserver.port}/pixel'>", content_type="text/html")

    httpserver.expect_request("/in").respond_with_handler(answer)
    httpserver.expect_request("/pixel").respond_with_handler(answer)
    start = Task(id="shop/in", instruction="", start=f"http://localhost:{httpserver.port}/in")
    login = LoginConfig(headers={"X-Key": "k"}, user="ann", password="$EXACT_TEST_WORD")
    config = BrowserConfig(screenshots=False, allow_origins=(f"http://127.0.0.1:{httpserver.port}",), login=login)
    async with opened(browser, config) as environment:
        assert "In" in (await environment.reset(start)).text
    assert heard[0][:2] == ("localhost", "k") and heard[0][2].startswith("Basic ")
    assert [each for each in heard if each[0] != "localhost"] == [("127.0.0.1", "", "")]
    async with home(browser, LoginConfig(headers={"X-Key": "k"})) as environment:
        with pytest.raises(EnvironmentFailure, match="not logged in"):
            await environment.reset(start)


async def test_accounts_are_leased_without_a_sandbox_too(browser: Browser, shop: Shop) -> None:
    accounts = tuple(Account(name=name, fields={"user": name, "word": "$EXACT_TEST_WORD"}) for name in ("ann", "bob"))
    environments = BrowserFactory(
        browser,
        PageSetup(),
        BrowserConfig(screenshots=False, login=LoginConfig(script=SCRIPT)),
        isolated=False,
        outside=Outside(accounts=accounts),
    )
    async with environments.open(simulation=False) as one, environments.open(simulation=False) as other:
        seen = [(await each.reset(task(shop))).text for each in (one, other)]
    assert "Hello <secret:user>" in seen[0] and WORD not in "".join(seen) and shop.entered == 2


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with an authority, a site's and a client's certificate that it signed, and another authority."""
    folder = tmp_path_factory.mktemp("authority")
    new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    for name in ("ca", "other"):
        subprocess.run(f"{new} -subj /CN={name} -keyout {name}.key -out {name}.pem".split(), cwd=folder, check=True, capture_output=True)
    for name, more in (("site", "-addext subjectAltName=DNS:localhost"), ("client", "-addext extendedKeyUsage=clientAuth")):
        signed = f"{new} -CA ca.pem -CAkey ca.key -subj /CN={name} {more} -keyout {name}.key -out {name}.pem"
        subprocess.run(signed.split(), cwd=folder, check=True, capture_output=True)
    pack = "openssl pkcs12 -export -in client.pem -inkey client.key -out client.pfx -passout pass:sesame"
    subprocess.run(pack.split(), cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "site.key").read_text() + (folder / "site.pem").read_text())
    return folder


async def test_a_site_is_trusted_by_the_users_own_authority_only(executable: str, authority: Path) -> None:
    with serving(authority / "both.pem") as site:
        site.pages["/"] = "<p>Secured"
        address = f"https://localhost:{site.port}"
        config = BrowserConfig(screenshots=False, authorities=(str(authority / "ca.pem"),))
        found = await pinned_keys(config.authorities, [address])
        async with (
            launch(config, pins=found) as browser,
            BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as environment,
        ):
            assert "Secured" in (await environment.reset(Task(id="s", instruction="", start=address))).text
        with pytest.raises(EnvironmentFailure, match="not signed by the authorities"):
            await pinned_keys((str(authority / "other.pem"),), [address])
        with pytest.raises(UsageError, match="holds no certificates"):
            await pinned_keys((str(authority / "ca.key"),), [address])


@pytest.mark.parametrize("form", ["pem", "pfx"])
async def test_a_client_shows_its_certificate(executable: str, authority: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(authority / "ca.pem"))
    monkeypatch.setenv("EXACT_TEST_PASSPHRASE", "sesame")
    with serving(authority / "both.pem", client=authority / "ca.pem") as site:
        site.pages["/"] = "<p>Known"
        address = f"https://localhost:{site.port}"
        certificate = CertificateConfig(certificate=str(authority / "client.pem"), key=str(authority / "client.key"))
        if form == "pfx":
            certificate = CertificateConfig(pfx=str(authority / "client.pfx"), passphrase="$EXACT_TEST_PASSPHRASE")
        config = BrowserConfig(screenshots=False, authorities=(str(authority / "ca.pem"),), login=LoginConfig(certificate=certificate))
        async with (
            launch(config) as browser,
            BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as environment,
        ):
            assert "Known" in (await environment.reset(Task(id="s", instruction="", start=address))).text
    assert set(site.peers) == {"client"}


async def test_a_proxy_gets_all_requests_but_those_for_the_hosts_in_its_bypass(
    executable: str, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXACT_TEST_PROXY", "word")
    heard: list[tuple[str, str]] = []

    def answer(request: Request) -> Response:
        credentials = request.headers.get("Proxy-Authorization", "")
        if not credentials:
            return Response("", 407, {"Proxy-Authenticate": 'Basic realm="proxy"'})
        heard.append((request.headers.get("Host", ""), credentials))
        return Response("<p>By proxy", content_type="text/html")

    httpserver.expect_request("/there").respond_with_handler(answer)
    server = f"http://127.0.0.1:{httpserver.port}"
    proxy = ProxyConfig(server=server, bypass="127.0.0.1", user="ann", password="$EXACT_TEST_PROXY")
    config = BrowserConfig(screenshots=False, proxy=proxy)
    async with AsyncExitStack() as stack:
        beside = stack.enter_context(BriefServer())
        beside.expect_request("/here").respond_with_data("<p>Directly", content_type="text/html")
        browser = await stack.enter_async_context(launch(config))
        environment = await stack.enter_async_context(opened(browser, config))
        assert "By proxy" in (await environment.reset(Task(id="s", instruction="", start="http://shop.test/there"))).text
        start = f"http://127.0.0.1:{beside.port}/here"
        assert "Directly" in (await environment.reset(Task(id="s", instruction="", start=start))).text
    assert heard == [("shop.test", "Basic YW5uOndvcmQ=")]


async def test_a_secret_is_neither_in_the_html_nor_in_the_description_of_a_step(
    browser: Browser, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXACT_TEST_WORD", word := "top&<secret>")
    page = f"<a href='/{'x' * 192}topsecret'>{escape(word)}</a><a href=/file>File</a><a href=/topsecret.bin download>Load</a>"
    page += f"<button onclick=\"alert('{'x' * 194}topsecret')\">Ask</button>"
    httpserver.expect_request("/").respond_with_data(page, content_type="text/html")
    header = {"Content-Disposition": "attachment; filename=topsecret.bin"}
    httpserver.expect_request("/file").respond_with_data(b"x" * 2000, headers=header)
    httpserver.expect_request("/topsecret.bin").respond_with_data(b"x")
    login = LoginConfig(secrets={"word": "$EXACT_TEST_WORD", "name": "topsecret"})
    async with opened(browser, BrowserConfig(screenshots=False, html=True, download_bytes=1000, login=login)) as environment:
        seen = await environment.reset(Task(id="shop", instruction="", start=f"http://localhost:{httpserver.port}/"))
        assert f">{escape('<secret:word>')}</a>" in seen.html and "<secret:word>" in seen.text and "top" not in repr(seen)
        with pytest.raises(ActionError, match=r"^<secret:name>\.bin was not downloaded"):
            await do(environment, f"click [{find(seen, 'File').id}]")
        loaded = await look(environment, f"click [{find(seen, 'Load').id}]")
        while not loaded.downloads:  # a busy browser begins it late
            loaded = await look(environment, "wait")
        assert loaded.downloads[0].startswith("<secret:name>.bin (1 bytes") and "top" not in repr(loaded)
        await do(environment, f"click [{find(seen, 'Ask').id}]")
        with pytest.raises(ActionError, match=r"says 'x+<secre'") as cut:
            await do(environment, "scroll down")
        assert "top" not in str(cut.value)
