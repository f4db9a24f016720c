"""Processes whose pipes are full, or held by others."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE

import pytest

from exact.machine import Child

from .processes import pipes

TALKS = "import sys; sys.stdout.write('x' * (1 << 20)); sys.stdout.flush()"
LEAVES = "import subprocess; print(subprocess.Popen(['sleep', '60'], start_new_session=True).pid, flush=True)"
STAYS = "; import time; time.sleep(60)"
PIPES = {"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE}


async def test_the_exit_status_is_returned() -> None:
    process = await Child.start(sys.executable, "-c", "raise SystemExit(3)")
    assert await process.wait() == 3 == process.returncode
    await process.end()
    await process.end()
    assert process.returncode == 3


@pytest.mark.parametrize("way", ["kill", "end"])
async def test_a_child_with_unread_output_ends(way: str) -> None:
    before = pipes()
    async with asyncio.timeout(20):
        process = await Child.start(sys.executable, "-c", TALKS, limit=1, **PIPES)
        assert process.stdout is not None
        await process.stdout.readexactly(1)
        if way == "kill":
            process.kill()
            assert await process.wait() == -signal.SIGKILL
        await process.end()
    assert process.returncode == -signal.SIGKILL and not pipes() - before


@pytest.mark.parametrize("more", ["", STAYS])
async def test_a_child_whose_descendants_hold_its_pipes_ends(more: str) -> None:
    before = pipes()
    async with asyncio.timeout(20):
        process = await Child.start(sys.executable, "-c", LEAVES + more, **PIPES)
        assert process.stdout is not None
        left = int(await process.stdout.readline())
        try:
            await process.end()
            assert process.returncode is not None and not pipes() - before
        finally:
            os.kill(left, signal.SIGKILL)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="asyncio reaps without a thread there")
@pytest.mark.parametrize("way", ["kill", "end"])
async def test_the_exit_status_survives_a_signal_that_comes_too_late(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reaped, late = os.waitpid, threading.Event()

    def slow(process: int, options: int) -> tuple[int, int]:
        late.wait(10)
        return reaped(process, options)

    monkeypatch.setattr(os, "waitpid", slow)  # as on a busy machine, where the thread that waits begins late
    process = await Child.start(sys.executable, "-c", "raise SystemExit(7)")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - it ends at once
    asyncio.get_running_loop().call_later(0.2, late.set)
    if way == "kill":
        process.kill()
    await process.end()
    assert process.returncode == 7
