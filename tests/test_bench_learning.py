"""What bench/learning.py kept: training records, weights and attempts."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from exact.agents.learned.network import load
from exact.learning.builtin.split import digest, load_split

RESULTS = Path(__file__).parents[1] / "bench" / "results"
FOLDER = RESULTS / "learning"


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((FOLDER / name).read_bytes()).splitlines()]


def test_no_training_record_is_of_an_evaluation_task_or_seed() -> None:
    split, records = load_split(), lines("training.jsonl.gz")
    assert records
    for record in records:
        split.check_training(record["task"])


def test_the_weights_of_the_package_were_trained_on_these_records() -> None:
    records = lines("training.jsonl.gz")
    about = load().about
    assert about.training == digest(tuple(sorted(record["task"] for record in records if record["states"])))
    assert about.episodes == sum(len(record["returns"]) for record in records)


@pytest.mark.skipif(not (RESULTS / "learning.json").exists(), reason="the test was not run yet")
def test_records_and_weights_have_the_hashes_that_the_results_say() -> None:
    kept: dict[str, str] = json.loads((RESULTS / "learning.json").read_text())["hashes"]
    assert {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in kept} == kept


def test_what_is_kept_of_a_searchs_gain_is_a_share_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RESULTS.parent))
    kept = importlib.import_module("_paired").kept
    ids = [f"task{number}?seed={seed}" for number in range(8) for seed in (1, 2)]
    found = {"base": dict.fromkeys(ids, 0.0), "search": dict.fromkeys(ids, 0.8), "taught": dict.fromkeys(ids, 0.6)}
    assert kept(found, "taught", "base", "search", [f"task{number}" for number in range(8)]) == pytest.approx((0.75, 0.75, 0.75))
