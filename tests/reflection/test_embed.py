"""Vectors without a model."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.reflection.embed import HashedEmbedding


@given(st.text(max_size=300))
def test_a_vector_has_length_one_or_zero(text: str) -> None:
    length = float(np.linalg.norm(HashedEmbedding(512).embed(text)))
    assert length == pytest.approx(1.0, abs=1e-5) or length == 0.0


@given(st.lists(st.text(alphabet="ab c1", max_size=30), min_size=1, max_size=5))
def test_a_vector_does_not_depend_on_what_else_is_embedded(texts: list[str]) -> None:
    alone = [HashedEmbedding(64).embed(text) for text in texts]
    assert all(np.array_equal(one, other) for one, other in zip(HashedEmbedding(64).embed_all(texts), alone, strict=True))


def test_a_text_without_words_is_zero() -> None:
    assert not HashedEmbedding().embed(" ,;- ").any()


def test_a_vector_is_the_same_in_every_process() -> None:
    code = "from exact.reflection.embed import HashedEmbedding as H; print(H().embed('Click the blue Ok').tobytes().hex(), end='')"
    found = {
        subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("0", "1", "77")
    }
    assert found == {HashedEmbedding().embed("Click the blue Ok").tobytes().hex().encode()}


def test_words_in_common_and_parts_of_words_bring_texts_together() -> None:
    embed = HashedEmbedding().embed
    query = embed("select the checkbox and submit")
    same, related, other = (
        float(query @ embed(t)) for t in ("Submit and select the checkbox", "selecting checkboxes", "find an email by Ann")
    )
    assert same > related > other


def test_the_length_is_as_asked_and_part_of_the_name() -> None:
    assert HashedEmbedding(512).embed("a").shape == (512,)
    assert HashedEmbedding(512).name != HashedEmbedding(1024).name
