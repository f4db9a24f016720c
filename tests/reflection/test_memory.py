"""Memory in a file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exact.context import Context, Reflection
from exact.errors import InfrastructureError, UsageError
from exact.reflection.base import Memory
from exact.reflection.embed import HashedEmbedding
from exact.reflection.memory.open import SQLiteMemory
from tests.reflection.kills import storm

Look = Callable[..., Context]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SQLiteMemory]:
    with SQLiteMemory(tmp_path / "memory.sqlite") as opened:
        yield opened


def recall(
    memory: Memory, context: Context, *, kind: Any = "policy", k: int = 3, threshold: float = -1, without: str | None = None
) -> list[str]:
    return [r.instruction for r in memory.retrieve(context, kind, k=k, threshold=threshold, exclude_task=without)]


def test_added_reflections_are_unchanged_after_reopening(tmp_path: Path, make: Any, look: Look) -> None:
    path, written = tmp_path / "new" / "folder" / "m.sqlite", make.reflection("Press Go", "[1] button Go")
    with SQLiteMemory(path) as memory:
        memory.add(written)
    with SQLiteMemory(path) as memory:
        assert memory.retrieve(look("Press Go"), "policy", k=1, threshold=0, exclude_task=None) == (written,)


def test_adding_twice_is_adding_once(memory: SQLiteMemory, make: Any) -> None:
    memory.add(make.reflection("Press Go"))
    before = memory.version
    memory.add(make.reflection("Press Go"))
    assert (len(memory), memory.version) == (1, before)


def test_the_nearest_comes_first_and_only_k_come(memory: SQLiteMemory, make: Any, look: Look) -> None:
    for instruction in ("Find the email by Ann", "Press the blue button", "Press the Ok button", "Press the Ok button now"):
        memory.add(make.reflection(instruction))
    assert recall(memory, look("Press the Ok button"), k=2) == ["Press the Ok button", "Press the Ok button now"]
    assert recall(memory, look("Press the Ok button"), k=4)[-1] == "Find the email by Ann"
    assert recall(memory, look("Press the Ok button"), k=0) == []


def test_the_threshold_is_the_cosine_of_the_situations(memory: SQLiteMemory, make: Any, look: Look) -> None:
    memory.add(make.reflection("Press the Ok button", "[1] button Ok"))
    assert recall(memory, look("Press the Ok button", "[1] button Ok"), threshold=1.0) == ["Press the Ok button"]
    other = look("Press the Cancel button", "[1] button Cancel")
    assert recall(memory, other, threshold=0.1) and not recall(memory, other, threshold=0.99)
    assert not recall(memory, look("zygote", "quux"), threshold=0.5)


def test_ids_of_elements_do_not_count_but_what_the_page_shows_does(memory: SQLiteMemory, make: Any, look: Look) -> None:
    memory.add(make.reflection("Go on", "[1] button Ok\n  [2] link Home", text="here"))
    assert recall(memory, look("Go on", "[17] button Ok\n  [90] link Home"), threshold=1.0)
    assert not recall(memory, look("Go on", "[1] table Prices\n[2] cell 3.99"), threshold=0.9)


def test_policy_and_value_reflections_are_kept_apart(memory: SQLiteMemory, make: Any, look: Look) -> None:
    memory.add(make.reflection("Press Go", kind="value"))
    assert recall(memory, look("Press Go")) == []
    assert recall(memory, look("Press Go"), kind="value") == ["Press Go"]


def test_reflections_from_any_seed_of_the_same_task_are_left_out_on_request(memory: SQLiteMemory, make: Any, look: Look) -> None:
    memory.add(make.reflection("Press Go", task="suite/a?seed=1"))
    memory.add(make.reflection("Press Go now", task="suite/ab?seed=1"))
    assert recall(memory, look("Press Go"), without="suite/a?seed=2") == ["Press Go now"]
    assert recall(memory, look("Press Go"), without=None) == ["Press Go", "Press Go now"]


def test_the_newest_of_equally_near_reflections_comes_first(memory: SQLiteMemory, make: Any, look: Look) -> None:
    for i in range(9):
        memory.add(make.reflection("Press Go", text=f"{i}"))
    found = memory.retrieve(look("Press Go"), "policy", k=9, threshold=0, exclude_task=None)
    assert [r.text for r in found] == [str(i) for i in reversed(range(9))]


def test_additions_and_removals_by_another_process_are_seen(memory: SQLiteMemory, make: Any, look: Look) -> None:
    memory.add(make.reflection("Press Go"))
    assert recall(memory, look("Press Go")) == ["Press Go"]
    versions = {memory.version}
    with SQLiteMemory(memory.path) as other:
        other.add(make.reflection("Press Go again"))
    versions.add(memory.version)
    assert recall(memory, look("Press Go again"), k=1) == ["Press Go again"]
    direct = sqlite3.connect(memory.path)
    direct.execute("DELETE FROM reflections WHERE record LIKE '%Go again%'")
    direct.commit()
    direct.close()
    assert recall(memory, look("Press Go again"), k=1) == ["Press Go"]
    assert len(versions) == 2


def test_killed_writers_lose_and_duplicate_no_acknowledged_reflection(tmp_path: Path) -> None:
    # bench/memory_kills.py does it with 8 writers, 500 reflections each and a kill every second.
    path = tmp_path / "shared.sqlite"
    SQLiteMemory(path).close()
    stored, kills = storm(str(path), writers=3, writes=60, fatal=(7, 30))
    assert kills == 6 and len(stored) == len(set(stored)) == 180
    with SQLiteMemory(path) as memory:
        found = [entry.reflection.id for entry in memory.entries(None)]
        assert sorted(found) == sorted(stored) and len(memory) == 180
        assert memory._database.execute("PRAGMA integrity_check") == [("ok",)]


def test_a_commit_is_on_the_disk_before_add_returns(memory: SQLiteMemory) -> None:
    # What a power cut would show cannot be tested; what SQLite promises is a matter of these two settings.
    settings_ = [memory._database.execute(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")]
    assert settings_ == ["wal", 2]


def test_threads_may_share_one_memory(memory: SQLiteMemory, make: Any, look: Look) -> None:
    def work(name: int) -> None:
        for i in range(10):
            memory.add(make.reflection(f"{name} {i}"))
            recall(memory, look("x"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memory) == 30


@pytest.mark.parametrize("content", [b"not a database at all" * 50, b"\x80\x04\x95pickle", b"SQLite format 3\x00" + b"\xff" * 900])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.sqlite"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"m\.sqlite"):
        SQLiteMemory(path)
    assert path.read_bytes() == content


def test_a_torn_file_is_a_typed_error_and_no_shorter_memory(tmp_path: Path, make: Any, look: Look) -> None:
    path = tmp_path / "m.sqlite"
    with SQLiteMemory(path) as memory:
        for i in range(40):
            memory.add(make.reflection(f"Press {i}"))
    path.write_bytes(path.read_bytes()[:60_000])
    with pytest.raises((UsageError, InfrastructureError), match=r"m\.sqlite"), SQLiteMemory(path) as memory:
        recall(memory, look("Press 1"), k=40)


@pytest.mark.parametrize("change", ["record = '{}'", "vector = x'00'"])
def test_a_damaged_row_is_a_typed_error(memory: SQLiteMemory, make: Any, look: Look, change: str) -> None:
    memory.add(make.reflection("Press Go"))
    connection = sqlite3.connect(memory.path)
    connection.execute(f"UPDATE reflections SET {change}")
    connection.commit()
    connection.close()
    with pytest.raises(InfrastructureError, match="memory"), SQLiteMemory(memory.path) as again:
        recall(again, look("Press Go"))


@pytest.mark.parametrize("statement, said", [("PRAGMA user_version = 99", "newer"), ("PRAGMA application_id = 7", "no memory")])
def test_a_newer_or_foreign_database_is_refused(tmp_path: Path, statement: str, said: str) -> None:
    path = tmp_path / "m.sqlite"
    SQLiteMemory(path).close()
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.close()
    with pytest.raises(UsageError, match=said):
        SQLiteMemory(path)


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(UsageError, match="no memory"):
        SQLiteMemory(path)
    assert path.read_bytes() == before


def test_vectors_of_another_embedding_are_refused(tmp_path: Path) -> None:
    SQLiteMemory(tmp_path / "m.sqlite", embedding=HashedEmbedding(512)).close()
    with pytest.raises(UsageError, match="hashed-2:512"):
        SQLiteMemory(tmp_path / "m.sqlite")


def test_a_path_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "m.sqlite", Path("/proc/nowhere/m.sqlite")):
        with pytest.raises(UsageError, match="name a file that can be written"):
            SQLiteMemory(path)


def test_a_closed_memory_says_so(memory: SQLiteMemory, make: Any) -> None:
    memory.close()
    memory.close()
    with pytest.raises(InfrastructureError, match="closed"):
        memory.add(make.reflection("Press Go"))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(alphabet="abcde ", min_size=1, max_size=12), unique=True, max_size=8), st.text(alphabet="abcde ", max_size=12))
def test_retrieval_is_all_that_reach_the_threshold_in_falling_order(
    tmp_path_factory: pytest.TempPathFactory, make: Any, look: Look, known: list[str], asked: str
) -> None:
    with SQLiteMemory(tmp_path_factory.mktemp("m") / "m.sqlite") as memory:
        written: list[Reflection] = [make.reflection(each, text=f"{i}") for i, each in enumerate(known)]
        for each in written:
            memory.add(each)
        everything = recall(memory, look(asked), k=99)
        assert sorted(everything) == sorted(known)
        for threshold in (0.0, 0.3, 0.7):
            near = recall(memory, look(asked), k=99, threshold=threshold)
            assert near == everything[: len(near)]
            assert recall(memory, look(asked), k=2, threshold=threshold) == near[:2]


ENDLESS = "CREATE VIEW facts AS WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS name, x AS value FROM c"
TRIGGER = "CREATE TRIGGER more AFTER INSERT ON reflections BEGIN DELETE FROM uses; END"


@pytest.mark.parametrize("statements", [("DROP TABLE facts", ENDLESS), (TRIGGER,)])
def test_a_memory_with_a_view_or_a_trigger_of_others_is_refused_before_it_is_read(tmp_path: Path, statements: tuple[str, ...]) -> None:
    SQLiteMemory(tmp_path / "memory.sqlite").close()
    direct = sqlite3.connect(tmp_path / "memory.sqlite")
    for each in statements:
        direct.execute(each)
    direct.commit()
    direct.close()
    with pytest.raises(UsageError, match="as no memory has"):
        SQLiteMemory(tmp_path / "memory.sqlite")
