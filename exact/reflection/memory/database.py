"""What a memory needs of a database, and the statements that all databases share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

SCHEMA = 2

COLUMNS = """
    id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, task TEXT NOT NULL, template TEXT NOT NULL DEFAULT '',
    record TEXT NOT NULL, vector {bytes} NOT NULL, status TEXT NOT NULL DEFAULT 'kept', note TEXT NOT NULL DEFAULT '',
    born BIGINT NOT NULL DEFAULT 0, ended BIGINT, revision BIGINT NOT NULL DEFAULT 0,
    retrieved BIGINT NOT NULL DEFAULT 0, helped BIGINT NOT NULL DEFAULT 0, hurt BIGINT NOT NULL DEFAULT 0
"""
"""Of the table of reflections, after its number `seq`. `ended`: revision in which it was no longer kept."""
MORE_TABLES = (
    "CREATE INDEX reflections_revision ON reflections (revision)",
    "CREATE TABLE uses (attempt TEXT NOT NULL, id TEXT NOT NULL, helped BIGINT, revision BIGINT NOT NULL, PRIMARY KEY (attempt, id))",
)
FACTS = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
REVISION = "UPDATE facts SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'revision' RETURNING value"
"""The next revision. It is taken first in each transaction that writes: whoever takes it waits until the one before has ended."""


class Database(Protocol):
    """SQL over one connection. Not for several threads at once. `?` stands for an argument."""

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
        """Numbers of the reflections with any of the words, those with the most and rarest first."""
        ...

    def close(self) -> None:
        """May be called twice."""
        ...
