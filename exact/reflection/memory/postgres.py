"""A memory's database on a PostgreSQL server, for runs on many machines. Needs the extra `postgres`."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from exact.errors import InfrastructureError, UsageError
from exact.reflection.embed import Embedding
from exact.reflection.memory.database import COLUMNS, FACTS, MORE_TABLES, SCHEMA

if TYPE_CHECKING:
    import psycopg

_ONE_AT_A_TIME = 0x65786D31
"""Lock that is held while the tables are made."""
_SEARCH = (
    "CREATE TABLE found (seq BIGINT PRIMARY KEY, words tsvector NOT NULL)",
    "CREATE INDEX found_words ON found USING gin (words)",
    "CREATE FUNCTION count_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "UPDATE facts SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'removed'; RETURN NULL; END $$",
    "CREATE TRIGGER removed AFTER DELETE ON reflections FOR EACH STATEMENT EXECUTE FUNCTION count_removed()",
)


class PostgresDatabase:
    """A Database in the first schema of the connection's search path; the address may name another by `options=-csearch_path=...`.

    Whoever writes takes the row of the revision first and so waits for who wrote before: revisions become visible in their order.
    """

    def __init__(self, address: str, embedding: Embedding) -> None:
        """Connects, and makes the tables where there are none. Raises UsageError."""
        self.where = _without_password(address)
        try:
            import psycopg
        except ImportError:
            raise UsageError(f"memory {self.where} needs psycopg: pip install 'exact-agent[postgres]'") from None
        self._error = psycopg.Error
        try:
            self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(address, autocommit=True, connect_timeout=10)
        except psycopg.Error as error:
            raise UsageError(f"cannot use {self.where} as memory: {_line(error)}; is the server running, and the address right?") from error
        try:
            self._prepare(embedding)
        except InfrastructureError as error:
            self.close()
            raise UsageError(str(error)) from error
        except BaseException:
            self.close()
            raise

    def execute(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """All rows. Raises InfrastructureError."""
        try:
            cursor = self._connection.execute(statement.replace("?", "%s").encode(), arguments or None)
            return cursor.fetchall() if cursor.description else []
        except self._error as error:
            raise InfrastructureError(f"memory {self.where}: {_line(error)}; see the server's log") from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction. It is alone from where it takes its revision on."""
        try:
            with self._connection.transaction():
                # What the one before wrote is to be seen by every statement, whatever the server's default is.
                self._connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                self._connection.execute("SET LOCAL synchronous_commit = on")
                yield
        except self._error as error:
            raise InfrastructureError(f"memory {self.where}: {_line(error)}; see the server's log") from error

    def index_words(self, seq: int, text: str) -> None:
        self.execute("INSERT INTO found VALUES (?, to_tsvector('simple', ?))", seq, text)

    def find_words(self, words: list[str], limit: int) -> list[int]:
        if not words:
            return []
        query = " | ".join("'" + word.replace("'", "''") + "'" for word in words)
        found = self.execute(
            "SELECT seq FROM found, to_tsquery('simple', ?) AS asked WHERE words @@ asked ORDER BY ts_rank(words, asked) DESC, seq LIMIT ?",
            query, limit,
        )  # fmt: skip
        return [int(seq) for (seq,) in found]

    def close(self) -> None:
        self._connection.close()

    def _prepare(self, embedding: Embedding) -> None:
        with self.writing():
            self.execute("SELECT pg_advisory_xact_lock(?)", _ONE_AT_A_TIME)
            if self.execute("SELECT to_regclass('facts')")[0][0] is None:
                self._tables(embedding)
                return
            facts = dict(self.execute("SELECT name, value FROM facts"))
        if facts.get("schema") != str(SCHEMA):
            raise UsageError(f"{self.where} holds schema {facts.get('schema')}; this version reads {SCHEMA}: name another database")
        if facts.get("embedding") != embedding.name:
            raise UsageError(
                f"{self.where} holds vectors of {facts.get('embedding')}, not of {embedding.name}: "
                "`exact memory export` it, then import into another"
            )

    def _tables(self, embedding: Embedding) -> None:
        columns = COLUMNS.format(bytes="BYTEA")
        self.execute(FACTS)
        self.execute(f"CREATE TABLE reflections (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {columns})")
        for statement in (*MORE_TABLES, *_SEARCH):
            self.execute(statement)
        for fact in {"embedding": embedding.name, "revision": "0", "removed": "0", "schema": str(SCHEMA)}.items():
            self.execute("INSERT INTO facts VALUES (?, ?)", *fact)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _without_password(address: str) -> str:
    parts = urllib.parse.urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    return urllib.parse.urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, "", ""))
