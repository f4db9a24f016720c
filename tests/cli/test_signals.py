"""A command that SIGTERM or SIGHUP ends cleans up, as after Ctrl-C."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.cli.signals import run_async

HUNG = """
import asyncio, contextlib, sys
from exact.environments.toy.factory import ToyFactory, chain
from exact.machine import scratch

@contextlib.asynccontextmanager
async def hung():
    with scratch("probe"):
        print("up", file=sys.stderr, flush=True)
        try:
            await asyncio.sleep(60)
        finally:
            print("closing", file=sys.stderr, flush=True)
            await asyncio.sleep(0.5)
    yield ToyFactory(chain(3))
"""
"""An environment that hangs while it opens, and takes a moment to close."""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts `exact` with a folder for temporary files of its own."""
    started = list[subprocess.Popen[str]]()
    (tmp_path / "temporary").mkdir()

    def start(*words: str, ignored: tuple[int, ...] = (), stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
        env = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "XDG_CACHE_HOME": str(tmp_path / "cache")}

        def ignore() -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # else the command ignores it if the tests run in the background
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)

        command = [sys.executable, "-m", "exact.cli", *words]
        process = subprocess.Popen(
            command, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, text=True, preexec_fn=ignore
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def asked(httpserver: HTTPServer) -> Iterator[threading.Event]:
    """Serve a run folder whose file never comes. Return what is set once the file was asked for."""
    pytest.importorskip("fsspec.implementations.http")
    asked, over = threading.Event(), threading.Event()

    def hang(request: Request) -> Response:
        asked.set()
        over.wait(60)
        return Response("")

    httpserver.expect_request("/run").respond_with_data('<a href="/run/run.json">run.json</a>', content_type="text/html")
    httpserver.expect_request("/run/run.json", method="HEAD").respond_with_data("")
    httpserver.expect_request("/run/run.json").respond_with_handler(hang)
    yield asked
    over.set()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SIGTERM", ["show", "--progress"]),
        ("SIGHUP", ["show", "--progress"]),
        ("SIGINT", ["show", "--progress"]),
        ("SIGTERM", ["trust", "--secrets"]),
        ("SIGTERM", ["export", "json"]),
    ],
)
def test_a_command_that_reads_from_storage_leaves_no_copy(
    name: str, words: list[str], start: Start, asked: threading.Event, httpserver: HTTPServer, tmp_path: Path
) -> None:
    process = start(*words, httpserver.url_for("/run"))
    assert asked.wait(60)
    assert [each.name.startswith("exact-stored-") for each in (tmp_path / "temporary").iterdir()] == [True]
    number = signal.Signals[name]
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert (process.returncode, told.strip()) == (128 + number, "exact: interrupted")
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("sent", "ignored"),
    [(["SIGTERM", "SIGTERM"], ()), (["SIGHUP", "SIGTERM"], ()), (["SIGINT"], ()), (["SIGTERM"], (signal.SIGINT,))],
)
def test_a_command_with_an_event_loop_closes_its_environments_whatever_comes_meanwhile(
    sent: list[str], ignored: tuple[int, ...], start: Start, tmp_path: Path
) -> None:
    (tmp_path / "hung.py").write_text(HUNG)
    process = start("check", "hung:hung", ignored=ignored)
    assert process.stderr is not None
    said = ["up", "closing"]
    for name in sent:
        assert process.stderr.readline().strip() == said.pop(0)
        process.send_signal(signal.Signals[name])
    _, told = process.communicate(timeout=30)
    assert (process.returncode, told.split()) == (128 + signal.Signals[sent[0]], [*said, "exact:", "interrupted"])
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_closed_terminal_ends_a_command_that_cleans_up(start: Start, tmp_path: Path) -> None:
    (tmp_path / "hung.py").write_text(HUNG)
    terminal, own = os.openpty()
    process = start("check", "hung:hung", stderr=own)
    os.close(own)
    assert b"up" in os.read(terminal, 100)
    os.close(terminal)
    process.send_signal(signal.SIGHUP)  # the kernel sends it to the leader of a session
    assert process.wait(30) == 128 + signal.SIGHUP
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_nohup_ignores_stays_ignored(start: Start, tmp_path: Path) -> None:
    (tmp_path / "hung.py").write_text(HUNG)
    process = start("check", "hung:hung", ignored=(signal.SIGHUP,))
    assert process.stderr is not None and process.stderr.readline() == "up\n"
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM


@pytest.mark.parametrize("ended", [True, False])
def test_an_answer_that_nobody_waits_for_is_reported_unless_the_work_was_ended(caplog: pytest.LogCaptureFixture, ended: bool) -> None:
    """A browser that is closing answers with an error to all that was asked, also to what was given up."""

    async def work() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        answer = loop.create_future()
        answer.set_exception(OSError("closed"))
        if ended and task is not None:
            loop.call_soon(task.cancel)
            await asyncio.sleep(30)

    with suppress(asyncio.CancelledError):
        run_async(work())
    gc.collect()
    assert ["never retrieved" in each.message for each in caplog.records] == ([] if ended else [True])


def test_every_event_loop_of_a_command_ends_with_the_signals() -> None:
    files = (Path(__file__).parents[2] / "exact" / "cli").glob("*.py")
    assert [file.name for file in files if "asyncio.run(" in file.read_text()] == ["signals.py"]
