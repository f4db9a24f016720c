"""Probes by a real checkpoint and restore whether environments fork on this machine, and suggests a fix if they do not."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

from exact.environments.sandbox.bundle import GuestSpec, find_interpreter, interpreter_files
from exact.environments.sandbox.runsc import Runsc
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import open_sandboxes
from exact.errors import EnvironmentFailure

_COUNTER = "import sys\nfor number, _ in enumerate(sys.stdin, 1): print(number, flush=True)"
_TIMEOUT = 60.0
_CONTAINER = "in a container: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or --privileged"
_SETTINGS = (
    (
        "sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor keeps user namespaces from programs without a profile: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0,"
        " or write `profile unshare /usr/bin/unshare flags=(unconfined) { userns, }` to /etc/apparmor.d/unshare and load it with"
        " sudo apparmor_parser -r",
    ),
    (
        "sys/kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are for root only: sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    ("sys/user/max_user_namespaces", "0", "user namespaces are switched off: sudo sysctl -w user.max_user_namespaces=15000"),
)


class ForkingProbe(NamedTuple):
    """Seconds that each operation took with an idle sandbox."""

    start: float
    checkpoint: float
    restore: float


async def probe_forking() -> ForkingProbe:
    """Start a guest, checkpoint it, restore it, and check that both count independently.

    Raises EnvironmentFailure with the operation that failed, and TimeoutError after 60 s.
    """
    python, clock = find_interpreter(), time.perf_counter
    async with open_sandboxes() as sandboxes, asyncio.timeout(_TIMEOUT):
        begun = clock()
        original = await sandboxes.start(GuestSpec(args=(str(python), "-I", "-S", "-c", _COUNTER), reads=interpreter_files(python)))
        await _expect_count(original, 1)
        started = clock()
        image = await sandboxes.checkpoint(original)
        saved = clock()
        async with sandboxes.fork(image.id) as fork:
            await _expect_count(fork, 2)
            restored = clock()
            await _expect_count(fork, 3)
            await _expect_count(original, 2)
    return ForkingProbe(started - begun, saved - started, restored - saved)


def suggest_fix(runsc: Runsc, proc: Path = Path("/proc")) -> str:
    """Return the fix after `probe_forking` failed: the setting of this machine that prevents it, or the flags of a container."""
    if not runsc.privileged:
        for name, refusing, fix in _SETTINGS:
            if (proc / name).is_file() and (proc / name).read_text().strip() == refusing:
                return fix
    return _CONTAINER


async def _expect_count(sandbox: Sandbox, number: int) -> None:
    try:
        sandbox.stdin.write(b"\n")
        await sandbox.stdin.drain()
        reply = await sandbox.stdout.readline()
    except ConnectionError:
        reply = b""
    if reply != f"{number}\n".encode():
        raise EnvironmentFailure(await sandbox.why() if not reply else f"the sandbox counts {reply!r} where {number} was expected")
