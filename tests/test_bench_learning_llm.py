"""What bench/learning_llm.py keeps: data sets and records, and the order of rows that llama.cpp wants."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exact.learning.builtin.split import load_split

sys.path.append(str(Path(__file__).parents[1] / "bench"))  # last: bench/miniwob.py is no package

import _gguf_adapter

BENCH = Path(__file__).parents[1] / "bench"
FOLDER, RESULT = BENCH / "results" / "learning_llm", BENCH / "results" / "learning_llm.json"
KINDS = ("react", "imitation", "exploratory")


def conversations(kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((FOLDER / f"{kind}.jsonl.gz").read_bytes()).splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_conversations_are_of_training_tasks_and_seeds(kind: str) -> None:
    split, found = load_split(), conversations(kind)
    assert len(found) == len(conversations(KINDS[0]))
    for line in found:
        split.check_training(line["meta"]["task"])


def test_rows_of_queries_are_interleaved_within_their_head() -> None:
    rows = _gguf_adapter.interleaved(np.arange(8)[:, None], 2)
    assert rows[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize(
    ("kind", "name", "part", "turned"),
    [("llama", "attn_q", "b", True), ("llama", "attn_q", "a", False), ("llama", "ffn_up", "b", False), ("qwen2", "attn_q", "b", False)],
)
def test_only_the_outputs_of_queries_and_keys_of_a_llama_are_interleaved(kind: str, name: str, part: str, turned: bool) -> None:
    rows = np.arange(8)[:, None]
    ordered = _gguf_adapter.ordered(rows, name, part, kind, {"attn_q": 2, "attn_k": 2})
    assert (ordered.tolist() != rows.tolist()) == turned


def test_data_and_records_have_the_hashes_that_the_results_say() -> None:
    if not RESULT.exists():
        pytest.skip("nothing was measured yet")
    kept: dict[str, str] = json.loads(RESULT.read_text())["hashes"]
    assert {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in kept} == kept
