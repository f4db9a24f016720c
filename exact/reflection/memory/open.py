"""Memories of reflections: a file, or a PostgreSQL database that several machines share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exact.reflection.memory.stored import StoredMemory

if TYPE_CHECKING:
    from pathlib import Path

    from exact.reflection.embed import Embedding
    from exact.reflection.memory.database import Database

__all__ = ["CAPACITY", "SQLiteMemory", "StoredMemory", "open_memory"]

CAPACITY = 100_000
"""Default number of active reflections."""


class SQLiteMemory(StoredMemory):
    """A Memory in a file. Many processes may use it at once, and several threads one object."""

    def __init__(self, path: Path | str, *, embedding: Embedding | None = None, capacity: int = CAPACITY) -> None:
        """Open the file, or create it and its folders.

        Raises UsageError if the file cannot be written, is not a memory, comes from a newer version, or holds vectors of another embedding.
        """
        from exact.reflection.embed import HashedEmbedding
        from exact.reflection.memory.sqlite import SQLiteDatabase

        embedding = embedding or HashedEmbedding()
        database = SQLiteDatabase(path, embedding)
        self.path = database.path
        super().__init__(database, embedding, capacity=capacity)

    def __enter__(self) -> SQLiteMemory:
        return self


def open_memory(where: Path | str, *, embedding: Embedding | None = None, capacity: int = CAPACITY, browse: bool = False) -> StoredMemory:
    """Open the memory at a path, or in a database: `postgresql://...`. Raises UsageError.

    `browse`: also accept vectors of another embedding. Nothing can be added or retrieved then; everything else works.
    """
    from exact.reflection.embed import AsWritten, HashedEmbedding

    embedding = embedding or HashedEmbedding()
    database: Database
    if str(where).startswith(("postgresql://", "postgres://")):
        from exact.reflection.memory.postgres import PostgresDatabase

        database = PostgresDatabase(str(where), embedding, other=browse)
    else:
        from exact.reflection.memory.sqlite import SQLiteDatabase

        database = SQLiteDatabase(where, embedding, other=browse)
    if database.embedding != embedding.name:
        embedding = AsWritten(database.embedding)
    return StoredMemory(database, embedding, capacity=capacity)
