"""What a task declares of the outside, and calling hooks: no browser needed."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest
from pytest_httpserver import HTTPServer

from exact.environments.sites.site import Hook, Outside, Site, declared_outside
from exact.environments.sites.states import SiteClient, SiteStates
from exact.errors import EnvironmentFailure, UsageError
from exact.task import Task


def python(code: str, **fields: float) -> Hook:
    return Hook(command=(sys.executable, "-c", code, "{name}", "{base}"), **fields)


SAY = python("import sys; print(sys.argv[1:])")


def task(outside: str) -> Task:
    return Task(id="shop/1", instruction="", metadata={"outside": outside})


async def test_a_command_gets_its_values_without_a_shell_and_says_something() -> None:
    assert await SAY.call("fork", name="a; rm -rf $HOME", base="http://b") == "['a; rm -rf $HOME', 'http://b']"


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (python("import sys; sys.exit('no room')"), r"hook restore ended with status 1: no room"),
        (python("import time; time.sleep(60)", seconds=0.3), r"hook restore did not end within 0\.3 s"),
        (Hook(command=("/nowhere/tool",)), r"hook restore does not start: .*nowhere"),
        (Hook(url="http://127.0.0.1:9/"), r"hook restore was not answered"),
        (Hook(command=("tr\0ue",)), r"hook restore does not start: embedded null byte"),
        (Hook(url="http://127.0.0.1:9/", headers={"A\r\nB": "c"}), r"hook restore was not answered: "),
        (Hook(url="http://127.0.0.1:9/", method="A B\r\n"), r"hook restore was not answered: "),
        (Hook(url="{base}/x"), r"hook restore was not answered: 'b/x' is no web address"),
    ],
)
async def test_a_hook_that_fails_is_named(hook: Hook, words: str) -> None:
    with pytest.raises(EnvironmentFailure, match=words):
        await hook.call("restore", name="a", base="b")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "data:,x", "ftp://a.test/"])
def test_a_hook_asks_web_addresses_only(url: str) -> None:
    with pytest.raises(UsageError, match="is no web address: write http://host/path"):
        declared_outside(task(json.dumps({"site": {"reset": {"url": url}}})))


@pytest.mark.parametrize("seconds", [-1, 0, 1e9])
def test_the_time_of_a_hook_is_a_time(seconds: float) -> None:
    with pytest.raises(UsageError, match="invalid outside: Expected `float`"):
        declared_outside(task(json.dumps({"site": {"reset": {"command": ["true"], "seconds": seconds}}})))


async def test_of_what_a_hook_prints_the_beginning_is_kept_and_the_rest_is_read() -> None:
    assert len(await python("print('x' * 3_000_000)").call("fork", name="a", base="b")) == 1 << 20


async def test_a_hook_whose_descendants_hold_its_pipes_is_abandoned(tmp_path: Path) -> None:
    code = "import subprocess, sys, time; print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid, file=open(sys.argv[1], 'w'))"
    for more in ("", "; sys.stdout.close(); time.sleep(60)"):
        try:
            async with asyncio.timeout(20):
                with pytest.raises(EnvironmentFailure, match=r"hook reset did not end within 1 s"):
                    await python(code + more, seconds=1).call("reset", name=str(tmp_path / "left"), base="b")
        finally:
            os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


async def test_a_call_sends_its_values_and_gives_what_was_answered(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/save/a", method="PUT", data="b=http://b", headers={"X-Key": "k"}).respond_with_data(" there \n")
    hook = Hook(url=httpserver.url_for("/save/{name}"), method="PUT", headers={"X-Key": "k"}, body="b={base}")
    assert await hook.call("snapshot", name="a", base="http://b") == "there"
    with pytest.raises(EnvironmentFailure, match="hook snapshot was answered with status 500"):
        await hook.call("snapshot", name="other", base="http://b")


@pytest.mark.parametrize("answer", [b"\x15\x03\x01", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
async def test_a_call_that_is_answered_with_something_else_is_named(answer: bytes) -> None:
    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        with pytest.raises(EnvironmentFailure, match=r"hook reset was not answered: ."):
            await Hook(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/").call("reset")


async def test_a_call_that_was_given_up_ends_before_the_next_begins(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/").respond_with_data("elsewhere")
    begun, let, order = asyncio.Event(), asyncio.Event(), list[str]()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        order.append("begun")
        begun.set()
        await let.wait()
        order.append("ended")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        first = asyncio.ensure_future(Hook(url=url).call("reset"))
        await begun.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.ensure_future(Hook(url=url).call("reset"))
        for _ in range(5):  # time enough to begin
            assert await Hook(url=httpserver.url_for("/")).call("reset") == "elsewhere"
        let.set()
        await second
    assert order == ["begun", "ended"] * 2


def test_a_task_declares_the_outside_as_json() -> None:
    outside = Outside(hosts={"shop.test": "10.0.0.5"}, site=Site(base="http://shop.test", reset=SAY, snapshot=SAY, fork=SAY))
    assert declared_outside(task(msgspec.json.encode(outside).decode())) == outside
    assert declared_outside(Task(id="a", instruction="")) is None


@pytest.mark.parametrize(
    ("outside", "words"),
    [
        ({"host": {}}, "host"),
        (
            {"site": {"base": "shop", "reset": {"url": "http://a"}, "snapshot": {"url": "http://a"}, "fork": {"url": "http://a"}}},
            "not an address",
        ),
        ({"site": {"base": "http://a", "reset": {"url": "http://a"}, "snapshot": {"url": "http://a"}}}, "restore, or fork"),
        ({"site": {"reset": {"url": "http://a"}, "snapshot": {"url": "http://a"}, "fork": {"url": "http://a"}}}, "not an address"),
        ({"site": {"reset": {"url": "http://a"}, "restore": {"url": "http://a"}}}, "a hook restore needs a hook snapshot"),
        ({"site": {"base": "http://a"}}, "reset"),
        ({"site": {"reset": {"url": "http://a"}, "every": 0}}, "every 0: write 1 or more"),
        (
            {
                "site": {
                    "base": "http://a",
                    "reset": {"url": "http://a"},
                    "snapshot": {"url": "http://a"},
                    "fork": {"url": "http://a"},
                    "every": 2,
                }
            },
            "every 2: .*snapshot",
        ),
        ({"site": {"reset": "sh 'a"}}, "No closing quotation"),
        (
            {"site": {"base": "http://a", "reset": {}, "snapshot": {"url": "http://a"}, "fork": {"url": "http://a"}}},
            "either a command or a url",
        ),
    ],
)
def test_an_invalid_declaration_is_named(outside: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=f"task shop/1 declares an invalid outside: .*{words}"):
        declared_outside(task(json.dumps(outside)))


@pytest.mark.parametrize(
    ("reset", "hook"),
    [
        ("http://a/reset", Hook(url="http://a/reset")),
        ("./reset.sh 'to start'", Hook(command=("./reset.sh", "to start"))),
        ({"url": "http://a/reset", "method": "GET"}, Hook(url="http://a/reset", method="GET")),
        ({"command": ["ctl", "reset"]}, Hook(command=("ctl", "reset"))),
    ],
)
def test_a_site_has_a_reset_alone_as_an_address_or_a_command(reset: object, hook: Hook) -> None:
    declared = declared_outside(task(json.dumps({"site": {"reset": reset}})))
    assert declared is not None and declared.site == Site(reset=hook) and not declared.site.has_states


@pytest.fixture
def notes(tmp_path: Path) -> tuple[Path, SiteStates]:
    """Return a site that is one file, with forks that take turns on it."""
    file = tmp_path / "site"
    copy = "import shutil, sys; shutil.copy(*{})"
    hooks = {
        "reset": python(f"open({str(file)!r}, 'w').close()"),
        "snapshot": python(copy.format(f"({str(file)!r}, {str(tmp_path)!r} + '/' + sys.argv[1])")),
        "restore": python(copy.format(f"({str(tmp_path)!r} + '/' + sys.argv[1], {str(file)!r})")),
        "drop": python(f"import os, sys; os.unlink({str(tmp_path)!r} + '/' + sys.argv[1])"),
    }
    return file, SiteStates(Site(base="http://site.test", **hooks))


def saved_in(folder: Path) -> list[str]:
    """Return the beginnings of the names of saved states."""
    return [each.name.partition("_")[0] for each in folder.glob("exact_*")]


@pytest.mark.parametrize(("failures", "left"), [(1, []), (9, ["exact"])])
async def test_a_saved_state_that_is_in_use_is_deleted_at_the_end_or_named(
    failures: int, left: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tries = f"open({str(tmp_path / 'tries')!r}, 'a+')"
    drop = f"import os, sys; f = {tries}; f.write('x'); f.flush(); f.seek(0); len(f.read()) > {failures} or sys.exit('it is in use')"
    site = Site(
        base="http://site.test",
        reset=python("pass"),
        snapshot=python(f"import sys; open({str(tmp_path)!r} + '/' + sys.argv[1], 'w')"),
        restore=python("pass"),
        drop=python(f"{drop}; os.unlink({str(tmp_path)!r} + '/' + sys.argv[1])"),
    )
    states = SiteStates(site)
    states.drop(await states.save(SiteClient(lambda: asyncio.sleep(0), site.base)))
    with caplog.at_level(logging.WARNING, "exact.sites"):
        await states.close()
    assert saved_in(tmp_path) == left
    assert [each for each in left if each in caplog.text] == left and bool(caplog.text) is bool(left)


async def test_forks_that_take_turns_each_find_what_they_left(notes: tuple[Path, SiteStates]) -> None:
    file, states = notes
    stilled: list[str] = []

    async def branch(name: str, ready: asyncio.Barrier) -> str:
        async def still() -> None:
            stilled.append(name)

        standing = SiteClient(still, "http://site.test")
        async with states.turn(standing):
            await states.begin(standing)
        for _ in range(3):
            await ready.wait()
            async with states.turn(standing):
                file.write_text(file.read_text() + name)
        async with states.turn(standing):
            found = file.read_text()
        await states.leave(standing)
        return found

    ready = asyncio.Barrier(3)
    assert await asyncio.gather(*(branch(name, ready) for name in "abc")) == ["aaa", "bbb", "ccc"]
    assert {*stilled} == {*"abc"}
    await states.close()
    assert [each.name for each in file.parent.iterdir()] == ["site"]


async def test_the_site_is_left_as_the_live_fork_left_it(notes: tuple[Path, SiteStates]) -> None:
    file, states = notes

    async def still() -> None: ...

    live, other = (SiteClient(still, "http://site.test", live=live) for live in (True, False))
    for standing, text in ((live, "lasting"), (other, "tried")):
        async with states.turn(standing):
            await states.begin(standing)
            file.write_text(text)
    await states.leave(live)
    await states.leave(other)
    await states.close()
    assert file.read_text() == "lasting"


async def test_a_live_fork_acts_in_the_site_itself_though_it_forks(notes: tuple[Path, SiteStates]) -> None:
    _, turns = notes
    states = SiteStates(msgspec.structs.replace(turns.site, fork=SAY))

    async def still() -> None: ...

    live, other = (SiteClient(still, "http://site.test", live=live) for live in (True, False))
    for standing in (live, other):
        await states.begin(standing)
    assert live.base == "http://site.test" and other.base != live.base
    await states.close()


async def test_a_state_that_could_not_be_kept_is_not_taken_for_another(notes: tuple[Path, SiteStates]) -> None:
    file, states = notes

    async def still() -> None: ...

    one, other = (SiteClient(still, "http://site.test") for _ in range(2))
    async with states.turn(one):
        await states.begin(one)
    file.unlink()
    with pytest.raises(EnvironmentFailure, match="hook snapshot ended"):
        async with states.turn(other):
            pass
    with pytest.raises(EnvironmentFailure, match="could not be saved when others had their turn"):
        async with states.turn(one):
            pass
