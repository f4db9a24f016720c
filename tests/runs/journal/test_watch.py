"""A file that other processes append to wakes its reader."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from exact.runs.journal import commands
from exact.runs.journal.commands import send, watched


@pytest.mark.parametrize("system", [True, False], ids=["by notices of the system", "by looks at the size"])
async def test_each_change_of_a_file_wakes_its_reader_also_the_first(system: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not system:
        monkeypatch.setattr(commands, "_notices", lambda path: None)
        monkeypatch.setattr(commands, "POLL", 0.01)
    elif (notices := commands._notices(tmp_path / "x")) is None:
        pytest.skip("this system tells nothing of files")
    else:
        os.close(notices)
    woken = asyncio.Event()
    with watched(tmp_path / "commands.jsonl", woken.set):
        for _ in range(3):
            await asyncio.to_thread(send, tmp_path / "journal.jsonl", "pause")
            async with asyncio.timeout(5):
                await woken.wait()
            woken.clear()


async def test_a_change_before_the_first_look_wakes_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_notices", lambda path: None)
    monkeypatch.setattr(commands, "POLL", 0.01)
    woken = asyncio.Event()
    with watched(tmp_path / "commands.jsonl", woken.set):
        send(tmp_path / "journal.jsonl", "pause")  # in the same turn of the loop
        async with asyncio.timeout(5):
            await woken.wait()


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    open_files = Path("/proc/self/fd")
    if not open_files.exists():
        pytest.skip("this system does not list open files")

    async def watch() -> None:
        with watched(tmp_path / "commands.jsonl", lambda: None):
            await asyncio.sleep(0)

    asyncio.run(watch())
    before = len(list(open_files.iterdir()))
    asyncio.run(watch())
    assert len(list(open_files.iterdir())) == before


async def test_other_files_of_the_folder_wake_nobody_once_the_file_is_there(tmp_path: Path) -> None:
    send(tmp_path / "journal.jsonl", "pause")
    woken = asyncio.Event()
    (tmp_path / "journal.jsonl").write_bytes(b"")
    with watched(tmp_path / "commands.jsonl", woken.set):
        (tmp_path / "journal.jsonl").write_bytes(b"x" * 100)
        await asyncio.sleep(0.05)
        assert not woken.is_set()
