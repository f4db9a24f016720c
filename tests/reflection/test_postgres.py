"""Memory on a PostgreSQL server: what only a server can do to it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from exact.errors import InfrastructureError, UsageError
from exact.reflection.memory.open import open_memory
from tests.reflection.kills import storm
from tests.reflection.postgres import Server


def test_a_server_that_was_down_is_used_again_and_nothing_acknowledged_is_lost(postgres: Server, make: Any) -> None:
    with open_memory(postgres.database("crashed")) as memory:
        memory.add(make.reflection("Press Go"))
        postgres.stop("immediate")
        try:
            with pytest.raises(InfrastructureError, match="postgres"):
                memory.add(make.reflection("Press Stop"))
        finally:
            postgres.start()
        memory.add(make.reflection("Press Stop"))
        assert {entry.reflection.instruction for entry in memory.entries()} == {"Press Go", "Press Stop"} and len(memory) == 2


def test_writers_at_once_are_seen_by_a_reader_that_looks_all_the_time(postgres: Server, make: Any) -> None:
    address = postgres.database("shared")
    with open_memory(address) as reader:

        def write(name: int) -> None:
            with open_memory(address) as memory:
                for i in range(20):
                    memory.add(make.reflection(f"{name} {i}", f"state {name} {i}"))

        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            len(reader)
        for thread in threads:
            thread.join()
        assert len(reader) == 80, "no revision was passed over"


def test_killed_writers_lose_and_duplicate_nothing_acknowledged(postgres: Server) -> None:
    address = postgres.database("killed")
    open_memory(address).close()
    stored, kills = storm(address, writers=3, writes=40, fatal=(11,))
    with open_memory(address) as memory:
        found = [entry.reflection.id for entry in memory.entries(None)]
    assert kills == 3 and sorted(found) == sorted(stored) and len(set(found)) == 120


def test_an_address_without_a_server_is_a_usage_error_that_omits_the_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'exact-agent[postgres]'")
    with pytest.raises(UsageError, match="is the server running") as caught:
        open_memory(f"postgresql://me:hushhush@/db?host={tmp_path}")
    assert "hushhush" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hush%hush@/db",
        "postgresql://me:hush",
        "postgresql://me:hush/hush@nowhere/db",
        "postgresql://me:12/hush@nowhere/db",
        "postgresql://me:hush@hush@nowhere/db",
        "postgresql://me:hush?hush@/db?port=x",
        "postgresql://me:[hush@/db?port=x",
        "postgresql://me@/db?password=hush%hush",
        "postgresql://me@/db?port=x&password=a@hush",
    ],
)
def test_the_error_for_an_invalid_address_omits_the_password(address: str) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'exact-agent[postgres]'")
    with pytest.raises(UsageError, match="is no address of a PostgreSQL database") as caught:
        open_memory(address)
    assert "hush" not in str(caught.value) and caught.value.__cause__ is None
