"""Rounds: which version of the memory the tasks of a run are shown, also where several processes do them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from exact.config import parse
from exact.context import Reflection
from exact.errors import JournalError
from exact.models.open import Models
from exact.reflection.memory.open import SQLiteMemory
from exact.runs.attempt.memory import MemoryRounds, open_run_memory


def lesson(id: str) -> Reflection:
    return Reflection(id=id, kind="policy", text=f"Look at {id * 3}.", instruction="Press Go", state="", action="go")


def test_all_lanes_of_a_run_are_shown_the_version_that_the_first_of_a_round_decided(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    with SQLiteMemory(path) as one, SQLiteMemory(path) as other, SQLiteMemory(path) as writer:
        early, late = MemoryRounds(tmp_path, 4), MemoryRounds(tmp_path, 4)
        early.begin(one, 0)
        writer.add(lesson("a"))
        late.begin(other, 1)
        assert one.version == other.version == "0:0"
        late.begin(other, 4)
        writer.add(lesson("b"))
        early.begin(one, 5)
        assert one.version == other.version == "1:1"
    assert json.loads((tmp_path / "rounds.json").read_text()) == {"0": "0:0", "1": "1:1"}


async def test_the_memory_of_a_run_has_the_configured_capacity(tmp_path: Path) -> None:
    settings = parse({"reflection": {"capacity": 1}})
    async with open_run_memory(settings, tmp_path, Models(settings.models)) as memory:
        assert memory is not None and memory.add_all([lesson("a"), lesson("b")]) == 2
        assert len(memory.entries()) == 1


def test_one_of_many_processes_that_begin_a_round_decides(tmp_path: Path) -> None:
    path, lanes, rounds = tmp_path / "memory.sqlite", 4, 10
    meet = Barrier(lanes)
    SQLiteMemory(path).close()

    def lane(number: int) -> list[str]:
        seen = []
        with SQLiteMemory(path) as memory, SQLiteMemory(path) as writer:
            mine = MemoryRounds(tmp_path, 1)
            for round in range(rounds):
                meet.wait(30)
                writer.add(lesson(f"{number}-{round}"))
                mine.begin(memory, round)
                seen.append(memory.version)
        return seen

    with ThreadPoolExecutor(lanes) as pool:
        seen = list(pool.map(lane, range(lanes)))
    assert all(each == seen[0] for each in seen)
    assert json.loads((tmp_path / "rounds.json").read_text()) == {str(round): version for round, version in enumerate(seen[0])}


def test_a_file_of_rounds_that_does_not_read_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "rounds.json").write_text("{")
    with SQLiteMemory(tmp_path / "memory.sqlite") as memory, pytest.raises(JournalError, match=r"rounds\.json does not read"):
        MemoryRounds(tmp_path, 1).begin(memory, 0)
