"""Finds the folders that an interpreter needs in a sandbox."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from exact.environments.sandbox.bundle import holds_home, inherited_variables
from exact.errors import EnvironmentFailure
from exact.machine import Child

_SCRIPT = "import sys; print(*[sys.executable, sys.prefix, sys.base_prefix, *sys.path], sep='\\n')"
_INSTALLED = ("bin", "lib", "lib64", "libexec", "include", "share", "ssl", "etc/fonts", "pyvenv.cfg")
"""What an installation has in its prefix, which may be a project or a home, with other files beside."""
_TIMEOUT = 30.0
_CHECKOUT = (".git", "pyproject.toml", "setup.py")
"""Names of which a checkout has one."""


class PythonInstallation(NamedTuple):
    """An interpreter and the folders of its code."""

    executable: Path
    """Path of the interpreter itself, if `python` was a script that starts it."""
    folders: tuple[Path, ...]
    """Its own folders, and those it imports from according to `.pth` files and environment."""


async def inspect_python(python: Path, env: Mapping[str, str]) -> PythonInstallation:
    """Run an interpreter with environment variables and return its report. Raises EnvironmentFailure if it does not run."""
    try:
        process = await Child.start(
            python, "-c", _SCRIPT, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd="/", env={**inherited_variables(dict(os.environ)), **env}
        )
    except OSError as error:
        raise EnvironmentFailure(f"{python} cannot be started: {error.strerror}: name another interpreter") from error
    try:
        async with asyncio.timeout(_TIMEOUT):
            output, errors = await process.communicate()
    except TimeoutError as error:
        raise EnvironmentFailure(f"{python} did not report its folders within {_TIMEOUT:g} s: name another interpreter") from error
    finally:
        await process.end()
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines() or [f"status {process.returncode}"]
        raise EnvironmentFailure(f"{python} does not run: {lines[-1]}: name another interpreter")
    executable, *places = (Path(line) for line in output.decode().splitlines() if line)
    executable = executable.parent.resolve() / executable.name  # a link to a virtual environment is not in the sandbox, its target is
    prefixes, imported = places[:2], places[2:]
    found = [prefix / name for prefix in prefixes for name in _INSTALLED if prefix != Path("/") and (prefix / name).exists()]
    found += [part for folder in imported if folder.exists() and folder != Path("/") for part in _shown(folder)]
    return PythonInstallation(executable, tuple(dict.fromkeys(found)))


def _shown(folder: Path) -> Iterator[Path]:
    """Yield the visible parts of a folder to import from.

    Of a checkout these are all but hidden files, which hold its history and keys; of a home directory, its modules and packages.
    """
    if holds_home(folder):
        yield from (each for each in sorted(folder.iterdir()) if each.suffix in (".py", ".so") or (each / "__init__.py").is_file())
    elif any((folder / name).exists() for name in _CHECKOUT):
        yield from (each for each in sorted(folder.iterdir()) if not each.name.startswith("."))
    else:
        yield folder
