"""Contract of a memory's database, and the statements that all databases share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from exact.reflection.embed import Vector

SCHEMA = 2

COLUMNS = """
    id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, task TEXT NOT NULL, template TEXT NOT NULL DEFAULT '',
    about TEXT NOT NULL DEFAULT '', confidence DOUBLE PRECISION NOT NULL DEFAULT 1,
    record TEXT NOT NULL, vector {bytes} NOT NULL, status TEXT NOT NULL DEFAULT 'kept', note TEXT NOT NULL DEFAULT '',
    born BIGINT NOT NULL DEFAULT 0, revision BIGINT NOT NULL DEFAULT 0,
    retrieved BIGINT NOT NULL DEFAULT 0, helped BIGINT NOT NULL DEFAULT 0, hurt BIGINT NOT NULL DEFAULT 0
"""
"""Columns of the table of reflections, after its number `seq`. `born` and `revision` are the revisions of its first and last write."""
MORE_TABLES = (
    "CREATE INDEX reflections_revision ON reflections (revision)",
    "CREATE TABLE uses (attempt TEXT NOT NULL, id TEXT NOT NULL, helped BIGINT, revision BIGINT NOT NULL, PRIMARY KEY (attempt, id))",
    "CREATE INDEX uses_id ON uses (id)",
    "CREATE TABLE changes (id TEXT NOT NULL, status TEXT NOT NULL, note TEXT NOT NULL, revision BIGINT NOT NULL)",
    "CREATE INDEX changes_revision ON changes (revision)",
)
VOCABULARY = "CREATE TABLE vocabulary (seq INTEGER PRIMARY KEY, words TEXT NOT NULL)"
"""Table of the distinct words of each reflection, split by spaces: retrieval reads these of many, and the whole record of few. A
reflection that an earlier version wrote has no row."""
FACTS = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)"


def another_embedding(where: str, written: str, wanted: str) -> str:
    """Error text for a memory whose vectors cannot be compared with those of the configuration."""
    return f"{where} holds vectors of {written}, not of {wanted}: `exact memory export` it, then import into another memory"


class Likeness(Protocol):
    """Comparison of vectors by the database. It gives numbers of reflections with their cosines, in no order."""

    def of_kind(self, query: Vector, kind: str, least: float) -> list[tuple[int, float]]:
        """Return all of a kind that reach a cosine."""
        ...

    def of(self, query: Vector, seqs: Sequence[int]) -> list[tuple[int, float]]:
        """Return those of some numbers."""
        ...


class Database(Protocol):
    """SQL over one connection. Not for several threads at once. `?` stands for an argument."""

    embedding: str
    """Name of the embedding of its vectors."""

    @property
    def likeness(self) -> Likeness | None:
        """Comparison by the database; None if each process reads and compares the vectors."""
        ...

    @property
    def where(self) -> str:
        """The file or server, without any password."""
        ...

    def execute(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Run a statement and return all rows. Raises InfrastructureError."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Open a transaction: durable when it ends, and undone if it raises. One runs at a time, over all processes."""
        ...

    def index_words(self, seq: int, text: str) -> None:
        """Make a reflection findable by its words; within a transaction."""
        ...

    def find_words(self, words: list[str], limit: int) -> list[int]:
        """Return numbers of active reflections with any of the words, those with the most and rarest first."""
        ...

    def close(self) -> None:
        """Close the connection. A second call has no effect."""
        ...
