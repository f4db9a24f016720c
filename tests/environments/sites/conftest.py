"""A PostgreSQL cluster of one's own, and a shop behind which it is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from exact.environments.sites.site import Hook, Outside, Site

from . import shop as application

SHOP = Path(__file__).with_name("shop.py")


def program(name: str) -> str:
    """Debian keeps the server's programs out of PATH."""
    found = shutil.which(name) or next((str(each) for each in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), "")
    return found or pytest.skip(f"there is no {name}: apt-get install postgresql")


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """Start a PostgreSQL cluster, and return the folder of its socket. As root the tests run it as `nobody`, because it refuses root."""
    initdb, postgres = program("initdb"), program("postgres")
    program("psql")
    user = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="exact-pg-") as folder:
        if user:
            shutil.chown(folder, user)
        data = f"{folder}/data"
        subprocess.run(
            [initdb, "-D", data, "-A", "trust", "-U", "exact", "--no-sync", "-E", "UTF8", "--no-locale"],
            user=user, check=True, capture_output=True, cwd="/",
        )  # fmt: skip
        server = subprocess.Popen(
            [postgres, "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "autovacuum=off"],
            user=user, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_for(folder)
            application.sql(folder, "postgres", "create database seed")
            application.sql(folder, "seed", "create table rows(id serial, text text)")
            yield folder
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=30)


def wait_for(folder: str) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            application.sql(folder, "postgres", "select 1")
            return
        except subprocess.CalledProcessError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


@pytest.fixture
def shop(cluster: str) -> Iterator[dict[str, Hook | str]]:
    """Fields of its Site, and the address of its first instance under `at`. No instance is left after the test."""
    application.hook(cluster, "reset", "", "")
    try:
        command = [sys.executable, str(SHOP), cluster, "start", "", ""]
        at = subprocess.run(command, check=True, capture_output=True, text=True).stdout

        def hook(role: str) -> Hook:
            return Hook(command=(sys.executable, str(SHOP), cluster, role, "{name}", "{base}"))

        yield {"base": "http://shop.test", "at": at} | {
            role: hook(role) for role in ("reset", "snapshot", "restore", "fork", "drop", "end")
        }
    finally:
        for file in Path(cluster).glob("[0-9]*"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text().split()[0]), signal.SIGKILL)
            file.unlink()


@pytest.fixture(params=["fork", "turns"])
def outside(shop: dict[str, Hook | str], request: pytest.FixtureRequest) -> Outside:
    """Return the site with and without a hook that forks."""
    fields = dict(shop)
    at = str(fields.pop("at")).removeprefix("http://")
    del fields["restore" if request.param == "fork" else "fork"]
    return Outside(hosts={"shop.test": at}, site=Site(**fields))  # type: ignore[arg-type]


def databases(cluster: str) -> set[str]:
    """Return all databases except those of the cluster and of the first instance."""
    found = application.sql(cluster, "postgres", "select datname from pg_database").split()
    return set(found) - {"postgres", "template0", "template1", "seed", "shop"}
