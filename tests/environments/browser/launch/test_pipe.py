"""The pipe that Playwright's driver and this process share: who gets which message, and what becomes of the browser when one end goes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserFactory, PageSetup, launch
from exact.environments.browser.launch import pipe as pipes
from exact.environments.browser.launch.pipe import SharedPipe, shared_pipe
from exact.environments.browser.page.cdp import FLOOD, CdpSession
from exact.errors import EnvironmentFailure
from exact.task import Task
from tests.processes import left

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes are handed over on Linux only")
OWN = 1 << 30


class Ends:
    """A pipe without programs: what would be written to the driver and to the browser."""

    def __init__(self) -> None:
        self.pipe = SharedPipe()
        self.driver, self.browser = bytearray(), bytearray()
        self.pipe._driver.write = self.driver.extend  # type: ignore[method-assign]
        self.pipe._browser.write = self.browser.extend  # type: ignore[method-assign]

    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(each) for each in bytes(self.browser).split(b"\0")[:-1]]

    def say(self, *messages: dict[str, Any]) -> None:
        self.pipe._browser.data_received(b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\0" for each in messages))

    async def begin(self) -> None:
        beginning = asyncio.ensure_future(self.pipe.begin())
        await asyncio.sleep(0)
        self.say({"id": self.asked()[-1]["id"], "result": {"sessionId": "ROOT"}})
        await beginning


@given(st.lists(st.text(max_size=40), max_size=6), st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_messages_of_the_driver_arrive_whole_however_they_are_cut(texts: list[str], cuts: list[int]) -> None:
    async def passed() -> list[str]:
        ends, stream, at = Ends(), b"".join(json.dumps({"id": 1, "params": text}).encode() + b"\0" for text in texts), 0
        while at < len(stream):
            cut = cuts[at % len(cuts)]
            ends.pipe._driver.data_received(stream[at : at + cut])
            assert not ends.browser or ends.browser.endswith(b"\0"), "a command of ours could stand in the middle of one of the driver's"
            at += cut
        return [each["params"] for each in ends.asked()]

    assert asyncio.run(passed()) == texts


async def test_the_first_message_of_a_turn_leaves_at_once_and_the_others_leave_together() -> None:
    reads, writes = os.pipe(), os.pipe()
    os.set_blocking(writes[0], False)
    side = pipes._Side(lambda _: None, lambda: None)
    await side.open(reads[0], writes[1])
    for each in (b"a", b"b", b"c"):
        side.write(each)
    first = os.read(writes[0], 10)
    await asyncio.sleep(0)
    assert (first, os.read(writes[0], 10)) == (b"a", b"bc")
    side.close()
    os.close(reads[1])
    os.close(writes[0])


async def test_each_message_of_the_browser_reaches_the_one_whom_it_concerns() -> None:
    ends, heard = Ends(), list[Any]()
    await ends.begin()
    ends.pipe.on("Target.targetCreated", heard.append)
    for number in (3, OWN - 1):
        ends.say({"id": number, "result": {"sessionId": "ROOT"}})
    ends.say({"method": "Target.targetCreated", "params": {"n": 1}})
    ends.say({"method": "Target.targetCreated", "params": {"n": 2}, "sessionId": "OTHER"})
    ends.say({"method": "Target.targetCreated", "params": {"n": 3}, "sessionId": "ROOT"})
    forged = {"method": "Runtime.consoleAPICalled", "params": {"text": ',"sessionId":"ROOT"}'}}
    ends.say(forged)
    await asyncio.sleep(0)
    assert heard == [{"n": 3}]
    theirs = [json.loads(each) for each in bytes(ends.driver).split(b"\0")[:-1]]
    assert [each.get("params", {}).get("n") for each in theirs] == [None, None, 1, 2, None]
    assert theirs[-1] == forged


@pytest.mark.parametrize(
    ("event", "times", "heard", "why"),
    [
        ("Runtime.consoleAPICalled", 1100, range(500, 700), "it writes to its console without end"),
        ("Log.entryAdded", 1100, range(500, 700), "it writes to its console without end"),
        ("Network.eventSourceMessageReceived", 2600, range(500, 700), "it receives messages without end"),
        ("Network.webSocketFrameReceived", 2600, range(500, 700), "it receives messages without end"),
        ("Page.frameAttached", 120, range(240, 241), "it adds frames without end"),
        ("Some.eventOfTomorrow", 12000, range(24000, 24001), "it causes events without end"),
        ("Network.webSocketFrameSent", 12000, range(24000, 24001), "it causes events without end"),
    ],
)
async def test_events_without_end_are_reported_once_and_those_that_nobody_needs_are_left_out(
    event: str, times: int, heard: range, why: str
) -> None:
    ends, floods = Ends(), list[tuple[str, str]]()
    await ends.begin()
    for session, target in (("OWN", "page"), ("OTHER", "beside")):
        attaching = asyncio.ensure_future(ends.pipe.attach(target))
        await asyncio.sleep(0)
        ends.say({"id": ends.asked()[-1]["id"], "result": {"sessionId": session}})
        (await attaching).on(FLOOD, lambda said, target=target: floods.append((target, said["why"])))
    info, worker = {"targetId": "page", "type": "page"}, {"targetId": "w", "type": "worker"}
    ends.say({"method": "Target.attachedToTarget", "params": {"sessionId": "THEIRS", "targetInfo": info}, "sessionId": "BROWSER"})
    ends.say({"method": "Target.attachedToTarget", "params": {"sessionId": "WORKER", "targetInfo": worker}, "sessionId": "THEIRS"})
    for _ in range(times):
        for session in ("THEIRS", "WORKER"):
            ends.say({"method": event, "params": {"type": "log"}, "sessionId": session})
    ends.say({"method": "Page.loadEventFired", "params": {}, "sessionId": "THEIRS"})
    came = [json.loads(each)["method"] for each in bytes(ends.driver).split(b"\0")[:-1]]
    assert came.count(event) in heard and came[-1] == "Page.loadEventFired"
    assert floods == [("page", why)]


@pytest.mark.parametrize(("event", "heard"), [("Runtime.consoleAPICalled", 20), ("Page.navigatedWithinDocument", 400)])
async def test_a_large_event_counts_as_many_small_ones(event: str, heard: int) -> None:
    ends, floods = Ends(), list[Any]()
    await ends.begin()
    attaching = asyncio.ensure_future(ends.pipe.attach("page"))
    await asyncio.sleep(0)
    ends.say({"id": ends.asked()[-1]["id"], "result": {"sessionId": "OWN"}})
    (await attaching).on(FLOOD, floods.append)
    info = {"targetId": "page", "type": "page"}
    ends.say({"method": "Target.attachedToTarget", "params": {"sessionId": "THEIRS", "targetInfo": info}, "sessionId": "BROWSER"})
    for _ in range(400):
        ends.say({"method": event, "params": {"url": "a" * (1 << 20)}, "sessionId": "THEIRS"})
    assert bytes(ends.driver).count(event.encode()) <= heard and len(floods) == 1


async def test_an_event_of_our_own_session_that_nobody_listens_to_is_not_read() -> None:
    ends, came = Ends(), list[dict[str, object]]()
    await ends.begin()
    attaching = asyncio.ensure_future(ends.pipe.attach("page"))
    await asyncio.sleep(0)
    ends.say({"id": ends.asked()[-1]["id"], "result": {"sessionId": "OWN"}})
    (await attaching).on("Network.loadingFailed", came.append)
    ends.pipe._browser.data_received(b'{"method":"Network.eventSourceMessageReceived","params":{{{,"sessionId":"OWN"}\0')
    ends.say({"method": "Network.loadingFailed", "params": {"requestId": "1"}, "sessionId": "OWN"})
    await asyncio.sleep(0)
    assert came == [{"requestId": "1"}] and not ends.pipe.is_lost


async def test_a_handler_that_fails_keeps_no_other_from_its_message() -> None:
    ends, heard, loop = Ends(), list[Any](), asyncio.get_running_loop()
    await ends.begin()
    failed = list[Any]()
    loop.set_exception_handler(lambda _, context: failed.append(context["exception"]))
    ends.pipe.on("Bad", lambda event: event["absent"])
    ends.pipe.on("Good", heard.append)
    ends.say({"method": "Bad", "params": {}, "sessionId": "ROOT"}, {"method": "Good", "params": {"n": 1}, "sessionId": "ROOT"})
    await asyncio.sleep(0)
    loop.set_exception_handler(None)
    assert heard == [{"n": 1}]
    assert isinstance(failed[0], KeyError)


@pytest.mark.parametrize("end", ["_driver", "_browser"])
async def test_a_side_that_ends_fails_what_waits(end: str) -> None:
    ends = Ends()
    await ends.begin()
    asking = asyncio.ensure_future(ends.pipe.send("Fetch.enable"))
    await asyncio.sleep(0)
    getattr(ends.pipe, end).connection_lost(None)
    for late in (asking, ends.pipe.send("Fetch.enable")):
        with pytest.raises(EnvironmentFailure, match="the browser is gone"):
            await late


@pytest.mark.parametrize("cut", [500, 50_000])
async def test_a_large_answer_is_refused_however_it_is_cut(cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the last piece of a message is a large one."""
    monkeypatch.setattr(pipes, "MOST_BYTES", 40_000)
    ends = Ends()
    stream = json.dumps({"id": 7, "result": {"text": "x" * 45_000}}, separators=(",", ":")).encode() + b"\0"
    for at in range(0, len(stream), cut):
        ends.pipe._browser.data_received(stream[at : at + cut])
    assert b'"id":7' in ends.driver and b"are read" in ends.driver and len(ends.driver) < 1_000


async def test_a_message_without_end_is_the_end_of_the_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_MESSAGE", 100)
    ends = Ends()
    await ends.begin()
    ends.pipe._browser.data_received(b"x" * 101)
    with pytest.raises(EnvironmentFailure, match="the browser is gone"):
        await ends.pipe.send("Fetch.enable")


@pytest.mark.asyncio(loop_scope="session")
async def test_sessions_with_pages_do_without_the_driver_and_large_answers_come_whole(browser: Browser) -> None:
    context, page = await browser.open_context(BrowserConfig(), ())
    try:
        session = await browser.attach(page)
        assert isinstance(session, CdpSession)
        asked = {"expression": "'ä'.repeat(3e6)", "returnByValue": True}
        answers = await asyncio.gather(*(session.send("Runtime.evaluate", asked) for _ in range(3)), page.evaluate("1 + 1"))
        assert [len(each["result"]["value"]) for each in answers[:3]] == [3_000_000] * 3
        assert answers[3] == 2
    finally:
        await browser.close_context(context)


async def test_a_folder_that_runs_no_programs_leaves_the_pipe_to_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # as on a file system that is mounted with noexec
    async with shared_pipe("/usr/bin/browser", tmp_path) as (program, pipe):
        assert (program, pipe) == ("/usr/bin/browser", None)


async def test_environments_work_where_the_pipe_is_left_to_the_driver(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_is_runnable", lambda *_: False)
    async with launch(BrowserConfig(screenshots=False)) as browser:
        _, page = await browser.open_context(BrowserConfig(), ())
        assert not isinstance(await browser.attach(page), CdpSession)
        kind = BrowserFactory(browser, PageSetup(), BrowserConfig(screenshots=False), isolated=False)
        async with kind.open(simulation=False) as environment:
            seen = await environment.reset(Task(id="test/blank", instruction="Look.", start="about:blank"))
            assert seen.url == "about:blank"


_ALONE = """
import asyncio, sys
from exact.config import BrowserConfig
from exact.environments.browser import launch
async def main():
    async with launch(BrowserConfig()) as browser:
        await browser.open_context(BrowserConfig(), ())
        print("open", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_no_browser_outlives_this_process(executable: str, tmp_path: Path, by: signal.Signals) -> None:
    mark = f"LC_EXACT_TEST={os.getpid()}-{by}"
    name, value = mark.split("=")
    environment = {**os.environ, name: value, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", _ALONE], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout
        assert process.stdout.readline() == b"open\n"
        process.send_signal(by)
        process.wait(30)
        assert not left(mark, 20)
