"""Vectors from a model: what is kept, and what goes wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from exact.errors import ModelError
from exact.models.base import Usage
from exact.models.embedding import Vectors
from exact.reflection.embed_model import ModelEmbedding


class Lengths:
    """Maps a text to its length, and counts the texts."""

    name = "scripted/lengths"
    asked = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += len(texts)
        return Vectors(tuple((float(len(text)), 1.0) for text in texts), Usage())

    async def close(self) -> None: ...


@pytest.fixture
async def embedding(tmp_path: Path) -> AsyncIterator[ModelEmbedding]:
    opened = await ModelEmbedding.opened(Lengths(), tmp_path / "vectors.sqlite")
    yield opened
    opened.close()


async def test_a_text_is_asked_for_once(embedding: ModelEmbedding) -> None:
    for texts in (["Press Go"], ["Press Go", "Press Stop", " "]):
        found = await asyncio.to_thread(embedding.embed_all, texts)
    assert found[0] @ found[0] == pytest.approx(1.0) and not found[2].any()
    assert embedding._model.asked == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("harm", ["DROP TABLE vectors", "PRAGMA query_only = ON"])
async def test_a_cache_of_vectors_that_fails_is_a_model_error(embedding: ModelEmbedding, harm: str) -> None:
    embedding._cache.execute(harm)
    with pytest.raises(ModelError, match=r"vectors\.sqlite"):
        await asyncio.to_thread(embedding.embed_all, ["Press Go"])
