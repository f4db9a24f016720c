"""What bench/learning_llm.py keeps: data sets and records, and the order of rows that llama.cpp wants."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from exact.learning.builtin.split import load_split

BENCH = Path(__file__).parents[1] / "bench"
FOLDER, RESULT = BENCH / "results" / "learning_llm", BENCH / "results" / "learning_llm.json"
KINDS = ("react", "imitation", "exploratory")


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def conversations(kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((FOLDER / f"{kind}.jsonl.gz").read_bytes()).splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_conversations_are_of_training_tasks_and_seeds(kind: str) -> None:
    split, found = load_split(), conversations(kind)
    assert len(found) == len(conversations(KINDS[0]))
    for line in found:
        split.check_training(line["meta"]["task"])


def test_rows_of_queries_are_interleaved_within_their_head() -> None:
    rows = module("_gguf_adapter").interleaved(np.arange(8)[:, None], 2)
    assert rows[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_data_and_records_have_the_hashes_that_the_results_say() -> None:
    if not RESULT.exists():
        pytest.skip("nothing was measured yet")
    kept: dict[str, str] = json.loads(RESULT.read_text())["hashes"]
    assert {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in kept} == kept
