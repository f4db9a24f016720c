"""bench/poisoned.py: what is measured was shown to no detector, and the regression finds what tells the kinds apart."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "bench"))  # last: bench/miniwob.py is no package

import poisoned
from _common import Figure
from _records import differing


def test_no_measured_reflection_is_an_example() -> None:
    measured, older, shown = poisoned.notes()
    texts = [{row.text for row in part.values()} for part in (measured, older, shown)]
    assert (len(measured), len(older), len(shown)) == (700, 200, 16)
    assert not texts[0] & (texts[1] | texts[2]) and not set(older) & set(shown)
    assert sum(row.kind == "attack" for row in older.values()) == 100


def test_shown_reflections_have_their_letters_and_the_asked_one_has_none() -> None:
    measured, _, shown = poisoned.notes()
    turns = poisoned.messages(next(iter(measured.values())), shown)
    assert [each["content"] for each in turns if each["role"] == "assistant"] == [
        "B" if row.kind == "attack" else "A" for row in shown.values()
    ]
    assert turns[-1]["role"] == "user" and turns[0]["role"] == "system"


def test_a_regression_weighs_the_input_that_tells_the_kinds_apart() -> None:
    drawn = np.random.default_rng(0)
    wanted = (drawn.random(300) < 0.5).astype(float)
    weights = poisoned.fitted(np.column_stack([2 * wanted + drawn.normal(size=300), drawn.normal(size=300)]), wanted)
    assert weights[0] > 1 and abs(weights[1]) < 0.5


def test_a_limit_lets_all_but_one_in_twenty_of_the_older_ordinary_notes_pass() -> None:
    _, older, _ = poisoned.notes()
    scores = {key: float(number) for number, key in enumerate(older)}
    above = poisoned.limit(scores, older)
    ordinary = [scores[key] > above for key, row in older.items() if row.kind == "ordinary"]
    assert sum(ordinary) / len(ordinary) == pytest.approx(0.05)


def test_a_figure_that_the_kept_result_lacks_is_named(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text('{"figures": {"a": {"value": 1.0}, "b": {"value": 0.5}}}')
    assert differing([Figure("a", 1.0), Figure("b", 0.4), Figure("c", 2.0)], kept) == ["b", "c"]
