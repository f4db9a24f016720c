"""A memory's database on a PostgreSQL server, for runs on many machines. Needs the extra `postgres`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from exact.errors import InfrastructureError, UsageError
from exact.reflection.embed import Embedding
from exact.reflection.memory import pgvector
from exact.reflection.memory.database import COLUMNS, FACTS, MORE_TABLES, SCHEMA, VOCABULARY, Likeness, another_embedding

if TYPE_CHECKING:
    import psycopg

_ONE_AT_A_TIME = 0x65786D31
"""Lock that is held while the tables are made."""
_PORTS = re.compile(r"[\d,]*")
_USER = re.compile(r"[^:/]*")
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

    def __init__(self, address: str, embedding: Embedding, *, other: bool = False) -> None:
        """Connect, and create missing tables. `other`: accept vectors of another embedding. Raises UsageError."""
        try:
            import psycopg
        except ImportError:
            raise UsageError("a memory on a PostgreSQL server needs psycopg: pip install 'exact-agent[postgres]'") from None
        _check(address)
        self.where, self._error, self._address = _without_password(address), psycopg.Error, address
        self._in_transaction = self._closed = False
        try:
            self._connection = self._connected()
        except (psycopg.Error, UnicodeError) as error:  # UnicodeError: a name that no host can have
            raise UsageError(f"cannot use {self.where} as memory: {_line(error)}; is the server running, and the address right?") from error
        try:
            self.embedding = self._prepare(embedding, other)
            self.likeness: Likeness | None = pgvector.found(self.execute, self.alone)
        except InfrastructureError as error:
            self.close()
            raise UsageError(str(error)) from error
        except BaseException:
            self.close()
            raise

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        return psycopg.connect(self._address, autocommit=True, connect_timeout=10)

    def execute(self, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Return all rows, over a new connection where the old one was lost outside a transaction. Raises InfrastructureError."""
        try:
            try:
                return self._rows(statement, arguments)
            except self._error:
                if self._closed or self._in_transaction or not self._connection.closed:
                    raise
                self._connection = self._connected()
                return self._rows(statement, arguments)
        except self._error as error:
            raise InfrastructureError(f"memory {self.where}: {_line(error)}; see the server's log") from error

    def _rows(self, statement: str, arguments: tuple[object, ...]) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.replace("?", "%s").encode(), arguments or None)
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Open a transaction, which is exclusive once it has taken its revision."""
        self.execute("SELECT 1")  # finds a lost connection while nothing hangs on it
        self._in_transaction = True
        try:
            with self._connection.transaction():
                # What the one before wrote is to be seen by every statement, whatever the server's default is.
                self._connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                self._connection.execute("SET LOCAL synchronous_commit = on")
                yield
        except self._error as error:
            raise InfrastructureError(f"memory {self.where}: {_line(error)}; see the server's log") from error
        finally:
            self._in_transaction = False

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Open a transaction in which no other process creates tables."""
        with self.writing():
            self.execute("SELECT pg_advisory_xact_lock(?)", _ONE_AT_A_TIME)
            yield

    def index_words(self, seq: int, text: str) -> None:
        self.execute("INSERT INTO found VALUES (?, to_tsvector('simple', ?))", seq, text)

    def find_words(self, words: list[str], limit: int) -> list[int]:
        if not words:
            return []
        query = " | ".join("'" + word.replace("'", "''") + "'" for word in words)
        found = self.execute(
            "SELECT seq FROM found JOIN reflections USING (seq), to_tsquery('simple', ?) AS asked "
            "WHERE words @@ asked AND status = 'kept' ORDER BY ts_rank(words, asked) DESC, seq LIMIT ?",
            query, limit,
        )  # fmt: skip
        return [int(seq) for (seq,) in found]

    def close(self) -> None:
        self._closed = True
        self._connection.close()

    def _prepare(self, embedding: Embedding, other: bool) -> str:
        """Name of the embedding in use."""
        with self.alone():
            if self.execute("SELECT to_regclass('facts')")[0][0] is None:
                self._tables(embedding)
            facts = dict(self.execute("SELECT name, value FROM facts"))
            if facts.get("schema") != str(SCHEMA):
                raise UsageError(f"{self.where} holds schema {facts.get('schema')}; this version reads {SCHEMA}: name another database")
            if self.execute("SELECT to_regclass('vocabulary')")[0][0] is None:
                self.execute(VOCABULARY)
        written = str(facts.get("embedding"))
        if written != embedding.name and not other:
            raise UsageError(another_embedding(self.where, written, embedding.name))
        return written

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


def _check(address: str) -> None:
    """Check that libpq reads the address as it is meant. Raises UsageError, without the address, whose parts are then ambiguous."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        read = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    except ProgrammingError:
        read = {"host": "@"}
    if any("@" in read.get(part, "") for part in ("host", "port", "dbname")) or not _PORTS.fullmatch(read.get("port", "")):
        raise UsageError(
            "the memory is no address of a PostgreSQL database: write postgresql://user@host/database, with @ / : % in a name "
            "percent-encoded, and give the password by PGPASSWORD or ~/.pgpass"
        )


def _without_password(address: str) -> str:
    """Return a valid address with the user's name and without what follows the name of the database."""
    scheme, _, rest = address.partition("://")
    before, at, after = rest.rpartition("@")
    if "?" in before:  # of the password, or before it
        return f"{scheme}://..."
    return f"{scheme}://{_USER.match(before)[0]}{at}{after.partition('?')[0]}"  # type: ignore[index]
