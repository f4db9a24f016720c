"""A PostgreSQL server of one's own in a temporary folder, over a Unix socket."""

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
    """The folder of the newest server installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parent.parent.name))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@contextmanager
def server(_: Path | None = None) -> Iterator[str]:
    """The address of an empty database. Skips, with the reason, where there is no server or no psycopg."""
    tools = binaries()
    if tools is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'exact-agent[postgres]'")
    home = Path(tempfile.mkdtemp(prefix="exact-pg-"))
    user = next((name for name in _USERS if _exists(name)), None) if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(home, user)
    data = home / "data"

    def call(*command: object) -> None:
        subprocess.run([str(part) for part in command], check=True, capture_output=True, user=user, cwd=home, timeout=120)

    try:
        call(tools / "initdb", "-D", data, "-U", "exact", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
        call(
            tools / "pg_ctl", "-D", data, "-w", "-l", home / "log", "-o", f"-k {home} -c listen_addresses='' -c max_connections=30", "start"
        )
        try:
            yield f"postgresql://exact@/postgres?host={home}"
        finally:
            call(tools / "pg_ctl", "-D", data, "-w", "-m", "fast", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
