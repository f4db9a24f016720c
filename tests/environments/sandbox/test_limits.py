"""Real sandboxes: what they see of the host, and what they may use."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from exact.environments.sandbox import GuestSpec, Sandboxes
from exact.environments.sandbox.host import masked_folders, private_files
from exact.environments.sandbox.limits import memory_of

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
    assert 0 < (memory_of(sandbox.pid) or 0) < 400 << 20
    async with asyncio.timeout(60):
        assert await ask(sandbox, "seen.append([bytearray(b'x' * (1 << 20)) for _ in range(4000)])") == ""
        assert "MiB of memory and was killed: raise sandbox.memory_bytes" in await sandbox.why()
    assert await ask(other, "1 + 1") == "2"


async def test_a_fork_has_the_limits_of_its_origin(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    sandbox = await sandboxes.start(msgspec.structs.replace(counter, memory=400 << 20))
    await ask(sandbox, "1")
    image = await sandboxes.checkpoint(sandbox)
    async with sandboxes.fork(image.id) as fork:
        async with asyncio.timeout(60):
            assert await ask(fork, "seen.append([bytearray(b'x' * (1 << 20)) for _ in range(4000)])") == ""
        assert "was killed" in await fork.why()
