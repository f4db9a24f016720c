"""A memory on a server that compares vectors itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from exact.reflection.embed import HashedEmbedding
from exact.reflection.memory import postgres as pgvector_module
from exact.reflection.memory.open import StoredMemory, open_memory
from tests.reflection.postgres import Server

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'exact-agent[postgres]'")


def stored(make: Any, count: int = 40) -> list[Any]:
    return [
        make.reflection(f"Press button {n} of {n % 7}", f"[1] button b{n}\nheading {n % 5}", f"suite/t{n % 3}?seed=0") for n in range(count)
    ]


def found(memory: StoredMemory, look: Any, **more: Any) -> list[list[str]]:
    asked = [look(f"Press button {n}", f"heading {n}") for n in range(12)]
    options = {"k": 5, "threshold": 0.1, "exclude_task": "suite/t1?seed=3", **more}
    return [[each.id for each in memory.retrieve(context, "policy", **options)] for context in asked]


def test_the_extension_finds_the_same_as_a_comparison_in_the_process(
    pgvector: Server, make: Any, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = pgvector.database("both")
    with open_memory(address) as there:
        assert there._database.likeness is not None
        there.add_all(stored(make))
        with monkeypatch.context() as patched:
            patched.setattr("exact.reflection.memory.postgres.found", lambda execute, alone: None)
            here = open_memory(address)
        with here:
            assert here._database.likeness is None
            assert found(there, look) == found(here, look) and any(found(here, look))
            assert found(there, look, threshold=0.6) == found(here, look, threshold=0.6)
        assert not any(kind.vectors.size for kind in there._index._kinds.values()), "it holds no vector"


def test_reflections_written_without_the_extension_are_compared_too(
    pgvector: Server, make: Any, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = pgvector.database("older")
    with monkeypatch.context() as patched:
        patched.setattr("exact.reflection.memory.postgres.found", lambda execute, alone: None)
        older = open_memory(address)
    monkeypatch.setattr(pgvector_module, "_FILLED_AT_ONCE", 7)
    with older:
        older.add_all(stored(make, 20))
        with open_memory(address) as newer:
            before = found(newer, look)
            older.add(make.reflection("Press button 3 at last", "heading 3", "suite/t2?seed=0"))
            assert before != found(newer, look) == found(older, look)


def test_two_memories_in_schemas_of_one_database_use_the_extension_of_either(pgvector: Server, make: Any, look: Any) -> None:
    address = pgvector.database("schemas")
    with open_memory(address) as first:
        first._database.execute("CREATE SCHEMA other")
        with open_memory(f"{address}&options=-csearch_path%3Dother") as second:
            second.add_all(stored(make, 5))
            assert second._database.likeness is not None and any(found(second, look)) and not any(found(first, look))


def test_a_user_who_may_not_use_the_extension_compares_for_himself(pgvector: Server, make: Any, look: Any) -> None:
    address = pgvector.database("humble")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE ROLE humble LOGIN")
        connection.execute("CREATE SCHEMA humble AUTHORIZATION humble")
    with open_memory(address.replace("exact@", "humble@")) as memory:
        memory.add_all(stored(make, 5))
        assert memory._database.likeness is None and any(found(memory, look))


def test_writers_at_once_wait_for_each_other_and_lose_nothing(pgvector: Server, make: Any) -> None:
    address = pgvector.database("writers")

    def write(name: int) -> None:
        with open_memory(address) as memory:
            for n in range(12):
                memory.add(make.reflection(f"{name} {n}", f"state {name} {n}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    with open_memory(address) as memory:
        assert len(memory) == 48 and len(memory._database.likeness.of(HashedEmbedding().embed_all(["1 2"])[0], range(99))) == 48
