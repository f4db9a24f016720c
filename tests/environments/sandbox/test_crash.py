"""A process that has sandboxes running is killed, and nothing of it remains."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

OWNER = '''
import asyncio, sys
from pathlib import Path
from exact.environments.sandbox.bundle import GuestSpec, find_interpreter, interpreter_files
from exact.environments.sandbox.sandboxes import open_sandboxes

DEAF = """
import subprocess, sys
subprocess.Popen(["sleep", "600"])
print("one", flush=True)
sys.stdin.readline()
print("two", flush=True)
subprocess.run(["sleep", "600"])
"""

async def main():
    async with open_sandboxes(parent=Path(sys.argv[1])) as sandboxes:
        python = find_interpreter()
        one = await sandboxes.start(GuestSpec(args=(str(python), "-I", "-S", "-c", DEAF), reads=interpreter_files(python)))
        await one.stdout.readline()
        image = await sandboxes.checkpoint(one)
        async with sandboxes.fork(image.id) as two:
            two.stdin.write(b"go on\\n")
            await two.stdout.readline()
            await two.pause()
        await sandboxes._making  # one that waits for an image
        print("ready", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
'''


def alive(marker: str) -> list[int]:
    """Return the processes whose command line names a folder, except dead ones that were not waited for."""
    return [pid for pid, line in commands() if marker in line]


def commands() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit():
                yield int(folder.name), (folder / "cmdline").read_text()
        except OSError:
            continue


@pytest.mark.parametrize("signal", ["kill", "terminate"])
def test_when_the_parent_is_killed_no_process_and_no_image_remains(runsc: str, tmp_path: Path, signal: str) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER, tmp_path], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout and owner.stdout.readline() == "ready\n"
        assert len([pid for pid in alive(str(tmp_path)) if pid != owner.pid]) >= 7, "one that runs, one that is paused, and one that waits"
        getattr(owner, signal)()
    end = time.monotonic() + 30
    while alive(str(tmp_path)):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert list(tmp_path.iterdir()) == []
