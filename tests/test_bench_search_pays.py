"""bench/search_pays.py: a stratum is measured as long as its gain can still be what a comparison needs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "bench"))  # last: bench/miniwob.py is no package

import _pays_training
import search_pays

from exact.learning.builtin.split import load_split

TASKS = search_pays.ordered()[:10]


def attempts(scores: dict[str, float]) -> list[search_pays.Attempt]:
    """Return attempts at some tasks: ReAct solves none, the oracle's search as many as told."""
    return [
        search_pays.Attempt(f"tiny raised {arm}", f"miniwob/{task}?seed={seed}", score if arm == "oracle" else 0.0, 1, 1, 1, 1, 1.0)
        for task, score in scores.items()
        for arm in ("react", "oracle")
        for seed in search_pays.MEASURED
    ]


@pytest.mark.parametrize("nothing, possible", [(0, 1.0), (5, 0.2), (6, 0.1), (10, 0.0)])
def test_tasks_without_gain_lower_what_is_still_possible(nothing: int, possible: float) -> None:
    kept = attempts(dict.fromkeys(TASKS[:nothing], 0.0))
    assert search_pays.most("tiny", "raised", TASKS, kept) == pytest.approx(possible, abs=0.051)


def test_what_is_possible_is_never_below_what_comes() -> None:
    ended = dict(zip(TASKS, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0], strict=True))
    found = search_pays.solutions(attempts(ended))
    low = search_pays.gain(found, "tiny raised oracle", "tiny raised react", [f"miniwob/{task}" for task in TASKS]).low
    bounds = [search_pays.most("tiny", "raised", TASKS, attempts(dict(list(ended.items())[:count]))) for count in range(11)]
    assert bounds == sorted(bounds, reverse=True) and bounds[-1] == low


def test_no_task_or_seed_that_is_measured_with_the_learner_is_trained_on() -> None:
    found = search_pays.strata(_pays_training.LEARNER, search_pays.records())
    measured = {name for stratum in ("sometimes", "never") for name in found[stratum][:10]}
    assert len(measured) == 20 and not measured & set(_pays_training.TASKS)
    assert {f"miniwob/{name}" for name in _pays_training.TASKS} <= set(load_split().training)
    first, last = _pays_training.SEEDS
    assert not any(first <= seed <= last for seed in (*search_pays.SELECTION, *search_pays.MEASURED))


def test_an_adapter_whose_hash_is_another_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_pays_training.ADAPTERS, "trained", file := tmp_path / "adapter.gguf")
    file.write_bytes(b"trained")
    file.with_suffix(".json").write_text(json.dumps({"sha256": _pays_training.digest(file)}))
    assert _pays_training.lacking("trained") == ""
    file.write_bytes(b"something else")
    assert "remove it to train it again" in _pays_training.lacking("trained")
