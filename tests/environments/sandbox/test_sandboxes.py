"""Real sandboxes, with a guest that counts."""

import asyncio
import os
from ast import literal_eval
from pathlib import Path

import pytest

from exact.environments.process.process import GuestProcess
from exact.environments.sandbox import sandboxes as module
from exact.environments.sandbox.bundle import GuestSpec
from exact.environments.sandbox.factory import SandboxLauncher
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import LIMIT, Sandboxes, open_sandboxes
from exact.errors import EnvironmentFailure
from tests.processes import pipes

from .conftest import ask
from .test_crash import alive


async def test_a_fork_continues_from_the_checkpoint_and_the_original_from_where_it_was(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    original = await sandboxes.start(counter)
    assert await ask(original, "len(seen)") == "1"
    image = await sandboxes.checkpoint(original)
    assert await ask(original, "len(seen)") == "2"
    async with sandboxes.fork(image.id) as left, sandboxes.fork(image.id) as right:
        assert await ask(left, "len(seen)") == "2"
        assert await ask(left, "len(seen)") == "3"
        assert await ask(right, "len(seen)") == "2"
        assert await ask(original, "len(seen)") == "3"


async def test_a_fork_can_be_checkpointed_in_turn(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    sandbox = await sandboxes.start(counter)
    for depth in range(1, 4):
        assert await ask(sandbox, "len(seen)") == str(depth)
        image = await sandboxes.checkpoint(sandbox)
        await sandboxes.end(sandbox)
        async with sandboxes.fork(image.id) as sandbox:
            pass
    assert await ask(sandbox, "len(seen)") == "4"


async def test_the_next_fork_is_loaded_into_a_sandbox_that_was_started_ahead_of_it(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    original = await sandboxes.start(counter)
    images = []
    for _ in range(2):
        await ask(original, "0")
        images.append(await sandboxes.checkpoint(original))
    async with sandboxes.fork(images[0].id) as first:
        assert await ask(first, "len(seen)") == "2"
    ready = await waiting(sandboxes)
    async with sandboxes.fork(images[1].id) as second:
        assert second is ready and second.pid in sandboxes.pids
        assert await ask(second, "len(seen)") == "3"
        again = await sandboxes.checkpoint(second)
    await sandboxes.end(second)
    assert not second.alive
    async with sandboxes.fork(again.id) as third:
        assert await ask(third, "len(seen)") == "4"


async def test_a_sandbox_that_died_while_it_waited_is_not_used(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    original = await sandboxes.start(counter)
    await ask(original, "0")
    image = await sandboxes.checkpoint(original)
    async with sandboxes.fork(image.id) as fork:
        await ask(fork, "0")
    dead = await waiting(sandboxes)
    dead.kill()
    await dead.why()
    async with sandboxes.fork(image.id) as fork:
        assert fork is not dead and await ask(fork, "len(seen)") == "2"


async def test_a_sandbox_that_waits_ends_with_the_others(runsc: str, counter: GuestSpec, tmp_path: Path) -> None:
    before = pipes()
    async with open_sandboxes(parent=tmp_path) as opened:
        original = await opened.start(counter)
        await ask(original, "0")
        image = await opened.checkpoint(original)
        async with opened.fork(image.id) as fork:
            await ask(fork, "0")
        await waiting(opened)
        assert alive(str(tmp_path))
    assert not alive(str(tmp_path)) and not pipes() - before


async def waiting(sandboxes: Sandboxes) -> Sandbox:
    """Return the sandbox that waits for an image."""
    assert sandboxes._making is not None
    await sandboxes._making
    assert sandboxes._idle is not None
    return sandboxes._idle


async def test_a_paused_sandbox_answers_once_it_is_resumed(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    sandbox = await sandboxes.start(counter)
    assert await ask(sandbox, "len(seen)") == "1"
    await sandbox.pause()
    sandbox.stdin.write(b"len(seen)\n")
    assert sandbox.paused
    await sandbox.resume()
    assert await sandbox.stdout.readline() == b"2\n"


async def test_a_paused_sandbox_ends_too(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    sandbox = await sandboxes.start(counter)
    await ask(sandbox, "0")
    await sandbox.pause()
    await sandboxes.end(sandbox)
    assert not sandbox.alive


async def test_a_sandbox_with_unread_output_ends_and_keeps_no_pipe(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    before = pipes()
    sandbox = await sandboxes.start(counter)
    sandbox.stdin.write(b"'x' * (8 << 20)\n")  # more than is read ahead
    await sandbox.stdout.readexactly(1)
    async with asyncio.timeout(20):
        await sandboxes.end(sandbox)
    assert not sandbox.alive and not pipes() - before


async def test_writes_of_a_guest_stay_inside(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    sandbox = await sandboxes.start(counter)
    assert await ask(sandbox, "open('/etc/exact-was-here', 'w').write('x')") in ("1", "PermissionError")
    assert await ask(sandbox, "open('/tmp/exact-was-here', 'w').write('x')") == "1"
    assert not os.access("/etc/exact-was-here", os.F_OK) and not os.access("/tmp/exact-was-here", os.F_OK)


async def test_homes_and_other_environments_are_hidden(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    sandbox = await sandboxes.start(counter)
    needed = {part for path in counter.reads for part in path.parts}
    for place in (os.environ["HOME"], "/home", "/dev/shm", "/tmp"):
        assert set(literal_eval(await ask(sandbox, f"os.path.isdir({place!r}) and os.listdir({place!r}) or []"))) <= needed


async def test_only_loopback_and_the_allowed_variables_are_there(
    sandboxes: Sandboxes, counter: GuestSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    sandbox = await sandboxes.start(counter)
    assert "OPENAI_API_KEY" not in await ask(sandbox, "sorted(os.environ)")
    assert await ask(sandbox, "__import__('socket').create_connection(('192.0.2.1', 80), 5)") == "OSError"
    assert await ask(sandbox, "[name for _, name in __import__('socket').if_nameindex()]") == "['lo']"


async def test_a_program_that_does_not_exist_is_named(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.start(GuestSpec(args=("/no/such/program",)))
    assert "/no/such/program" in await sandbox.why()


async def test_an_image_of_another_version_is_not_restored(
    sandboxes: Sandboxes, counter: GuestSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await sandboxes.start(counter)
    await ask(sandbox, "0")
    image = await sandboxes.checkpoint(sandbox)
    monkeypatch.setattr(module, "__version__", "99")
    with pytest.raises(EnvironmentFailure, match="taken with another exact"):
        async with sandboxes.fork(image.id):
            pass


async def test_a_truncated_image_is_not_restored_and_harms_nothing_else(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    original = await sandboxes.start(counter)
    await ask(original, "0")
    image = await sandboxes.checkpoint(original)
    for file in image.folder.iterdir():
        os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(EnvironmentFailure, match="damaged"):
        async with sandboxes.fork(image.id):
            pass
    assert await ask(original, "len(seen)") == "2"


async def test_a_checkpoint_for_which_there_is_no_space_fails_and_the_environment_continues(
    sandboxes: Sandboxes, counter: GuestSpec
) -> None:
    sandbox = await sandboxes.start(counter)
    await ask(sandbox, "0")
    with pytest.raises(EnvironmentFailure, match="checkpoint failed"):
        await sandbox.checkpoint(Path("/proc/no/room"))
    assert await ask(sandbox, "len(seen)") == "2"


async def test_images_are_private_and_gone_afterwards(runsc: str, counter: GuestSpec) -> None:
    async with open_sandboxes() as sandboxes:
        sandbox = await sandboxes.start(counter)
        await ask(sandbox, "0")
        image = await sandboxes.checkpoint(sandbox)
        room = image.folder.parents[1]
        assert [path.stat().st_mode & 0o777 for path in (room, image.folder)] == [0o700, 0o700]
    assert not room.exists() and not sandbox.alive


async def test_when_the_disk_is_full_the_checkpoint_fails_its_files_go_and_the_environment_continues(
    sandboxes: Sandboxes, counter: GuestSpec, tmp_path: Path
) -> None:
    sandbox = await sandboxes.start(counter)
    await ask(sandbox, "0")
    mounted = await asyncio.create_subprocess_exec(
        "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path, stderr=asyncio.subprocess.DEVNULL
    )
    if await mounted.wait():
        pytest.skip("this user cannot mount a small file system")
    try:
        (image := tmp_path / "image").mkdir()
        with pytest.raises(EnvironmentFailure, match="no space left on device"):
            await sandbox.checkpoint(image)
        assert not image.exists() and await ask(sandbox, "len(seen)") == "2"
    finally:
        await (await asyncio.create_subprocess_exec("umount", tmp_path)).wait()


async def test_a_worker_can_start_its_guest_in_a_sandbox(sandboxes: Sandboxes, counter: GuestSpec) -> None:
    guest: GuestProcess = await SandboxLauncher(sandboxes, template=counter).start(counter.args, {"ANSWER": "42"})
    guest.stdin.write(b"os.environ['ANSWER']\n")
    assert await guest.stdout.readline() == b"42\n" and guest.alive
    guest.kill()
    assert await guest.why() == "it ended with status -9"
    await guest.end()


async def test_images_are_packed_when_space_gets_scarce_and_are_restored_all_the_same(runsc: str, counter: GuestSpec) -> None:
    async with open_sandboxes(limit=LIMIT) as sandboxes:
        sandbox = await sandboxes.start(counter)
        await ask(sandbox, "0")
        base = await sandboxes.checkpoint(sandbox, pinned=True)
        sandboxes.images.limit = 7 * base.bytes // 2
        taken = []
        for _ in range(4):
            await ask(sandbox, "0")
            taken.append(await sandboxes.checkpoint(sandbox))
            await sandboxes.packer.wait()
        kept = [sandboxes.images.find(image.id) for image in taken]
        assert [image.packed for image in kept] == [True, True, True, False]
        assert all(image.bytes * 5 < base.bytes and not (image.folder / "pages.img").exists() for image in kept[:3])
        for number, image in enumerate(kept, 3):
            async with sandboxes.fork(image.id) as branch:
                assert await ask(branch, "len(seen)") == str(number)


async def test_an_image_that_is_wanted_while_it_is_packed_is_waited_for(runsc: str, counter: GuestSpec) -> None:
    async with open_sandboxes(limit=LIMIT) as sandboxes:
        sandbox = await sandboxes.start(counter)
        await ask(sandbox, "0")
        first = await sandboxes.checkpoint(sandbox)
        sandboxes.images.limit = 5 * first.bytes // 2
        await sandboxes.checkpoint(sandbox)
        await asyncio.sleep(0)  # packing begins
        async with sandboxes.fork(first.id) as branch:
            assert await ask(branch, "len(seen)") == "2"


async def test_a_packed_image_that_is_damaged_is_not_restored(runsc: str, counter: GuestSpec) -> None:
    async with open_sandboxes(limit=LIMIT) as sandboxes:
        sandbox = await sandboxes.start(counter)
        await ask(sandbox, "0")
        first = await sandboxes.checkpoint(sandbox)
        sandboxes.images.limit = 5 * first.bytes // 2
        await sandboxes.checkpoint(sandbox)
        await sandboxes.packer.wait()
        os.truncate(first.folder / "pages.img.packed", 1000)
        with pytest.raises(EnvironmentFailure, match=r"cannot be unpacked: .* is damaged"):
            async with sandboxes.fork(first.id):
                pass
