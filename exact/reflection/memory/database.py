"""What a memory needs of a database, and the statements that all databases share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from exact.reflection.embed import Vector

SCHEMA = 2

COLUMNS = """
    id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, task TEXT NOT NULL, template TEXT NOT NULL DEFAULT '',
    about TEXT NOT NULL DEFAULT '', confidence DOUBLE PRECISION NOT NULL DEFAULT 1,
    record TEXT NOT NULL, vector {bytes} NOT NULL, status TEXT NOT NULL DEFAULT 'kept', note TEXT NOT NULL DEFAULT '',
    born BIGINT NOT NULL DEFAULT 0, revision BIGINT NOT NULL DEFAULT 0,
    retrieved BIGINT NOT NULL DEFAULT 0, helped BIGINT NOT NULL DEFAULT 0, hurt BIGINT NOT NULL DEFAULT 0
"""
"""Of the table of reflections, after its number `seq`. `born` and `revision`: in which it was written, and changed last."""
MORE_TABLES = (
    "CREATE INDEX reflections_revision ON reflections (revision)",
    "CREATE TABLE uses (attempt TEXT NOT NULL, id TEXT NOT NULL, helped BIGINT, revision BIGINT NOT NULL, PRIMARY KEY (attempt, id))",
    "CREATE INDEX uses_id ON uses (id)",
    "CREATE TABLE changes (id TEXT NOT NULL, status TEXT NOT NULL, note TEXT NOT NULL, revision BIGINT NOT NULL)",
    "CREATE INDEX changes_revision ON changes (revision)",
)
VOCABULARY = "CREATE TABLE vocabulary (seq INTEGER PRIMARY KEY, words TEXT NOT NULL)"
"""The distinct words of a reflection, split by spaces: retrieval reads these of many, and the whole record of few. Where an earlier version
wrote the reflection, its row is missing."""
FACTS = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)"


def another_embedding(where: str, written: str, wanted: str) -> str:
    """What a user is told whose memory holds vectors that cannot be compared with those of the configuration."""
    return f"{where} holds vectors of {written}, not of {wanted}: `exact memory export` it, then import into another memory"


class Likeness(Protocol):
    """A database that compares vectors itself. Gives numbers of reflections with their cosines, in no order."""

    def of_kind(self, query: Vector, kind: str, least: float) -> list[tuple[int, float]]:
        """All of a kind that reach a cosine."""
        ...

    def of(self, query: Vector, seqs: Sequence[int]) -> list[tuple[int, float]]:
        """Those of some numbers."""
        ...


class Database(Protocol):
    """SQL over one connection. Not for several threads at once. `?` stands for an argument."""

    embedding: str
    """Name of what made the vectors in it."""

    @property
    def likeness(self) -> Likeness | None:
        """None where each process reads the vectors and compares them."""
        ...

    @property
    def where(self) -> str:
        """The file or server, without any password."""
        ...

    def execute(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """All rows. Raises InfrastructureError."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """A transaction: durable when it ends, and undone if it raises. One at a time, over all processes."""
        ...

    def index_words(self, seq: int, text: str) -> None:
        """Make a reflection findable by its words; within a transaction."""
        ...

    def find_words(self, words: list[str], limit: int) -> list[int]:
        """Numbers of the reflections kept with any of the words, those with the most and rarest first."""
        ...

    def close(self) -> None:
        """May be called twice."""
        ...
