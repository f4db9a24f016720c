"""A guest that counts lines, in sandboxes of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from exact.environments.sandbox.bundle import GuestSpec, find_interpreter, interpreter_files
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import Sandboxes, open_sandboxes
from exact.errors import EnvironmentFailure

COUNTER = """
import os, sys
seen = []
for line in sys.stdin:
    command = line.strip()
    try:
        seen.append(command)
        print(eval(command, {"seen": seen, "os": os}), flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


@pytest.fixture(scope="session")
def runsc() -> str:
    """Skip tests of real sandboxes where runsc is not usable."""
    try:
        return str(find_runsc().path)
    except EnvironmentFailure as error:
        pytest.skip(str(error))


@pytest.fixture
def counter() -> GuestSpec:
    """Start a guest that evaluates each line it reads, and keeps all lines in `seen`."""
    python = find_interpreter()
    return GuestSpec(args=(str(python), "-I", "-S", "-c", COUNTER), reads=interpreter_files(python))


@pytest.fixture
async def sandboxes(runsc: str) -> AsyncIterator[Sandboxes]:
    async with open_sandboxes() as opened:
        yield opened


async def ask(sandbox: Sandbox, question: str) -> str:
    """Return the guest's answer."""
    sandbox.stdin.write(f"{question}\n".encode())
    return (await sandbox.stdout.readline()).decode().strip()
