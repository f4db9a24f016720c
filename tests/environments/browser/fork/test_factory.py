"""Environments that fork: a real browser and an application with a database in real sandboxes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from playwright._impl.browser import Browser as PlaywrightsBrowser

from exact.config import BrowserConfig
from exact.environments.base import Snapshot
from exact.environments.browser import BrowserEnvironment, BrowserFactory, PageSetup, launch
from exact.environments.browser.fork.factory import ForkingFactory, forking
from exact.environments.browser.fork.relay import Relay
from exact.environments.browser.launch.trace import PlaywrightTrace
from exact.environments.browser.page import timeouts
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sandbox.service import Service
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.task import Task
from tests.environments.browser.pages import forked

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROWS = Path(__file__).parents[2] / "sandbox" / "rows.py"
CONFIG = BrowserConfig(screenshots=False, width=600, height=400, settle_seconds=2.0)
SERVICE = Service(command=("python3", str(ROWS), "8000"), ready_url="http://127.0.0.1:8000/", reads=(str(ROWS),))
MARK = "addEventListener('DOMContentLoaded', () => document.body.append('marked'))"
SETUP = PageSetup(hosts={"rows.test": "127.0.0.1:8000"}, init_scripts=(MARK,), hidden=("form + p",))
TASK = Task(id="rows/add", instruction="Add a row.", start="http://rows.test/")


@pytest.fixture(scope="session", autouse=True)
def runsc(executable: str) -> str:
    """Skipped where there is no browser or no usable runsc."""
    try:
        return str(find_runsc().path)
    except EnvironmentFailure as error:
        pytest.skip(str(error))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def environments(runsc: str) -> AsyncIterator[ForkingFactory]:
    async with forking(CONFIG, SETUP, services=[SERVICE]) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def environment(environments: ForkingFactory) -> AsyncIterator[BrowserEnvironment]:
    """Open an environment at the task's start."""
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        yield environment


async def act(environment: BrowserEnvironment, text: str) -> Observation:
    transition = await environment.step(environment.actions.parse(text))
    assert transition.observation is not None
    return transition.observation


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)


async def half_typed(environment: BrowserEnvironment) -> Snapshot:
    """Add one row, and type half of another one into the form."""
    await act(environment, 'fill [3] "one"')
    observation = await act(environment, "click [4]")
    box = next(each.id for each in observation.elements if each.role == "textbox")
    await act(environment, f'fill [{box}] "half a senten"')
    return await environment.snapshot()


async def add(environment: BrowserEnvironment, row: str) -> str:
    """Add a row, and return the number of rows on the server."""
    box, button = (next(each.id for each in environment.observation.elements if each.role == role) for role in ("textbox", "button"))
    await act(environment, f'fill [{box}] "{row}"')
    return (await act(environment, f"click [{button}]")).text.splitlines()[0]


async def test_a_snapshot_does_not_keep_what_the_page_has_let_go_of(environment: BrowserEnvironment) -> None:
    async def heap() -> float:
        return float((await environment.episode.tabs.present.cdp.send("Runtime.getHeapUsage"))["usedSize"])

    let_go = "globalThis.kept = Array.from({length: 400000}, (_, i) => ({i})); delete globalThis.kept"
    await environment.episode.tabs.present.cdp.send("Runtime.evaluate", {"expression": let_go})
    before = await heap()
    await environment.snapshot()
    assert await heap() < before - 5e6


async def test_rows_of_one_fork_are_absent_in_its_sibling_and_the_half_typed_form_is_back(
    environment: BrowserEnvironment, environments: ForkingFactory
) -> None:
    snapshot = await half_typed(environment)
    assert "Rows: one, left" in await add(environment, "left")
    async with environments.fork(snapshot, simulation=True) as sibling:
        assert "Rows: one" in sibling.observation.text and "left" not in sibling.observation.text
        assert 'value="half a senten" focused' in sibling.observation.text
        assert "Rows: one, right" in await add(sibling, "right")
    back = await environment.restore(snapshot)
    assert 'value="half a senten" focused' in back.text and "left" not in back.text and "right" not in back.text


async def test_a_fork_cancelled_while_it_connects_does_no_harm_to_other_environments(
    environment: BrowserEnvironment, environments: ForkingFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Playwright takes a browser that goes before it was handed over for an error, and raises it in whatever it is asked next."""

    made, known = PlaywrightsBrowser.__init__, asyncio.Event()

    def telling(browser: PlaywrightsBrowser, *args: Any) -> None:
        made(browser, *args)
        known.set()

    async def asked() -> None:
        async with environments.fork(snapshot, simulation=True):
            pass

    snapshot = await half_typed(environment)
    for after in range(8):
        known.clear()
        with monkeypatch.context() as patched:
            patched.setattr(PlaywrightsBrowser, "__init__", telling)
            fork = asyncio.ensure_future(asked())
            await known.wait()
        for _ in range(after):
            await asyncio.sleep(0)
        fork.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fork
        assert 'value="half a senten" focused' in (await environment.restore(snapshot)).text


@pytest.mark.parametrize("way", ["cancelled", "killed"])
async def test_a_fork_whose_environment_goes_while_its_pages_are_taken_in_ends_soon_and_leaves_nothing(
    way: str, runsc: str, temporary: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Playwright does not miss a browser then, and would wait out the two minutes that an environment has to start."""
    admit, hand, taken, found = Relay._admit, Relay._hand, asyncio.Event(), list[Relay]()

    async def in_plain_text(relay: Relay, reader: asyncio.StreamReader) -> bytes:
        return (await admit(relay, reader)).replace(b"permessage-deflate", b"none")  # no compression

    async def until_it_knows_the_browser(relay: Relay, writer: asyncio.StreamWriter, data: bytes) -> None:
        if relay in found:
            return
        await hand(relay, writer, data)
        if b'"type":"browser"' in data:
            found.append(relay)
            taken.set()

    async def asked() -> None:
        async with environments.fork(snapshot, simulation=True):
            pass

    async with forking(CONFIG, SETUP, services=[SERVICE]) as environments, environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        snapshot = await half_typed(environment)
        with monkeypatch.context() as patched:
            patched.setattr(Relay, "_admit", in_plain_text)
            patched.setattr(Relay, "_hand", until_it_knows_the_browser)
            fork = asyncio.ensure_future(asked())
            await asyncio.wait_for(taken.wait(), 20)
            if way == "cancelled":
                fork.cancel()
            else:
                found[0].sandbox.kill()
            await asyncio.wait((fork,), timeout=20)
        assert fork.done() and (fork.cancelled() if way == "cancelled" else isinstance(fork.exception(), EnvironmentFailure))
        assert 'value="half a senten" focused' in (await environment.restore(snapshot)).text
    assert not temporary()


async def test_five_branches_of_one_snapshot_live_side_by_side(environment: BrowserEnvironment, environments: ForkingFactory) -> None:
    snapshot = await half_typed(environment)
    names = ["a", "b", "c", "d", "e"]

    async def branch(name: str, ready: asyncio.Barrier) -> str:
        async with environments.fork(snapshot, simulation=True) as environment:
            await ready.wait()
            return await add(environment, name)

    ready = asyncio.Barrier(len(names))
    rows = await asyncio.gather(*(branch(name, ready) for name in names))
    assert [row.partition("Rows: ")[2] for row in rows] == [f'one, {name}"' for name in names]
    assert "Rows: one" in environment.observation.text and await add(environment, "f") == rows[0].replace("one, a", "one, f")


async def test_a_branch_has_the_fingerprint_and_the_element_ids_of_its_snapshot(
    environment: BrowserEnvironment, environments: ForkingFactory
) -> None:
    snapshot = await half_typed(environment)
    async with environments.fork(snapshot, simulation=True) as branch:
        assert (snapshot.fidelity, snapshot.fingerprint) == ("full", branch.observation.fingerprint)
        assert branch.observation.text == environment.observation.text
        assert await act(branch, "wait") == await act(environment, "wait")


async def test_snapshots_of_branches_nest(environment: BrowserEnvironment, environments: ForkingFactory) -> None:
    rows = []
    for row in ("one", "two", "three"):
        snapshot = await environment.snapshot()
        rows.append(await add(environment, row))
        observation = await environment.restore(snapshot)
        assert observation.fingerprint == snapshot.fingerprint
        assert await add(environment, row) == rows[-1]
    assert "Rows: one, two, three" in rows[-1]


async def test_state_of_the_old_connection_is_restored(environment: BrowserEnvironment, environments: ForkingFactory) -> None:
    snapshot = await half_typed(environment)
    async with environments.fork(snapshot, simulation=True) as branch:
        assert branch.observation.text.count("marked") == 1, "an init script ran again in the document that was restored"
        transition = await branch.step(branch.actions.parse('goto "http://rows.test/other"'))
        assert transition.observation and transition.observation.text.count("marked") == 1
        await branch.page.evaluate("fetch('http://elsewhere.test/').catch(() => 0), setTimeout(() => alert('hello'), 5)")
        effects = (await branch.step(branch.actions.parse("wait"))).effects
        assert {(effect.kind, effect.url) for effect in effects} == {
            ("blocked", "http://elsewhere.test/"),
            ("dialog", "http://rows.test/other"),
        }


async def test_the_page_does_not_notice_a_restore(environment: BrowserEnvironment) -> None:
    await act(environment, 'fill [3] "x"')
    kinds = ["focus", "blur", "resize", "visibilitychange", "pagehide", "change", "scroll"]
    await environment.page.evaluate(
        "kinds => { window.seen = []; for (const k of kinds) addEventListener(k, e => seen.push(k), true) }", kinds
    )
    await environment.restore(await environment.snapshot())
    assert await environment.page.evaluate("[seen, document.activeElement.name, document.hasFocus()]") == [[], "text", True]


async def test_tabs_are_back_in_their_order(environment: BrowserEnvironment, environments: ForkingFactory) -> None:
    await environment.page.evaluate("window.open('http://rows.test/second', '_blank', 'width=200,height=100'), 0")
    before = await act(environment, "wait")
    async with environments.fork(await environment.snapshot(), simulation=True) as branch:
        assert branch.observation == before and before.url.endswith("/second") and before.tabs == ("http://rows.test/",)
        assert (await act(branch, "go_back")).url == "http://rows.test/"


async def test_a_reset_begins_with_an_empty_database(environment: BrowserEnvironment) -> None:
    await add(environment, "one")
    await environment.page.evaluate("localStorage.setItem('k', 'v'), document.cookie = 'a=b'")
    assert "Rows: none" in (await environment.reset(TASK)).text
    assert await environment.page.evaluate("[localStorage.length, document.cookie]") == [0, ""]


async def test_cookies_storage_and_the_heap_are_part_of_a_snapshot(environment: BrowserEnvironment) -> None:
    await environment.page.evaluate("() => { document.cookie = 'a=b'; sessionStorage.k = 'v'; window.heap = new Map([[1, () => 2]]) }")
    snapshot = await environment.snapshot()
    await environment.page.evaluate("() => { document.cookie = 'a=c'; sessionStorage.k = 'w'; heap.clear() }")
    await environment.restore(snapshot)
    assert await environment.page.evaluate("[document.cookie, sessionStorage.k, heap.get(1)()]") == ["a=b", "v", 2]


async def test_no_snapshot_is_taken_while_a_page_is_loading_and_the_environment_continues(environment: BrowserEnvironment) -> None:
    await environment.page.evaluate("setTimeout(() => location = '/never'), 0")
    await until(lambda: environment.obstacle == "a page is loading")
    with pytest.raises(EnvironmentFailure, match="no snapshot now: a page is loading"):
        await environment.snapshot()
    assert "Rows: none" in (await act(environment, 'goto "http://rows.test/"')).text
    assert environment.obstacle == ""


async def test_no_snapshot_is_taken_while_a_request_is_paused(environment: BrowserEnvironment) -> None:
    interceptor = environment.episode.backend.browser.interceptor
    interceptor.pause()
    await environment.page.evaluate("void fetch('/')")
    await until(lambda: environment.obstacle == "a request waits to be answered")
    with pytest.raises(EnvironmentFailure, match="no snapshot now: a request waits to be answered"):
        await environment.snapshot()
    interceptor.resume()
    await until(lambda: not environment.obstacle)
    await environment.snapshot()


async def test_a_forked_browser_shows_pages_as_a_local_one_does(environment: BrowserEnvironment) -> None:
    traits = """() => [navigator.languages, navigator.userAgent, navigator.webdriver, innerWidth, innerHeight, devicePixelRatio,
        Intl.DateTimeFormat().resolvedOptions().timeZone, document.hasFocus(), document.visibilityState,
        ...['prefers-reduced-motion: reduce', 'hover: hover', 'pointer: fine', 'prefers-color-scheme: dark']
            .map(query => matchMedia(`(${query})`).matches)]"""
    async with launch(CONFIG) as browser, BrowserFactory(browser, SETUP, CONFIG, isolated=True).open(simulation=True) as local:
        await local.reset(Task(id="t", instruction="", start=""))
        assert await environment.page.evaluate(traits) == await local.page.evaluate(traits)


async def test_a_snapshot_that_was_dropped_is_gone(environment: BrowserEnvironment, environments: ForkingFactory) -> None:
    snapshot = await environment.snapshot()
    assert environments.has(snapshot)
    environments.drop(snapshot)
    assert not environments.has(snapshot)
    with pytest.raises(EnvironmentFailure, match="dropped: return by another route"):
        await environment.restore(snapshot)
    assert "Rows: none" in (await environment.reset(TASK)).text


async def test_an_environment_that_is_idle_is_paused_and_continues_when_asked(runsc: str) -> None:
    async with forking(CONFIG, SETUP, services=[SERVICE], idle=0.0) as environments, environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        for _ in range(2):
            await until(lambda: forked(environment).browser.relay.sandbox.paused)
            assert (await act(environment, 'fill [3] "x"')).text.count('value="x"') == 1
        await until(lambda: forked(environment).browser.relay.sandbox.paused)
        async with asyncio.timeout(25):  # Playwright would wait 30 s for a paused browser to say goodbye
            assert "Rows: none" in (await environment.reset(TASK)).text
        await until(lambda: forked(environment).browser.relay.sandbox.paused)
        os.kill(environment.pid, 9)
        assert "Rows: none" in (await environment.reset(TASK)).text
        await until(lambda: forked(environment).browser.relay.sandbox.paused)


async def test_a_snapshot_that_gave_way_to_others_is_gone_and_the_newest_is_not(runsc: str) -> None:
    async with forking(CONFIG, SETUP, services=[SERVICE], limit=1) as environments, environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        first, second = await environment.snapshot(), await environment.snapshot()
        assert [environments.has(each) for each in (first, second)] == [False, True]
        with pytest.raises(EnvironmentFailure, match="another route"):
            await environment.restore(first)
        assert (await environment.restore(second)).fingerprint == second.fingerprint


async def test_a_killed_sandbox_breaks_its_environment_only_and_a_reset_repairs_it(
    environment: BrowserEnvironment, environments: ForkingFactory
) -> None:
    async with environments.fork(await environment.snapshot(), simulation=True) as sibling:
        os.kill(environment.pid, 9)
        with pytest.raises(EnvironmentFailure):
            await environment.step(environment.actions.parse("wait"))
        assert "Rows: one" in await add(sibling, "one")
        assert "Rows: none" in (await environment.reset(TASK)).text


@pytest.mark.parametrize("way", ["die", "fade"])
async def test_a_service_that_ends_breaks_the_environment_and_is_named(environment: BrowserEnvironment, way: str) -> None:
    with pytest.raises(EnvironmentFailure, match=r"rows.py 8000 ended with status"):
        await act(environment, f'goto "http://rows.test/{way}"')
        await act(environment, "wait")
    assert "Rows: none" in (await environment.reset(TASK)).text


BROKEN = """if True:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    class Broken(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(500)
    HTTPServer(("127.0.0.1", 9), Broken).serve_forever()
"""


@pytest.mark.parametrize(
    ("command", "seconds", "why"),
    [
        (("/no/such/server",), 5.0, "No such file or directory: '/no/such/server'"),
        (("sh", "-c", "exit 7"), 5.0, "`sh -c exit 7` ended with status 7 before it was ready\n    (it printed nothing)"),
        (("sh", "-c", "echo one; echo two >&2; exit 1"), 5.0, "status 1 before it was ready\n    one\n    two"),
        (("sh", "-c", "echo gone; exit 0"), 5.0, "status 0 before it was ready (a service stays in the foreground)\n    gone"),
        (("sleep", "60"), 0.2, "`sleep 60` did not answer at http://127.0.0.1:9/ within 0.2 s: [Errno 111] Connection refused"),
        (("python3", "-m", "http.server", "8123"), 6.0, "it listens at port 8123"),
        (("python3", "-c", BROKEN), 6.0, "within 6 s: status 500"),
    ],
)
async def test_a_service_that_does_not_start_is_named(runsc: str, command: tuple[str, ...], seconds: float, why: str) -> None:
    service = Service(command=command, ready_url="http://127.0.0.1:9/", seconds=seconds)
    async with forking(CONFIG, SETUP, services=[service]) as environments:
        with pytest.raises(EnvironmentFailure) as refused:
            async with environments.open(simulation=True):
                pass
    assert why in str(refused.value)


async def test_strangers_on_this_machine_do_not_get_at_the_browser(environment: BrowserEnvironment) -> None:
    address, _, path = forked(environment).browser.relay.address.removeprefix("ws://").partition("/")
    host, port = address.split(":")
    for target in ("/json/version", "/" + path.partition("/")[2]):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\n\r\n".encode())
        assert await reader.read() == b""
        writer.close()


async def test_a_page_that_loops_for_ever_breaks_its_environment_only(
    environment: BrowserEnvironment, environments: ForkingFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = await environment.snapshot()
    await environment.page.evaluate("setTimeout(() => { while (true); }, 20), 0")
    with monkeypatch.context() as impatient:
        impatient.setattr(timeouts, "PAGE_TIMEOUT", 0.5)
        with pytest.raises(EnvironmentFailure, match="did not answer"):
            await environment.step(environment.actions.parse("wait"))
    assert "Rows: none" in (await environment.restore(snapshot)).text


async def test_a_snapshot_that_is_dropped_while_it_is_forked_arrives_all_the_same(
    environment: BrowserEnvironment, environments: ForkingFactory
) -> None:
    snapshot = await half_typed(environment)

    async def arrived() -> Observation:
        async with environments.fork(snapshot, simulation=True) as branch:
            return branch.observation

    forking = asyncio.ensure_future(arrived())
    await asyncio.sleep(0)
    environments.drop(snapshot)
    assert (await forking).fingerprint == snapshot.fingerprint and not environments.has(snapshot)
    with pytest.raises(EnvironmentFailure, match="was dropped"):
        await environments.store.fork_browser(snapshot.id)


async def test_an_environment_whose_closing_is_cancelled_leaves_no_sandbox(
    environments: ForkingFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(trace: PlaywrightTrace, mask: object, **more: object) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patched, pytest.raises(asyncio.CancelledError):
        async with environments.open(simulation=True) as environment:
            await environment.reset(TASK)
            pid = environment.pid
            patched.setattr(PlaywrightTrace, "end", cancelled)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_observing_holds_writes_back_also_where_they_would_be_undone_and_the_live_environment_makes_them(runsc: str) -> None:
    async with forking(msgspec.structs.replace(CONFIG, speculation="observe"), SETUP, services=[SERVICE]) as environments:
        assert environments.isolated
        for simulation, row, effect in ((True, "none", ("blocked", "POST")), (False, "one", ("request", "POST"))):
            async with environments.open(simulation=simulation) as environment:
                await environment.reset(TASK)
                await act(environment, 'fill [3] "one"')
                sent = await environment.step(environment.actions.parse("click [4]"))
                assert effect in {(each.kind, each.method) for each in sent.effects}
                assert f'Rows: {row}"' in (await act(environment, 'goto "http://rows.test/"')).text


async def test_a_branch_that_is_let_go_of_takes_its_debugging_port_along(environments: ForkingFactory) -> None:
    async with environments.open(simulation=True) as environment:
        host, port = forked(environment).browser.relay.address.removeprefix("ws://").partition("/")[0].split(":")
        (await asyncio.open_connection(host, int(port)))[1].close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))
