"""Page snapshots: what they hold comes back, what they cannot hold is found by the fingerprint."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup
from exact.environments.check import CHECKS, check
from exact.environments.restore.waypoint import compare_states, state_key
from exact.errors import ActionError, EnvironmentFailure
from exact.task import Task
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")
CONFIG = BrowserConfig(screenshots=False, width=600, height=400, page_snapshots=True)
FORM = """<style>#inner { height: 60px; overflow: auto } #inner p { margin: 0; height: 40px } #low { margin-top: 900px }</style>
<form><input aria-label=Name><input type=checkbox aria-label=Agree><input type=radio name=r aria-label=One><input type=radio name=r
aria-label=Two><textarea aria-label=Text></textarea><select aria-label=Pick><option>a<option>b<option>c</select>
<select multiple aria-label=Many><option>d<option>e<option>f</select><input type=range aria-label=Range>
<input type=date aria-label=Date></form>
<div contenteditable aria-label=Edit>old</div><details><summary>More</summary>inside</details>
<div id=inner><p>1<p>2<p>3<p>4</div><div id=host></div><iframe srcdoc="<input aria-label=Framed>"></iframe><button id=low>Low</button>
<script>host.attachShadow({mode: 'open'}).innerHTML = '<input aria-label=Shadow>'</script>"""
FILLED = """() => { const q = s => document.querySelector(s); q('input').value = 'Ann'; q('[type=checkbox]').checked = true;
q('[aria-label=Two]').checked = true; q('textarea').value = 'a\\nb'; q('select').selectedIndex = 2;
for (const o of q('[multiple]').options) o.selected = o.label !== 'e'; q('[type=range]').value = 77; q('[type=date]').value = '2024-01-31';
q('[contenteditable]').innerHTML = 'new <b>bold</b>'; q('details').open = true; host.shadowRoot.firstChild.value = 'dark';
frames[0].document.querySelector('input').value = 'inside'; inner.scrollTop = 50; scrollTo(0, 30);
const t = q('textarea'); t.focus({preventScroll: true}); t.setSelectionRange(1, 2) }"""
HELD = """() => { const t = document.querySelector('textarea'); return [document.activeElement.localName, t.selectionStart, t.selectionEnd,
inner.scrollTop, scrollY, frames[0].document.querySelector('input').value, host.shadowRoot.firstChild.value,
document.querySelector('[contenteditable]').innerHTML] }"""


@pytest_asyncio.fixture(loop_scope="session")
async def other(browser: Browser) -> AsyncIterator[BrowserEnvironment]:
    async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=True).open(simulation=True) as environment:
        yield environment


@pytest.mark.parametrize("isolated", [True, False])
async def test_fields_focus_and_scroll_are_as_they_were_with_the_ids_they_had(
    visit: Visit, task_at: Callable[..., Task], isolated: bool
) -> None:
    async with visit(FORM, isolated=isolated, config=CONFIG) as (environment, _):
        await environment.page.evaluate(FILLED)
        seen, held = await look(environment, "wait"), await environment.page.evaluate(HELD)
        snapshot = await environment.snapshot()
        assert (snapshot.fidelity, snapshot.fingerprint) == ("page", seen.fingerprint)
        await environment.reset(task_at())
        assert await environment.restore(snapshot) == seen
        assert await environment.page.evaluate(HELD) == held == ["textarea", 1, 2, 50, 30, "inside", "dark", "new <b>bold</b>"]
        assert [option.states for option in seen.elements if option.name in "def" and option.role == "option"].count(("selected",)) >= 2


async def test_the_next_action_has_the_same_result_with_the_same_ids(visit: Visit) -> None:
    async with visit(FORM, config=CONFIG) as (environment, first):
        await look(environment, f'fill [{find(first, "Name").id}] "Ann"')
        snapshot = await environment.snapshot()
        on = await look(environment, f"click [{find(first, 'More').id}]")
        await environment.restore(snapshot)
        assert await look(environment, f"click [{find(first, 'More').id}]") == on


async def test_cookies_storage_and_databases_are_there_before_the_first_script_of_the_page(
    visit: Visit, task_at: Callable[..., Task]
) -> None:
    page = """<p id=p></p><script>(async () => {
    const done = request => new Promise(good => { request.onsuccess = () => good(request.result) }), asked = indexedDB.open('base', 2);
    asked.onupgradeneeded = () => asked.result.createObjectStore('rows', {keyPath: 'id', autoIncrement: true}).createIndex('n', 'n');
    const base = await done(asked), found = await done(base.transaction('rows').objectStore('rows').index('n').getAll());
    const put = n => done(base.transaction('rows', 'readwrite').objectStore('rows').put({n, when: new Date(0), deep: new Map([[1, [0]]])}));
    window.add = () => Promise.all([put('one'), put('two')]);
    p.textContent = [document.cookie, localStorage.k, sessionStorage.k, ...found.map(each => each.n)]; document.title = 'read' })()
    </script>"""
    async with visit(page, config=CONFIG) as (environment, _):
        await environment.page.wait_for_function("document.title === 'read'")
        await environment.page.evaluate("() => { document.cookie = 'a=b'; localStorage.k = 'l'; sessionStorage.k = 's'; return add() }")
        await look(environment, 'goto "/"')
        await environment.page.wait_for_function("document.title === 'read'")
        seen = await look(environment, "wait")
        assert find(seen, "a=b,l,s,one,two")
        snapshot = await environment.snapshot()
        await environment.reset(task_at())
        await environment.restore(snapshot)
        await environment.page.wait_for_function("document.title === 'read'")
        assert (await look(environment, "wait")).fingerprint == seen.fingerprint
        deep = """() => new Promise(done => { const r = indexedDB.open('base'); r.onsuccess = () => { const g = r.result.transaction('rows')
        .objectStore('rows').get(1); g.onsuccess = () => done([g.result.deep.get(1), g.result.when instanceof Date]) } })"""
        assert await environment.page.evaluate(deep) == [[0], True]


async def test_any_environment_of_a_factory_can_restore_and_it_outlives_the_one_that_took_it(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], other: BrowserEnvironment
) -> None:
    httpserver.expect_request("/").respond_with_data(FORM, content_type="text/html")
    environments = BrowserFactory(browser, PageSetup(), CONFIG, isolated=True)
    async with environments.open(simulation=True) as one:
        await one.reset(task_at())
        await one.page.evaluate(FILLED)
        seen = await look(one, "wait")
        snapshot = await one.snapshot()
    async with environments.fork(snapshot, simulation=True) as two:
        assert await look(two, "wait") == seen
    assert environments.has(snapshot)
    environments.drop(snapshot)
    assert not environments.has(snapshot)
    with pytest.raises(EnvironmentFailure, match="dropped: return by another route"):
        await other.restore(snapshot)


async def test_the_state_of_scripts_is_not_saved_and_the_fingerprint_shows_it(visit: Visit) -> None:
    async with visit("<button onclick='n++; this.textContent = n'>0</button><script>let n = 0</script>", config=CONFIG) as (
        environment,
        seen,
    ):
        after = await look(environment, f"click [{find(seen, '0').id}]")
        back = await environment.restore(await environment.snapshot())
        assert compare_states(state_key(after), state_key(back)) == "drifted"
        assert compare_states(state_key(seen), state_key(back)) == "exact"


async def test_a_different_page_gets_the_events_of_filled_fields_and_of_the_pointer(visit: Visit) -> None:
    page = """<style>u { display: none } div:hover u { display: block }</style>
    <input aria-label=Search oninput="p.textContent = this.value">
    <p id=p></p><div role=group aria-label=Menu>Menu<u>Item</u></div>"""
    async with visit(page, config=CONFIG) as (environment, seen):
        await look(environment, f'fill [{find(seen, "Search").id}] "abc"')
        shown = await look(environment, f"hover [{find(seen, 'Menu').id}]")
        assert "Item" in shown.text
        assert await environment.restore(await environment.snapshot()) == shown


async def test_the_page_setup_is_repeated(visit: Visit) -> None:
    setup = PageSetup(
        begin="seed => { document.querySelector('input').hidden = false; document.title = 'seed ' + seed }", instruction="document.title"
    )
    async with visit("<input hidden aria-label=Name>", setup=setup, config=CONFIG) as (environment, seen):
        filled = await look(environment, f'fill [{find(seen, "Name").id}] "x"')
        assert filled.instruction == "seed 0"
        assert await environment.restore(await environment.snapshot()) == filled


async def test_going_back_leads_where_it_led(visit: Visit, httpserver: HTTPServer) -> None:
    for name in ("a", "b"):
        httpserver.expect_request(f"/{name}").respond_with_data(f"<p>{name}", content_type="text/html")
    async with visit("<p>Here", config=CONFIG) as (environment, _):
        await look(environment, 'goto "/a"')
        await look(environment, 'goto "/b"')
        snapshot = await environment.snapshot()
        for _ in range(2):
            await environment.restore(snapshot)
            back = [(await look(environment, "go_back")).text for _ in range(2)]
            assert ["a" in back[0], "Here" in back[1]] == [True, True]
        await environment.restore(snapshot)
        await environment.reset(environment.episode.task)
        with pytest.raises(ActionError):
            await look(environment, "go_back")
        await environment.restore(await environment.snapshot())


async def test_no_snapshot_is_taken_while_work_is_under_way_and_the_environment_continues(visit: Visit, httpserver: HTTPServer) -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(_: Request) -> Response:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
        return Response("late")

    httpserver.expect_request("/slow").respond_with_handler(slow)
    async with visit("<p>Here", config=CONFIG) as (environment, _):
        await environment.page.evaluate("void fetch('/slow')")
        async with asyncio.timeout(10):
            while environment.obstacle != "a request is under way":  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.01)
        with pytest.raises(EnvironmentFailure, match="no snapshot now: a request is under way"):
            await environment.snapshot()
        release.set()
        await look(environment, "wait")
        assert (await environment.snapshot()).fidelity == "page"
        await environment.page.evaluate("void window.open('about:blank')")
        await look(environment, "wait")
        with pytest.raises(EnvironmentFailure, match="another tab is open"):
            await environment.snapshot()


async def test_unreachable_storage_and_databases_that_cannot_be_copied_prevent_a_snapshot(visit: Visit, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/away").respond_with_data("<p>Away", content_type="text/html")
    away = f"http://127.0.0.1:{httpserver.port}"
    async with visit("<p>Here", config=BrowserConfig(screenshots=False, page_snapshots=True, allow_origins=(away,))) as (environment, _):
        blob = """() => new Promise(done => { const r = indexedDB.open('b');
        r.onupgradeneeded = () => r.result.createObjectStore('s');
        r.onsuccess = () => { const t = r.result.transaction('s', 'readwrite');
        t.objectStore('s').put(new Blob(['x']), 1); r.result.close(); done() } })"""
        await environment.page.evaluate(blob)
        with pytest.raises(EnvironmentFailure, match="database b holds a Blob"):
            await environment.snapshot()
        await do(environment, f'goto "{away}/away"')
        with pytest.raises(EnvironmentFailure, match="whose storage is out of reach"):
            await environment.snapshot()


async def test_no_snapshot_is_taken_before_the_reset_or_after_the_end(visit: Visit, other: BrowserEnvironment) -> None:
    with pytest.raises(EnvironmentFailure, match="no episode is under way"):
        await other.snapshot()
    async with visit("<p>Here", config=CONFIG) as (environment, _):
        await do(environment, 'stop "done"')
        with pytest.raises(EnvironmentFailure, match="no episode is under way"):
            await environment.snapshot()


async def test_a_snapshot_of_a_stopped_clock_continues_from_its_time(visit: Visit) -> None:
    async with visit("<p>Here", config=BrowserConfig(screenshots=False, page_snapshots=True, clock=100)) as (environment, _):
        await do(environment, "wait")
        snapshot, before = await environment.snapshot(), await environment.page.evaluate("Date.now()")
        await do(environment, "wait")
        await environment.restore(snapshot)
        assert await environment.page.evaluate("Date.now()") == before


async def test_the_browser_keeps_the_contract_that_searches_rely_on(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task]
) -> None:
    httpserver.expect_request("/").respond_with_data(FORM, content_type="text/html")
    names = [name for name in CHECKS if name not in ("nothing is left", "environments are independent")]
    environments = BrowserFactory(browser, PageSetup(one_page=True), CONFIG, isolated=True)
    found = await check(environments, task_at(), quick=True, names=names)
    assert [finding for finding in found if not finding.passed] == []
    assert "3 of 3 pages came back" in next(finding.detail for finding in found if finding.name == "snapshots are states")


async def test_no_snapshot_is_taken_while_a_dialog_is_open(visit: Visit) -> None:
    async with visit("<p>Here", config=CONFIG) as (environment, _):
        await environment.page.evaluate("void setTimeout(() => alert('hello'))")
        await look(environment, "wait")
        assert environment.obstacle == "a dialog is open"
        with pytest.raises(EnvironmentFailure, match="no snapshot now: a dialog is open"):
            await environment.snapshot()
        await look(environment, "accept")
        assert environment.obstacle == ""
