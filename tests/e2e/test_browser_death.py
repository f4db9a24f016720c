"""A browser ends with the process that launched it, however that ends."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from exact.machine import sweep
from tests.processes import left, marked

HOLD = """
import asyncio, signal
from exact.config import BrowserConfig
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.task import Task

async def main():
    async with launch(BrowserConfig()) as browser:
        async with BrowserFactory(browser, PageSetup(), BrowserConfig(), isolated=True).open(simulation=True) as environment:
            await environment.reset(Task(id="x", instruction="", start="about:blank"))
            print("up", flush=True)
            END

signal.signal(signal.SIGINT, signal.default_int_handler)  # who started the tests may have it ignored
asyncio.run(main())
"""
MARK = "LC_EXACT_TEST_BROWSER"


def start(end: str, mark: str, temporary: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.replace("END", end)],
        env={**os.environ, MARK: mark, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.usefixtures("executable")
@pytest.mark.parametrize("how", ["exit", "SIGINT", "SIGTERM", "SIGKILL"])
def test_no_process_or_file_remains_of_a_browser(how: str, tmp_path: Path) -> None:
    mark = f"{tmp_path.name}-{os.getpid()}"
    process = start("pass" if how == "exit" else "await asyncio.sleep(60)", mark, tmp_path)
    if how != "exit":
        assert any("headless" in each or "chrom" in each for each in marked(f"{MARK}={mark}").values())
        process.send_signal(getattr(signal, how))
    process.communicate()
    assert left(f"{MARK}={mark}", seconds=20.0) == []
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.usefixtures("executable")
def test_no_file_remains_if_the_browser_and_its_driver_are_killed_too(tmp_path: Path) -> None:
    mark = f"{tmp_path.name}-{os.getpid()}"
    process = start("await asyncio.sleep(60)", mark, tmp_path)
    for each in marked(f"{MARK}={mark}"):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.communicate()
    assert left(f"{MARK}={mark}", seconds=20.0) == []
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
