"""Environments of a site that comes with its task, as the configuration says."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig
from exact.environments.browser import BrowserFactory, PageSetup
from exact.environments.browser.fork.factory import ForkingFactory
from exact.environments.browser.fork.init_process import unanswered
from exact.environments.browser.served import _run_service, open_remote_site, open_served_site
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sandbox.service import Service
from exact.environments.sites.site import Hook, Outside, Site
from exact.errors import EnvironmentFailure
from exact.task import Task
from tests.processes import left, marked, pipes

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROWS = Path(__file__).parents[2] / "e2e" / "sites" / "http_rows.py"
CONFIG = BrowserConfig(screenshots=False, width=600, height=400)
BESIDE = msgspec.structs.replace(CONFIG, sandbox="never")


@pytest.fixture
def service() -> Service:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return Service(command=(sys.executable, str(ROWS), str(port)), ready_url=f"http://127.0.0.1:{port}/", reads=(str(ROWS),))


def task(service: Service) -> Task:
    return Task(id="rows/add", instruction="Add a row.", start=service.ready_url)


def listens(service: Service) -> bool:
    host, port = service.ready_url.removeprefix("http://").strip("/").split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def names(folder: Path) -> list[str]:
    """Return the names of everything in a folder, at any depth."""
    return [path.name for path in folder.rglob("*")]


async def test_beside_the_browser_a_service_runs_once_and_ends_with_the_environments(executable: str, service: Service) -> None:
    async with open_served_site(BESIDE, PageSetup(), [service]) as environments, environments.open(simulation=False) as environment:
        assert isinstance(environments, BrowserFactory) and not environment.capabilities.isolated
        assert "Rows:" in (await environment.reset(task(service))).text
        with pytest.raises(EnvironmentFailure, match=r"another process answers at"):
            async with open_served_site(BESIDE, PageSetup(), [service]):
                pass
    assert not listens(service)


async def test_temporary_files_of_a_service_are_removed_with_it(
    executable: str, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    littering = msgspec.structs.replace(service, command=("sh", "-c", 'touch "$TMPDIR/left" && exec "$@"', "sh", *service.command))
    async with open_served_site(BESIDE, PageSetup(), [littering]):
        assert "left" in names(tmp_path)
    assert names(tmp_path) == []


async def test_no_pipe_is_kept_of_a_service_whose_descendants_hold_its_output(service: Service, tmp_path: Path) -> None:
    leaving = f'env -u EXACT_GUEST setsid sleep 60 & echo $! > {tmp_path}/left; exec "$@"'
    before = pipes()
    try:
        async with _run_service(msgspec.structs.replace(service, command=("sh", "-c", leaving, "sh", *service.command))):
            assert listens(service)
        assert not listens(service) and not pipes() - before
    finally:
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


def leaving(service: Service, mark: str) -> Service:
    """Return a command that starts a process in another session. `mark`: NAME=value in the environment of both."""
    command = ("sh", "-c", 'setsid sleep 600 & exec "$@"', "sh", *service.command)
    return msgspec.structs.replace(service, command=command, env=dict([mark.split("=")]))


async def test_processes_of_a_service_in_another_session_end_with_it(service: Service, tmp_path: Path) -> None:
    mark = f"LEFT={tmp_path.name}"
    async with _run_service(leaving(service, mark)):
        assert any("sleep 600" in line for line in marked(mark).values())
    assert left(mark, 10) == [] and not listens(service)


async def test_a_service_beside_the_browser_does_not_outlive_a_crash(executable: str, service: Service, tmp_path: Path) -> None:
    code = """if True:
        import asyncio, os, signal, sys, msgspec
        from exact.config import BrowserConfig
        from exact.environments.browser import PageSetup
        from exact.environments.browser.served import open_served_site
        from exact.environments.sandbox.service import Service

        async def main():
            async with open_served_site(BrowserConfig(sandbox="never"), PageSetup(), [msgspec.json.decode(sys.argv[1], type=Service)]):
                os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(main())
    """
    mark = f"LEFT={tmp_path.name}"
    command = [sys.executable, "-c", code, msgspec.json.encode(leaving(service, mark)).decode()]
    crashed = await asyncio.create_subprocess_exec(*command)
    assert await crashed.wait() == -9
    assert await asyncio.to_thread(left, mark, 10) == [] and not listens(service)


async def test_a_service_has_the_signals_of_one_that_is_started_by_hand(service: Service, tmp_path: Path) -> None:
    telling = f'grep SigIgn /proc/self/status > {tmp_path}/ignored; exec "$@"'
    async with _run_service(msgspec.structs.replace(service, command=("sh", "-c", telling, "sh", *service.command))):
        assert int((tmp_path / "ignored").read_text().split()[1], 16) & (1 << signal.SIGPIPE - 1) == 0


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("/no/such/server",), "does not start: .*No such file"),
        (("sh", "-c", "exit 7"), r"ended with status 7 before it was ready\n    \(it printed nothing\)"),
        (("sh", "-c", "echo one; echo two >&2; exit 1"), r"ended with status 1 before it was ready\n    one\n    two"),
        (("sleep", "60"), r"did not answer at .* within 0.3 s"),
    ],
)
async def test_a_service_that_does_not_start_beside_the_browser_is_named(command: tuple[str, ...], why: str, service: Service) -> None:
    broken = msgspec.structs.replace(service, command=command, seconds=0.3 if command[0] == "sleep" else 30.0)
    with pytest.raises(EnvironmentFailure, match=why):
        async with open_served_site(BESIDE, PageSetup(), [broken]):
            pass


async def test_the_limit_of_snapshots_is_that_of_the_configuration(executable: str, service: Service) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    small = msgspec.structs.replace(CONFIG, snapshots=1)
    inside = msgspec.structs.replace(service, command=("python3", *service.command[1:]))
    async with open_served_site(small, PageSetup(), [inside]) as environments, environments.open(simulation=True) as environment:
        assert isinstance(environments, ForkingFactory)
        await environment.reset(task(service))
        first, second = await environment.snapshot(), await environment.snapshot()
        assert [environments.has(first), environments.has(second)] == [False, True]


async def test_miniwob_forks_only_where_that_is_required(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with MiniWob().environments(CONFIG) as environments:
        assert not isinstance(environments, ForkingFactory)
    monkeypatch.setenv("EXACT_RUNSC", "/nowhere")
    with pytest.raises(EnvironmentFailure, match="runsc"):
        async with MiniWob().environments(msgspec.structs.replace(CONFIG, sandbox="required")):
            pass


async def test_the_readiness_check_of_a_service_uses_no_proxy(
    service: Service, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpserver.expect_request(re.compile(".*")).respond_with_data("no", status=403)
    for name in ("no_proxy", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", httpserver.url_for("/"))
    assert await asyncio.to_thread(unanswered, service.ready_url)
    monkeypatch.setenv("http_proxy", service.ready_url)
    assert not await asyncio.to_thread(unanswered, httpserver.url_for("/"))


async def test_a_port_that_speaks_something_else_is_not_ready() -> None:
    async def junk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x15\x03\x01 no HTTP\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(junk, "127.0.0.1", 0) as server:
        assert "does not speak HTTP" in await asyncio.to_thread(unanswered, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")


@pytest.mark.parametrize("sandbox", ["auto", "required"])
async def test_a_site_with_a_reset_alone_is_reset_for_the_live_environment_and_written_to_by_no_other(
    executable: str, httpserver: HTTPServer, sandbox: Literal["auto", "required"]
) -> None:
    if sandbox == "required":
        try:
            find_runsc()
        except EnvironmentFailure as error:
            pytest.skip(str(error))
    done, said = list[str](), list[str]()

    def answer(request: Request) -> Response:
        done.append(f"{request.method} {request.path}")
        return Response("<form method=post action=/write><button>Write</button></form>", content_type="text/html")

    httpserver.expect_request(re.compile(".*")).respond_with_handler(answer)
    start = Task(id="rows/add", instruction="Write.", start=httpserver.url_for("/"))
    outside = Outside(site=Site(reset=Hook(url=httpserver.url_for("/reset"))))
    config = msgspec.structs.replace(CONFIG, sandbox=sandbox)
    async with open_remote_site(config, PageSetup(), outside, warn=said.append) as environments:
        for simulation in (True, False):
            async with environments.open(simulation=simulation) as environment:
                assert not environment.capabilities.isolated
                button = (await environment.reset(start)).elements[-1]
                await environment.step(environment.actions.parse(f"click [{button.id}]"))
    assert done == ["GET /", "POST /reset", "GET /", "POST /write"] and said == []
