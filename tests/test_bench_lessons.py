"""bench/lessons.py: a lesson is shown where its trap recurs, and counts for nothing if none was written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "bench"))  # last: bench/miniwob.py is no package

import lessons
from lessons import Chosen
from msgspec.structs import replace

from exact.context import Reflection

LESSON = Reflection(id="1", kind="policy", text="When the tab is closed, open it.", instruction="", state="", action="click [1]")
TRAP = Chosen(model="tiny-1b", arm="trap", state="miniwob/click-tab?seed=1 1", actions=("click [1]",), right=False, wrong=True)
CHOSEN = replace(TRAP, arm="none", state="miniwob/click-tab?seed=3 1", wrong=False)


def test_the_first_lesson_that_was_written_about_a_trap_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    later = replace(TRAP, state="miniwob/click-tab?seed=2 1", lesson=LESSON)
    escaped = replace(TRAP, state="miniwob/enter-text?seed=1 0", wrong=False)
    monkeypatch.setattr(lessons, "records", lambda: [TRAP, later, escaped])
    assert lessons.traps("tiny-1b") == {"miniwob/click-tab 1": LESSON}


def test_a_lesson_of_another_task_is_never_one_of_the_same_task() -> None:
    found = {"miniwob/a 0": LESSON, "miniwob/a 1": LESSON, "miniwob/b 0": None, "miniwob/c 0": replace(LESSON, id="c")}
    assert lessons.foreign("miniwob/a 0", found) == found["miniwob/c 0"]
    assert lessons.foreign("miniwob/c 0", found) == LESSON
    assert lessons.foreign("miniwob/a 0", {"miniwob/a 0": LESSON}) is None


def test_a_state_without_a_lesson_counts_as_without_it_in_each_arm() -> None:
    other = replace(CHOSEN, state="miniwob/enter-text?seed=3 0", right=True)
    found = lessons.solved([CHOSEN, other, replace(CHOSEN, arm="own", right=True)])
    assert found["own"] == {CHOSEN.state: 1.0, other.state: 1.0}
    assert found["other"] == found["none"] == {CHOSEN.state: 0.0, other.state: 1.0}
