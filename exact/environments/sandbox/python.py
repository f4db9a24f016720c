"""What an interpreter needs to be run in a sandbox."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from exact.child import Child
from exact.environments.sandbox.bundle import inherited_variables
from exact.errors import EnvironmentFailure

_QUESTION = "import sys; print(*[sys.executable, sys.prefix, sys.base_prefix, *sys.path], sep='\\n')"
_PATIENCE = 30.0


class PythonInstallation(NamedTuple):
    """An interpreter and where its code lies."""

    executable: Path
    """Itself, where `python` was a script that finds one."""
    folders: tuple[Path, ...]
    """Its own, and those it imports from, as `.pth` files and environment have them."""


async def inspect_python(python: Path, env: Mapping[str, str]) -> PythonInstallation:
    """What an interpreter says of itself when it is run with these variables. Raises EnvironmentFailure if it does not run."""
    try:
        process = await Child.start(
            python, "-c", _QUESTION, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd="/", env={**inherited_variables(dict(os.environ)), **env}
        )
    except OSError as error:
        raise EnvironmentFailure(f"{python} cannot be started: {error.strerror}: name another interpreter") from error
    try:
        async with asyncio.timeout(_PATIENCE):
            told, said = await process.communicate()
    except TimeoutError as error:
        raise EnvironmentFailure(f"{python} did not say where it is within {_PATIENCE:g} s: name another interpreter") from error
    finally:
        await process.end()
    if process.returncode:
        lines = said.decode(errors="replace").strip().splitlines() or [f"status {process.returncode}"]
        raise EnvironmentFailure(f"{python} does not run: {lines[-1]}: name another interpreter")
    executable, *folders = (Path(line) for line in told.decode().splitlines() if line)
    return PythonInstallation(executable, tuple(folder for folder in dict.fromkeys(folders) if folder.exists() and folder != Path("/")))
