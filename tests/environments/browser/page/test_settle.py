"""A step returns when the page is quiet, and not before. The servers' delays here are gates that a test opens."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import msgspec
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from exact.config import BrowserConfig
from exact.environments.browser.launch.browser import Browser
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")
PATIENT = BrowserConfig(screenshots=False, settle_seconds=20.0)


def gated(server: HTTPServer, path: str, body: str, kind: str = "text/html") -> threading.Event:
    """Serve `body` once the gate is set."""
    gate = threading.Event()

    def answer(_: object) -> Response:
        gate.wait(20)
        return Response(body, content_type=kind)

    server.expect_request(path).respond_with_handler(answer)
    return gate


@pytest.mark.parametrize(
    "action",
    [
        "onclick=\"fetch('/late').then(a => a.text()).then(text => out.textContent = text)\"",
        "onclick=\"location.href = '/late'\"",
        "onclick=\"frame.src = '/late'\"",
    ],
)
async def test_a_step_waits_for_what_it_requested(visit: Visit, httpserver: HTTPServer, action: str) -> None:
    gate = gated(httpserver, "/late", "<p>Answer")
    async with visit(f"<button {action}>Go</button><p id=out></p><iframe id=frame></iframe>", config=PATIENT) as (env, seen):
        step = asyncio.ensure_future(do(env, f"click [{find(seen, 'Go').id}]"))
        done, _ = await asyncio.wait([step], timeout=0.3)
        assert not done
        gate.set()
        assert find((await step).observation, "Answer")


async def test_requests_that_follow_from_each_other_are_waited_for(visit: Visit, httpserver: HTTPServer) -> None:
    for at in range(4):
        httpserver.expect_request(f"/{at}").respond_with_data(str(at))
    page = """<p id=out></p><button onclick="load(0)">Go</button>
    <script>const load = async at => { out.textContent += await (await fetch('/' + at)).text(); if (at < 3) load(at + 1) }</script>"""
    async with visit(page) as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Go').id}]"), "0123")


def told(server: HTTPServer, path: str, body: str, gate: threading.Event) -> None:
    """Answer with a head at once and a body once the gate is set, which no cache may keep."""

    def parts() -> Iterator[str]:
        yield body[:1]
        gate.wait(20)
        yield body[1:]

    headers = {"Cache-Control": "no-store"}
    server.expect_request(path).respond_with_handler(lambda _: Response(parts(), content_type="text/plain", headers=headers))


@pytest.mark.parametrize("kept", ["", ".then(answer => { window.kept = answer })"], ids=["dropped", "kept"])
@pytest.mark.parametrize("body", ["short", "long" * 100_000], ids=["short", "long"])
async def test_an_unread_response_is_not_waited_for(visit: Visit, httpserver: HTTPServer, kept: str, body: str) -> None:
    gate = threading.Event()
    gate.set()
    told(httpserver, "/told", body, gate)
    async with visit(f"<button onclick=\"fetch('/told', {{method: 'PATCH'}}){kept}\">Go</button>", config=PATIENT) as (env, seen):
        step = await asyncio.wait_for(do(env, f"click [{find(seen, 'Go').id}]"), 10)
        assert step.info == {} and [effect.method for effect in step.effects] == ["PATCH"]


async def test_an_answer_that_is_read_is_waited_for_beside_one_that_is_not(visit: Visit, httpserver: HTTPServer) -> None:
    gate, other = threading.Event(), threading.Event()
    other.set()
    told(httpserver, "/read", "answer", gate)
    told(httpserver, "/unread", "nothing", other)
    page = """<button onclick="fetch('/unread'); fetch('/read').then(a => a.text()).then(text => out.textContent = text)">Go</button>
    <p id=out></p>"""
    async with visit(page, config=PATIENT) as (env, seen):
        step = asyncio.ensure_future(do(env, f"click [{find(seen, 'Go').id}]"))
        done, _ = await asyncio.wait([step], timeout=0.5)
        assert not done
        gate.set()
        assert find((await step).observation, "answer")


async def test_a_page_sees_its_requests_fail_as_they_do(visit: Visit) -> None:
    page = """<p id=out></p><script>window.onunhandledrejection = event => out.textContent += event.reason.name + ' ';
    fetch('http://[').catch(error => out.textContent += 'caught '); fetch('http://[')</script>"""
    async with visit(page) as (env, _):
        assert find(await look(env, "wait"), "caught").name == "caught TypeError"


@pytest.mark.parametrize("leave", ["location.href = '/other'", "order.submit()", "location.reload()", "history.back()"])
async def test_a_page_that_was_not_left_is_quiet(visit: Visit, leave: str) -> None:
    page = f"""<input aria-label=Name oninput="onbeforeunload = event => event.preventDefault()"><form id=order action=/other></form>
    <button onclick="{leave}">Go</button>"""
    async with visit(page, config=msgspec.structs.replace(PATIENT, page_snapshots=True)) as (env, seen):
        await do(env, f'fill [{find(seen, "Name").id}] "Ann"')
        asked = await look(env, f"click [{find(seen, 'Go').id}]")
        assert find(asked, "Stay")
        step = await asyncio.wait_for(do(env, "dismiss"), 10)
        assert step.info == {} and find(step.observation, "Go") and env.obstacle == ""


async def test_changes_that_follow_from_each_other_are_waited_for(visit: Visit) -> None:
    page = """<p id=out></p><button onclick="count(0)">Go</button>
    <script>const count = at => { out.textContent = 'at ' + at; if (at < 20) setTimeout(() => count(at + 1), 5) }</script>"""
    async with visit(page) as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Go').id}]"), "at 20")


LATE = {
    "work in slices": """const channel = new MessageChannel(), end = performance.now() + 80;
      channel.port1.onmessage = () => {
        for (const until = performance.now() + 4; performance.now() < until;);
        if (performance.now() < end) channel.port2.postMessage(0); else say()
      };
      channel.port2.postMessage(0)""",
    "a worker": """const source = `onmessage = () => {
        for (const end = performance.now() + 12; performance.now() < end;);
        postMessage(0)
      }`;
      const worker = new Worker(URL.createObjectURL(new Blob([source])));
      worker.onmessage = event => { worker.terminate(); if (event) say() };
      worker.postMessage(0)""",
    "a timer that a timer has set": "setTimeout(() => setTimeout(say, 15))",
    "a timer that a busy timer has set": """setTimeout(() => {
        for (const end = performance.now() + 40; performance.now() < end;);
        setTimeout(say, 15)
      }, 5)""",
    "a task with a delay": "scheduler.postTask(say, {delay: 14})",
    "a signal that times out": "AbortSignal.timeout(14).onabort = say",
}


@pytest.mark.parametrize("work", LATE.values(), ids=LATE)
async def test_a_reaction_to_a_press_that_comes_late_is_waited_for(visit: Visit, work: str) -> None:
    page = f"""<p id=out></p><button onclick="react()">Go</button><script>
    const say = () => {{ out.textContent = 'done' }}, react = () => {{ {work} }}</script>"""
    async with visit(page) as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Go').id}]"), "done")


async def test_an_animation_is_waited_for(visit: Visit) -> None:
    page = """<div id=box style="width:20px" role=group aria-label=Box>x</div><button onclick="move()">Go</button>
    <script>const move = () => box.animate([{width: '20px'}, {width: '200px'}], {duration: 150, fill: 'forwards'})</script>"""
    async with visit(page) as (env, seen):
        box = find(await look(env, f"click [{find(seen, 'Go').id}]"), "Box").box
        assert box is not None and box.width == 200


@pytest.mark.parametrize("begin", ["step(1)", "setTimeout(() => step(1), 50)"], ids=["at once", "after others asked for the frame"])
@pytest.mark.parametrize("seconds", [0.5, 1.5])
async def test_an_animation_is_waited_for_where_the_machine_draws_late(
    visit: Visit, browser: Browser, httpserver: HTTPServer, seconds: float, begin: str
) -> None:
    session = await browser.playwright.new_browser_cdp_session()
    drawer = next(each["id"] for each in (await session.send("SystemInfo.getProcessInfo"))["processInfo"] if each["type"] == "GPU")
    await session.detach()

    def answer(_: object) -> Response:
        os.kill(drawer, signal.SIGSTOP)
        threading.Timer(seconds, os.kill, (drawer, signal.SIGCONT)).start()
        return Response("", content_type="text/plain")

    httpserver.expect_request("/stop").respond_with_handler(answer)
    page = f"""<p id=out>at 0</p><button onclick="fetch('/stop').then(a => a.text()).then(() => {begin})">Go</button>"""
    page += """<script>const step = n => requestAnimationFrame(() => { out.textContent = 'at ' + n; if (n < 8) step(n + 1) })</script>"""
    async with visit(page, config=PATIENT) as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Go').id}]"), "at 8")


EASED = {
    "frames": "const step = () => { if (move()) requestAnimationFrame(step) }; step()",
    "an interval": "const timer = setInterval(() => { if (!move()) clearInterval(timer) }, 13)",
}


@pytest.mark.parametrize("kind", EASED)
async def test_an_animation_that_begins_slowly_is_waited_for(visit: Visit, kind: str) -> None:
    page = f"""<p id=out>at 0</p><button onclick="ease()">Go</button><script>const ease = () => {{
    const begun = performance.now(), share = () => Math.min((performance.now() - begun) / 300, 1);
    const move = () => {{
      const text = 'at ' + Math.round(10 * share() ** 2);
      if (out.textContent !== text) out.textContent = text;
      return text !== 'at 10'
    }}; {EASED[kind]} }}</script>"""
    async with visit(page) as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Go').id}]"), "at 10")


async def test_frames_that_are_asked_for_without_end_and_change_nothing_are_waited_for_once(visit: Visit) -> None:
    page = "<button>Go</button><script>const step = () => requestAnimationFrame(step); step()</script>"
    async with visit(page) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert step.info == {} and step.observation is not None
        assert await env.episode.tabs.present.evaluate("exact.animating") is False


async def test_a_page_that_never_rests_is_observed_at_the_cap_and_says_so(visit: Visit) -> None:
    config = BrowserConfig(screenshots=False, settle_seconds=0.2)
    async with visit("<p id=out>0</p><script>setInterval(() => out.textContent++, 5)</script>", config=config) as (env, _):
        step = await do(env, 'press "a"')
        assert step.observation is not None
        assert "still changing after 0.2 s" in step.info["unsettled"]


async def test_requests_in_flight_before_the_step_are_not_waited_for(visit: Visit, httpserver: HTTPServer) -> None:
    gate = gated(httpserver, "/poll", "")
    config = BrowserConfig(screenshots=False, settle_seconds=0.5)
    async with visit("<button>Go</button><script>fetch('/poll')</script>", config=config) as (env, seen):
        assert (await do(env, f"click [{find(seen, 'Go').id}]")).info == {}
        gate.set()


async def test_a_reaction_that_comes_with_a_delay_is_waited_for(visit: Visit) -> None:
    page = """<input aria-label=Search oninput="clearTimeout(timer); timer = setTimeout(() => menu.innerHTML = '<li>' + this.value, 300)">
    <ul id=menu></ul><script>let timer</script>"""
    async with visit(page) as (env, seen):
        assert find(await look(env, f'fill [{find(seen, "Search").id}] "Ann"'), "Ann", "listitem")


@pytest.mark.parametrize("again", ["setInterval(look, 100)", "(function again() { look(); setTimeout(again, 100) })()"])
async def test_a_page_that_only_looks_again_and_again_is_quiet(visit: Visit, again: str) -> None:
    async with visit(f"<p>Here<script>const look = () => document.title; {again}</script>", config=PATIENT) as (env, _):
        assert (await do(env, 'press "a"')).info == {}


ENDLESS = {
    "a loop that sleeps": "(async () => { for (;;) await new Promise(next => setTimeout(next, 30)) })()",
    "messages and timers by turns": """const channel = new MessageChannel();
      channel.port1.onmessage = () => setTimeout(() => channel.port2.postMessage(0), 30);
      channel.port2.postMessage(0)""",
}


@pytest.mark.parametrize("loop", ENDLESS.values(), ids=ENDLESS)
async def test_timers_that_follow_each_other_without_end_are_waited_for_once(visit: Visit, loop: str) -> None:
    config = BrowserConfig(screenshots=False, settle_seconds=0.5)
    async with visit(f"<button onclick=\"this.textContent += '!'\">Go</button><script>{loop}</script>", config=config) as (env, seen):
        steps = [await do(env, f"click [{find(seen, 'Go').id}]") for _ in range(3)]
        assert [step.info for step in steps] == [{}] * 3 and find(steps[-1].observation, "Go!!!")


async def test_timers_of_a_page_work_as_they_should(visit: Visit) -> None:
    page = """<p id=out></p><script>const say = (...words) => out.textContent += words.join('') + ' ';
    setTimeout(say, 0, 'a', 'b'); setTimeout("say('text')", 5); clearTimeout(setTimeout(say, 5, 'never')); clearTimeout(undefined);
    setTimeout(function () { say(this === window) }, 30);
    const each = setInterval(() => { say('tick'); clearInterval(each) }, 10)</script>"""
    async with visit(page) as (env, _):
        assert find(await look(env, "wait"), "ab").name == "ab text tick true"


async def test_a_click_hits_what_shows_only_when_hovering_has_loaded_its_picture(visit: Visit, httpserver: HTTPServer) -> None:
    svg = "<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'><rect width='20' height='20'/></svg>"
    gate = gated(httpserver, "/late.svg", svg, "image/svg+xml")
    page = """<style>#icon { content: url("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'/>") }
    #icon:hover { content: url(/late.svg) }</style><div onclick="out.textContent = event.target.id"><span id=icon role=button></span></div>
    <p id=out></p>"""
    async with visit(page, config=PATIENT) as (env, seen):
        asyncio.get_running_loop().call_later(0.2, gate.set)
        icon = next(element for element in seen.elements if element.role == "button")
        assert find(await look(env, f"click [{icon.id}]"), "icon")
