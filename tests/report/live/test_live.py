"""The live view in real browsers, beside real searches."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Error, Page, expect

from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import form
from exact.report.model.model import report
from exact.runs.journal import events as ev
from exact.runs.journal.commands import mailbox
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import RunFolder
from exact.runs.runner import Runner
from tests.report.journals import hostile_run, shop_run
from tests.runs.toys import config, toy_runner

uvicorn = pytest.importorskip("uvicorn", reason="the extra `live` is not installed")
pytest.importorskip("starlette", reason="the extra `live` is not installed")

pytestmark = pytest.mark.asyncio(loop_scope="session")


@contextmanager
def served(path: Path, **options: Any) -> Iterator[str]:
    """Serve a live view in its own thread, and yield its address."""
    from exact.report.live.serve import application

    settings = uvicorn.Config(
        application(path, **options), port=0, log_level="error", ws="none", lifespan="off", timeout_graceful_shutdown=1, access_log=False
    )
    server = uvicorn.Server(settings)
    listening = settings.bind_socket()
    listening.listen()  # what is asked before the server runs waits
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@asynccontextmanager
async def watching(chromium: Browser, address: str) -> AsyncIterator[Page]:
    """Open a page of the live view. Fails on an error, or on a request to another server."""
    wrong: list[str] = []
    page = await chromium.new_page()
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", lambda request: None if request.url.startswith(address.rpartition("/r/")[0][:21]) else wrong.append(request.url))
    try:
        await page.goto(address)
        yield page
        assert not wrong
    finally:
        await page.close()


class Gate:
    """Lets a search take as many steps in its environments as it is told; all, once it is open."""

    def __init__(self, steps: int) -> None:
        self.steps, self.open = asyncio.Semaphore(steps), False

    async def __call__(self) -> None:
        if not self.open:
            await self.steps.acquire()

    def let(self, steps: int) -> None:
        for _ in range(steps):
            self.steps.release()

    def let_all(self) -> None:
        self.open = True
        self.let(100)  # whoever waits


def searching(folder: Path, gate: Gate, *, iterations: int = 200) -> Runner:
    settings = config(search={"algorithm": "mcts", "iterations": iterations, "k": 4, "commit": "plan"}, limits={"actions": 4})
    return toy_runner(folder, ToyFactory(form(6), latency=gate), settings, noise=0.1)


def journal_of(runner: Runner) -> Path:
    return runner.folder.task_folder(runner.folder.manifest.tasks[0]) / "journal.jsonl"


async def states(page: Page) -> int:
    return int(await page.evaluate("DATA.nodes.length"))


async def until(page: Page, condition: str) -> None:
    """Wait for a condition. (The page's own policy forbids what Playwright's wait_for_function does.)"""
    async with asyncio.timeout(20):
        while True:
            with suppress(Error):  # the page is loading itself again
                if await page.evaluate(condition):
                    return
            await asyncio.sleep(0.03)


async def begun(runner: Runner) -> asyncio.Task[Any]:
    """Return the run under way with its journal."""
    running = asyncio.create_task(runner.run())
    async with asyncio.timeout(10):
        while not journal_of(runner).exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return running


async def test_two_browsers_watch_a_search_and_one_comes_back(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate(30)
    runner = searching(tmp_path / "run", gate)
    with served(tmp_path) as address:
        running = await begun(runner)
        url = f"{address}/run/0/"
        async with watching(chromium, url) as one, watching(chromium, url) as two:
            for page in (one, two):
                await until(page, "DATA.nodes.length > 4")
            before = await states(one)
            gate.let(60)
            for page in (one, two):
                await until(page, f"DATA.nodes.length > {before}")
            await two.context.set_offline(True)
            gone = await states(two)
            gate.let(150)
            await until(one, f"DATA.nodes.length > {gone + 3}")
            await two.context.set_offline(False)
            gate.let_all()
            (line,) = await running
            for page in (one, two):
                await expect(page.locator("#state")).to_have_text("ended", timeout=20_000)
            kept = "JSON.stringify([...NODES.values()].sort((a, b) => a.id - b.id).map(n => [n.id, n.visits, n.value]))"
            assert await one.evaluate(kept) == await two.evaluate(kept)
            assert await states(one) == await states(two) > gone
            assert await one.evaluate("steering.standing") == "ended" and line.status == "scored"
            await expect(one.locator(".ending")).to_have_text("Solved" if line.score == 1 else "Not solved")
    assert sum(isinstance(event, ev.Told) for event in read_journal(journal_of(runner))) > 200


async def test_the_live_page_at_the_end_holds_what_the_report_holds(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate(10)
    runner = searching(tmp_path / "run", gate, iterations=40)
    with served(tmp_path) as address:
        running = await begun(runner)
        async with watching(chromium, f"{address}/run/0/") as page:
            await until(page, "DATA.nodes.length > 1")
            gate.let_all()
            await running
            await expect(page.locator("#state")).to_have_text("ended", timeout=15_000)
            whole = report(runner.folder, runner.folder.manifest.tasks[0])
            assert await page.evaluate("DATA.nodes.map(n => [n.id, n.visits, n.status]).sort((a, b) => a[0] - b[0])") == [
                [node.id, node.visits, node.status] for node in whole.nodes
            ]
            assert await page.evaluate("DATA.timeline.length") == len(whole.timeline)


async def test_a_browser_pauses_prunes_expands_resumes_and_stops_a_search(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate(60)
    runner = searching(tmp_path / "run", gate, iterations=2000)
    with served(tmp_path) as address:
        running = await begun(runner)
        async with watching(chromium, f"{address}/run/0/") as page:
            await until(page, "DATA.nodes.length > 8")
            await page.get_by_role("button", name="Pause", exact=True).click()
            gate.let_all()
            await expect(page.locator("#state")).to_have_text("paused")
            await page.locator("#item-1").click()
            await page.get_by_role("button", name="Prune here").click()
            await expect(page.locator("#reply")).to_have_text("Done: prune")
            await expect(page.locator("#item-1")).to_have_attribute("class", re.compile(r"\bpruned\b"))
            await page.locator("#item-0").click()
            await page.get_by_role("button", name="Expand here").click()
            await expect(page.locator("#reply")).to_contain_text("state 0 was tried")
            gate.open = False
            await page.get_by_role("button", name="Resume").click()
            await expect(page.locator("#state")).to_have_text("searching")
            await page.get_by_role("button", name="Stop now").click()
            await expect(page.locator("#reply")).to_have_text("Done: stop")
            gate.let_all()
            await running
            await expect(page.locator("#state")).to_have_text("ended", timeout=15_000)
            await expect(page.get_by_role("button", name="Pause")).to_be_disabled()
    said = [event for event in read_journal(journal_of(runner)) if isinstance(event, ev.Commanded)]
    assert [event.command for event in said] == ["pause", "prune", "expand", "resume", "stop"]
    assert all("127.0.0.1" in event.by for event in said)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, RunFolder]]:
    folder = tmp_path_factory.mktemp("runs")
    run = shop_run(folder / "shop")
    with served(folder, hosts=["view.example"]) as address:
        yield address, run


def asked(address: str, path: str, method: str = "GET", data: bytes | None = None, **headers: str) -> tuple[int, str, dict[str, str]]:
    """Status, body and headers of one answer."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(address + path, data=data, headers=names, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.headers.items()}
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), {k.lower(): v for k, v in error.headers.items()}


def own(address: str) -> dict[str, str]:
    """Return the headers of a page of the view itself."""
    return {"Origin": address, "Content_Type": "application/json"}


REFUSED: dict[str, Callable[[str], dict[str, str]]] = {
    "a foreign name": lambda address: {"Host": "evil.example"},
    "a foreign name with the right port": lambda address: {"Host": f"evil.example:{address.rpartition(':')[2]}"},
    "a name that begins alike": lambda address: {"Host": "localhost.evil.example"},
    "a foreign address": lambda address: {"Host": "93.184.216.34"},
    "an address that leads here": lambda address: {"Host": "0.0.0.0"},
    "a name behind an own one": lambda address: {"Host": "localhost@evil.example"},
    "no name": lambda address: {"Host": ""},
    "another site's script": lambda address: {"Origin": "http://evil.example"},
    "another port's script": lambda address: {"Origin": "http://127.0.0.1:1"},
    "an origin that does not read": lambda address: {"Origin": "http://["},
    "a page without origin": lambda address: {"Origin": "null"},
    "another site's picture": lambda address: {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"},
    "another site's frame": lambda address: {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"},
}


@pytest.mark.parametrize(
    "path", ["/", "/events", "/shop/", "/shop/events", "/shop/0/", "/shop/0/events", "/shop/0/picture/x", "/metrics", "/none"]
)
@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED.keys())
async def test_a_request_from_another_origin_is_refused(
    view: tuple[str, RunFolder], path: str, headers: Callable[[str], dict[str, str]]
) -> None:
    address, _ = view
    assert (await asyncio.to_thread(asked, address, path, **headers(address)))[0] == 403


@pytest.mark.parametrize("host", ["localhost", "localhost.", "127.0.0.1", "[::1]", "view.example", "VIEW.example"])
async def test_the_servers_own_names_are_accepted(view: tuple[str, RunFolder], host: str) -> None:
    address, _ = view
    status, body, headers = await asyncio.to_thread(asked, address, "/shop/0/", Host=f"{host}:{address.rpartition(':')[2]}")
    assert status == 200 and "Buy two packs of green tea." in body
    assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"


async def test_a_link_on_another_site_leads_to_a_page_but_to_nothing_else(view: tuple[str, RunFolder]) -> None:
    address, _ = view
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert (await asyncio.to_thread(asked, address, "/shop/0/", **link))[0] == 200
    assert (await asyncio.to_thread(asked, address, "/shop/0/events", **link))[0] == 403


@pytest.mark.parametrize("path", [f"/shop/{'9' * 5000}/", f"/shop/0/events?since=x.{'9' * 5000}", f"/{'s' * 9000}/"])
async def test_an_address_without_end_is_refused(view: tuple[str, RunFolder], path: str) -> None:
    assert (await asyncio.to_thread(asked, view[0], path))[0] == 414


COMMANDS: dict[str, tuple[dict[str, str], bytes, int]] = {
    "no origin": ({"Content_Type": "application/json"}, b'{"name":"stop"}', 403),
    "another origin": ({"Content_Type": "application/json", "Origin": "http://evil.example"}, b'{"name":"stop"}', 403),
    "a form": ({"Content_Type": "text/plain", "Origin": ""}, b'{"name":"stop"}', 415),
    "no json": ({"Content_Type": "application/json", "Origin": ""}, b"stop", 400),
    "no command": ({"Content_Type": "application/json", "Origin": ""}, b'{"name":"explode"}', 400),
    "more than a command": ({"Content_Type": "application/json", "Origin": ""}, b'{"name":"stop","shell":"rm"}', 400),
    "a megabyte": ({"Content_Type": "application/json", "Origin": ""}, b'{"name":"' + b"x" * 1_000_000, 413),
    "a command and blanks": ({"Content_Type": "application/json", "Origin": ""}, b'{"name":"stop"}' + b" " * 5_000, 413),
    "after the end": ({"Content_Type": "application/json", "Origin": ""}, b'{"name":"stop"}', 409),
}


@pytest.mark.parametrize(("headers", "data", "status"), COMMANDS.values(), ids=COMMANDS.keys())
async def test_an_invalid_command_of_the_view_is_refused(
    view: tuple[str, RunFolder], headers: dict[str, str], data: bytes, status: int
) -> None:
    address, run = view
    sent = {name: value or address for name, value in headers.items()}
    assert (await asyncio.to_thread(asked, address, "/shop/0/command", "POST", data, **sent))[0] == status
    assert not mailbox(run.task_folder(run.manifest.tasks[0]) / "journal.jsonl").exists()


def sending(address: str, kind: str, length: int) -> socket.socket:
    """Open a connection on which a command has begun, and which takes one answer."""
    host = address.removeprefix("http://")
    connection = socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), timeout=60)
    head = [
        "POST /shop/0/command HTTP/1.1", f"Host: {host}", f"Origin: {address}", f"Content-Type: {kind}", f"Content-Length: {length}",
        "Connection: close",
    ]  # fmt: skip
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    return connection


@pytest.mark.parametrize(("kind", "status"), [("application/json", 413), ("text/plain", 415)])
async def test_a_client_still_sending_a_large_command_gets_the_reason_of_its_refusal(
    view: tuple[str, RunFolder], kind: str, status: int
) -> None:
    address, _ = view

    def refused() -> int:
        with sending(address, kind, 1_000_000) as connection:
            connection.sendall(b"x" * 500_000)
            asked(address, "/shop/0/")  # by the time this is answered what was sent has been looked at
            connection.sendall(b"x" * 500_000)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return answer.status if answer.read() else 0

    assert await asyncio.to_thread(refused) == status


async def test_a_command_without_end_is_not_read_for_ever(view: tuple[str, RunFolder]) -> None:
    address, _ = view

    def megabytes() -> int:
        with sending(address, "application/json", 1_000_000_000) as connection:
            for sent in range(1_000):
                try:
                    connection.sendall(b"x" * 1_000_000)
                except ConnectionError:
                    return sent
        return 1_000

    assert await asyncio.to_thread(megabytes) < 100


async def test_a_client_that_disconnects_within_a_command_causes_no_error(
    view: tuple[str, RunFolder], caplog: pytest.LogCaptureFixture
) -> None:
    address, _ = view

    def left() -> None:
        with sending(address, "application/json", 1_000) as connection:
            connection.sendall(b"x" * 500)
            asked(address, "/shop/0/")
        for _ in range(3):
            asked(address, "/shop/0/")

    await asyncio.to_thread(left)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_beyond_this_machine_a_token_is_asked_for(view: tuple[str, RunFolder], chromium: Browser) -> None:
    _, run = view
    with served(run.path, token="a-long-enough-secret") as address:
        assert (await asyncio.to_thread(asked, address, "/shop/0/"))[0] == 401
        assert (await asyncio.to_thread(asked, address, "/?token=another"))[0] == 401
        assert (await asyncio.to_thread(asked, address, "/shop/0/", Authorization="Bearer a-long-enough-secret"))[0] == 200
        page = await chromium.new_page()
        await page.goto(f"{address}/?token=a-long-enough-secret")
        await expect(page.locator("h1")).to_have_text("Buy two packs of green tea.")
        assert "token" not in page.url
        await expect(page.locator("#state")).to_have_text("ended")
        await page.close()


@pytest.mark.parametrize(
    "path", ["/nope/", "/nope/events", "/shop/9/", "/shop/0/picture/" + "0" * 64, "/shop/0/picture/..%2f..%2frun.json", "/../run.json"]
)
async def test_an_unknown_path_is_not_found(view: tuple[str, RunFolder], path: str) -> None:
    address, _ = view
    assert (await asyncio.to_thread(asked, address, path))[0] == 404


async def test_hostile_text_is_inert_in_the_live_view(tmp_path: Path, chromium: Browser) -> None:
    text = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    run = hostile_run(tmp_path / "run", text)
    dialogs: list[str] = []
    with served(tmp_path) as address:
        async with watching(chromium, f"{address}/run/0/#node=1") as page:
            page.on("dialog", lambda dialog: dialogs.append(dialog.message))
            await expect(page.locator("h1")).to_have_text(text)
            # what the server writes anew comes by another way
            await page.evaluate("NOW.version = 0; position = `${NOW.epoch}.0`; listen()")
            await until(page, "Object.keys(seenHtml).length === 3")
            await expect(page.locator("h1")).to_have_text(text)
            assert await page.locator("#head img, #below img, #steps img:not([src^=picture]), #panel img:not([src^=picture])").count() == 0
    assert not dialogs and run


async def test_a_page_of_an_earlier_server_loads_itself_again(view: tuple[str, RunFolder], chromium: Browser) -> None:
    address, _ = view
    async with watching(chromium, f"{address}/shop/0/") as page:
        await page.evaluate("window.earlier = true; position = 'gone.7'; listen()")
        await until(page, "window.earlier === undefined")
        await expect(page.locator("#state")).to_have_text("ended")


async def test_runs_that_come_later_are_listed(tmp_path: Path, chromium: Browser) -> None:
    shop_run(tmp_path / "first")
    with served(tmp_path) as address:
        assert (await asyncio.to_thread(asked, address, "/first/0/"))[0] == 200
        shop_run(tmp_path / "second")
        body = (await asyncio.to_thread(asked, address, "/"))[1]
        assert 'href="/first/"' in body and 'href="/second/"' in body


@pytest.mark.parametrize("name", ["run.json", "config.yaml", "tasks/*/journal.jsonl"])
async def test_a_strange_run_does_not_hang_the_view_of_the_others(tmp_path: Path, name: str) -> None:
    shop_run(tmp_path / "good")
    shop_run(tmp_path / "odd")
    (odd,) = (tmp_path / "odd").glob(name)
    odd.unlink()
    os.mkfifo(odd)
    with served(tmp_path) as address:
        for path in ("/odd/", "/odd/0/", "/odd/0/events"):
            status, said, _ = await asyncio.to_thread(asked, address, path)
            assert (status, "is a pipe" in said) == (500, True)
        assert (await asyncio.to_thread(asked, address, "/good/0/"))[0] == 200


async def test_a_run_whose_plan_is_nested_too_deeply_is_said(tmp_path: Path) -> None:
    shop_run(tmp_path / "odd")
    (tmp_path / "odd" / "run.json").write_text('{"a":' * 50_000)
    with served(tmp_path / "odd") as address:
        assert "nested too deeply" in (await asyncio.to_thread(asked, address, "/odd/"))[1]
