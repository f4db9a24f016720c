"""What bench/when_search_helps.py kept: its tasks and seeds, its rows, and its result."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from exact.learning.builtin.split import load_split

RESULTS = Path(__file__).parents[1] / "bench" / "results"
FOLDER, RESULT = RESULTS / "when_search_helps", RESULTS / "when_search_helps.json"
LEARNED_FROM = RESULTS / "learning" / "training.jsonl.gz"

pytestmark = pytest.mark.skipif(not RESULT.exists(), reason="the bench was not run yet")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_an_oracle_saw_the_reward_of_training_tasks_alone_and_of_no_seed_that_was_trained_on() -> None:
    split, learned_from = load_split(), {record["task"] for record in lines(LEARNED_FROM)}
    attempted = {record["task"] for record in lines(FOLDER / "attempts.jsonl.gz")}
    assert attempted and not attempted & learned_from
    for task in attempted:
        split.check_training(task)


def test_the_reliability_is_of_seeds_that_no_part_of_the_split_has() -> None:
    ranges = load_split().seeds.values()
    seeds = {int(record["task"].partition("?seed=")[2]) for record in lines(FOLDER / "reliability.jsonl.gz")}
    assert seeds and not any(seed in part for seed in seeds for part in ranges)


def test_every_row_attempted_every_task_that_counts() -> None:
    kept = json.loads(RESULT.read_text())
    attempted = {(record["task"], record["row"]) for record in lines(FOLDER / "attempts.jsonl.gz")}
    assert len(kept["tasks"]) >= 20
    assert {(task, row) for task in kept["tasks"] for row in kept["pages"]} <= attempted


def test_the_records_have_the_hashes_that_the_result_says() -> None:
    kept: dict[str, str] = json.loads(RESULT.read_text())["hashes"]
    assert {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in kept} == kept
