"""Real sandboxes: what they see of the host, and what they may use."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from exact.environments.sandbox.bundle import GuestSpec
from exact.environments.sandbox.host import masked_folders, private_files
from exact.environments.sandbox.sandbox import MemoryGauge, seconds_to_next_look
from exact.environments.sandbox.sandboxes import Sandboxes

from .conftest import ask


async def test_a_guest_sees_no_data_of_the_host(sandboxes: Sandboxes, counter: GuestSpec, tmp_path: Path) -> None:
    (checkout := tmp_path / "checkout").mkdir()
    (checkout / "key").write_text("secret")
    sandbox = await sandboxes.start(counter)
    for path in private_files():
        size = f"sum(len(f) for _, _, f in os.walk({path!r})) if os.path.isdir({path!r}) else os.path.getsize({path!r})"
        assert await ask(sandbox, size) == "0", path
    assert {"/opt", "/var/lib", "/var/log"} <= set(masked_folders())
    needed = tuple(str(path) for path in counter.reads)
    for folder in masked_folders():
        names = set((await ask(sandbox, f"' '.join(os.listdir({folder!r})) if os.path.isdir({folder!r}) else ''")).split())
        inner = {"tmp", "lock", "fontconfig", "xkb"} | {
            Path(each).relative_to(folder).parts[0] for each in needed if each.startswith(folder + "/")
        }
        assert names <= inner, folder
    assert await ask(sandbox, f"os.path.exists({str(checkout)!r})") == "False"
    assert await ask(sandbox, "os.path.islink('/var/run') == os.path.exists('/var/run')") == "True"


async def test_a_file_that_a_guest_reads_is_not_hidden_from_it() -> None:
    from exact.environments.sandbox.bundle import oci_configuration

    for path in private_files():
        bound = [each["destination"] for each in oci_configuration(GuestSpec(args=("true",), reads=(Path(path),)), {})["mounts"]]
        assert path not in bound


async def test_a_fork_bomb_ends_at_the_limit_of_processes(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    sandbox = await sandboxes.start(msgspec.structs.replace(counter, processes=40))
    bomb = "[pid for _ in range(200) for pid in [os.fork()] if pid or os.pause() or True]".replace(
        "os.pause()", "__import__('signal').pause()"
    )
    async with asyncio.timeout(60):
        assert await ask(sandbox, bomb) == "BlockingIOError"
        assert await ask(sandbox, "1 + 1") == "2"


async def test_a_guest_that_takes_too_much_memory_is_killed_and_says_so(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    sandbox = await sandboxes.start(msgspec.structs.replace(counter, memory=400 << 20))
    other = await sandboxes.start(counter)
    assert await ask(sandbox, "len(bytes(1 << 20))") == str(1 << 20)
    assert 0 < (MemoryGauge(sandbox.pid).read() or 0) < 400 << 20
    async with asyncio.timeout(60):
        assert await ask(sandbox, "seen.append([bytearray(b'x' * (1 << 20)) for _ in range(4000)])") == ""
        assert "MiB of memory and was killed: raise sandbox.memory_bytes" in await sandbox.why()
    assert await ask(other, "1 + 1") == "2"


def test_memory_is_looked_at_seldom_far_from_the_limit_and_often_near_it() -> None:
    pauses = [seconds_to_next_look(used, 8 << 30) for used in (0, 100 << 20, 7 << 30, 8 << 30)]
    assert pauses == [2.0, 2.0, 1.0, 0.25]


def test_files_in_memory_that_come_later_are_found() -> None:
    gauge = MemoryGauge(os.getpid())
    before = gauge.read() or 0
    with os.fdopen(os.memfd_create("later"), "wb") as file:
        file.write(b"x" * (64 << 20))
        file.flush()
        later = max(gauge.read() or 0 for _ in range(10))
    assert later - before > 60 << 20


async def test_a_fork_has_the_limits_of_its_origin(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    sandbox = await sandboxes.start(msgspec.structs.replace(counter, memory=400 << 20))
    await ask(sandbox, "1")
    image = await sandboxes.checkpoint(sandbox)
    async with sandboxes.fork(image.id) as fork:
        async with asyncio.timeout(60):
            assert await ask(fork, "seen.append([bytearray(b'x' * (1 << 20)) for _ in range(4000)])") == ""
        assert "was killed" in await fork.why()
