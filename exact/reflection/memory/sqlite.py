"""A memory's database in one SQLite file.

SQLite lets one write at a time, and a commit is on the disk when the transaction ends (WAL with `synchronous=FULL`).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from exact.context import Reflection
from exact.errors import InfrastructureError, UsageError, no_space
from exact.reflection import embed
from exact.reflection.embed import Embedding
from exact.reflection.memory.database import COLUMNS, FACTS, MORE_TABLES, SCHEMA, VOCABULARY, Likeness, another_embedding
from exact.reflection.record import confidence

_APPLICATION = 0x65786D31
"""Marks the file as a memory of this package ("exm1")."""
_WAIT = 30.0
"""Seconds to wait for another process's write."""
_SEARCH = (
    "CREATE VIRTUAL TABLE found USING fts5 (words)",
    "CREATE TRIGGER removed AFTER DELETE ON reflections BEGIN "
    "UPDATE facts SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE name = 'removed'; END",
)


class SQLiteDatabase:
    """A Database in a file."""

    likeness: Likeness | None = None

    def __init__(self, path: Path | str, embedding: Embedding, *, other: bool = False) -> None:
        """Open the file, or create it and its folders; upgrade an older one. `other`: accept vectors of another embedding.

        Raises UsageError.
        """
        self.path = Path(path)
        self._connection = _opened(self.path, embedding)
        self.embedding = self.execute("SELECT value FROM facts WHERE name = 'embedding'")[0][0]
        if self.embedding != embedding.name and not other:
            self.close()
            raise UsageError(another_embedding(self.where, self.embedding, embedding.name))

    @property
    def where(self) -> str:
        return str(self.path)

    def execute(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Run a statement and return all rows. Raises InfrastructureError."""
        try:
            return self._connection.execute(statement, arguments).fetchall()
        except sqlite3.Error as error:
            raise InfrastructureError(_told(self.path, error)) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Open a transaction, which is exclusive from its beginning."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def index_words(self, seq: int, text: str) -> None:
        self.execute("INSERT INTO found (rowid, words) VALUES (?, ?)", seq, text)

    def find_words(self, words: list[str], limit: int) -> list[int]:
        if not words:
            return []
        query = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
        found = self.execute(
            "SELECT seq FROM found JOIN reflections ON seq = found.rowid WHERE found MATCH ? AND status = 'kept' "
            "ORDER BY rank, seq LIMIT ?", query, limit,
        )  # fmt: skip
        return [int(seq) for (seq,) in found]

    def close(self) -> None:
        self._connection.close()


def _opened(path: Path, embedding: Embedding) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Autocommit: each statement is its own transaction.
        connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise _cannot_open(path, error) from error
    try:
        _prepare(connection, path, embedding)
    except sqlite3.Error as error:
        connection.close()
        raise _cannot_open(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _told(path: Path, error: sqlite3.Error) -> str:
    if no_space(error, path.parent):
        return f"memory {path}: no space left on the disk: free some space, then go on with `exact resume`"
    return f"memory {path}: {error}; restore the file or name another one"


def _cannot_open(path: Path, error: Exception) -> UsageError | InfrastructureError:
    if isinstance(error, sqlite3.Error) and path.parent.is_dir() and no_space(error, path.parent):
        return InfrastructureError(_told(path, error))
    return UsageError(f"cannot use {path} as memory: {getattr(error, 'strerror', None) or error}; name a file that can be written")


def _prepare(connection: sqlite3.Connection, path: Path, embedding: Embedding) -> None:
    connection.execute("BEGIN IMMEDIATE")
    with closing(connection.cursor()) as cursor:
        try:
            _identify(cursor, path, embedding)
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        cursor.execute("COMMIT")
    _patiently(connection, lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
    connection.execute("PRAGMA synchronous = FULL")


def _identify(cursor: sqlite3.Cursor, path: Path, embedding: Embedding) -> None:
    """Make the tables in an empty file, bring older ones up to date, refuse the file of another program."""
    application = cursor.execute("PRAGMA application_id").fetchone()[0]
    schema = cursor.execute("PRAGMA user_version").fetchone()[0]
    if application == 0 and cursor.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        cursor.execute(FACTS)
        _tables(cursor, embedding)
        cursor.execute(f"PRAGMA application_id = {_APPLICATION}")
        return
    if application != _APPLICATION:
        raise UsageError(f"{path} is an SQLite database, but no memory of reflections: name another file")
    strange = "SELECT type, name FROM sqlite_master WHERE type = 'view' OR (type = 'trigger' AND name != 'removed')"
    if found := cursor.execute(strange).fetchone():  # a view may never end, and a trigger may change anything
        raise UsageError(f"{path} has a {found[0]} {found[1]!r}, as no memory has: name another file")
    if schema > SCHEMA:
        raise UsageError(f"{path} was written by a newer version (schema {schema}; this one reads {SCHEMA}): upgrade, or name another file")
    if schema == 1:
        _from_schema_1(cursor, embedding)
    elif not cursor.execute("SELECT name FROM sqlite_master WHERE name = 'vocabulary'").fetchone():
        cursor.execute(VOCABULARY)
    if cursor.execute("SELECT value FROM facts WHERE name = 'embedding'").fetchone() is None:
        raise UsageError(f"{path} does not say what made its vectors: restore it from a copy, or name another file")


def _tables(cursor: sqlite3.Cursor, embedding: Embedding) -> None:
    cursor.execute(f"CREATE TABLE reflections (seq INTEGER PRIMARY KEY AUTOINCREMENT, {COLUMNS.format(bytes='BLOB')})")
    for statement in (*MORE_TABLES, VOCABULARY, *_SEARCH):
        cursor.execute(statement)
    facts = {"embedding": embedding.name, "revision": "0", "removed": "0"}
    cursor.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())
    cursor.execute(f"PRAGMA user_version = {SCHEMA}")


def _from_schema_1(cursor: sqlite3.Cursor, embedding: Embedding) -> None:
    """Upgrade the first schema, which had reflections and vectors only. The vectors are recomputed, because their embedding was removed."""
    cursor.execute("ALTER TABLE reflections RENAME TO reflections_1")
    _tables(cursor, embedding)
    for seq, id, kind, task, record in cursor.execute("SELECT seq, id, kind, task, record FROM reflections_1 ORDER BY seq").fetchall():
        reflection = msgspec.json.decode(record, type=Reflection)
        vector = embed.vector(embedding, embed.of_reflection(reflection)).astype("<f4").tobytes()
        cursor.execute(
            "INSERT INTO reflections (seq, id, kind, task, about, confidence, record, vector, born, revision) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (seq, id, kind, task, embed.about(reflection), confidence(reflection), record, vector, seq, seq),
        )
        cursor.execute("INSERT INTO found (rowid, words) VALUES (?, ?)", (seq, embed.told(reflection)))
        cursor.execute("UPDATE facts SET value = ? WHERE name = 'revision'", (str(seq),))
    cursor.execute("DROP TABLE reflections_1")


def _patiently(connection: sqlite3.Connection, attempt: Callable[[], object]) -> None:
    """Repeat a statement that SQLite refuses without waiting while others have the file: the change to WAL by several at once."""
    end = time.monotonic() + _WAIT
    while True:
        try:
            attempt()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        # Waits, by SQLite's own busy timeout, until the writer has ended.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
