"""A memory's database on a PostgreSQL server, for runs on many machines. Needs the extra `postgres`.

Comparison of vectors by a PostgreSQL server with the extension pgvector, so that a process does not have to read all vectors.

The search is exact, as elsewhere: no index of the extension is used, because with filters it misses rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from exact.errors import InfrastructureError, UsageError
from exact.reflection.embed import Embedding
from exact.reflection.memory.database import COLUMNS, FACTS, MORE_TABLES, SCHEMA, VOCABULARY, Likeness, another_embedding

if TYPE_CHECKING:
    import psycopg

    from exact.reflection.embed import Vector


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

    A writer takes the row of the revision first, and so waits for the writer before it: revisions become visible in their order.
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
            self.likeness: Likeness | None = found(self.execute, self.alone)
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
        """Return all rows, over a new connection if the old one was lost outside a transaction. Raises InfrastructureError."""
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
                # Every statement must see the rows of the writer before, whatever the server's default is.
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
    """Return a valid address with the user's name, cut after the name of the database."""
    scheme, _, rest = address.partition("://")
    before, at, after = rest.rpartition("@")
    if "?" in before:  # of the password, or before it
        return f"{scheme}://..."
    return f"{scheme}://{_USER.match(before)[0]}{at}{after.partition('?')[0]}"  # type: ignore[index]


Execute = Callable[..., list[tuple[Any, ...]]]
"""Function of a statement and its arguments that returns all rows."""

_FILLED_AT_ONCE = 1000


class PgVector:
    """A Likeness, made by `found`. Each query first adds new vectors to its copy, whichever process wrote them."""

    def __init__(self, execute: Execute, schema: str) -> None:
        """Take the quoted schema of the extension, which may be outside the search path."""
        self._execute, self._type, self._times = execute, f"{schema}.vector", f"OPERATOR({schema}.<#>)"

    def prepare(self) -> None:
        """Make the table; within a transaction."""
        self._execute(
            "CREATE TABLE IF NOT EXISTS vectors (seq BIGINT PRIMARY KEY REFERENCES reflections ON DELETE CASCADE, "
            f"kind TEXT NOT NULL, vector {self._type} NOT NULL)"
        )

    def of_kind(self, query: Vector, kind: str, least: float) -> list[tuple[int, float]]:
        self._fill()
        # The operator gives the negative of the inner product, which is the cosine: vectors have length 1, or 0 for a text without words.
        return self._execute(
            f"SELECT seq, cosine FROM (SELECT seq, -(vector {self._times} CAST(? AS {self._type})) AS cosine FROM vectors WHERE kind = ?) "
            "AS each WHERE cosine >= ?",
            _written(query), kind, least,
        )  # fmt: skip

    def of(self, query: Vector, seqs: Sequence[int]) -> list[tuple[int, float]]:
        self._fill()
        return self._execute(
            f"SELECT seq, -(vector {self._times} CAST(? AS {self._type})) FROM vectors WHERE seq = ANY(CAST(? AS bigint[]))",
            _written(query), list(seqs),
        )  # fmt: skip

    def _fill(self) -> None:
        """Add the vectors of reflections that were written since: numbers become visible in their order."""
        while rows := self._execute(
            "SELECT seq, kind, vector FROM reflections WHERE seq > (SELECT coalesce(max(seq), 0) FROM vectors) ORDER BY seq LIMIT ?",
            _FILLED_AT_ONCE,
        ):
            seqs, kinds, vectors = zip(*rows, strict=True)
            self._execute(
                f"INSERT INTO vectors SELECT seq, kind, CAST(vector AS {self._type}) FROM "
                "unnest(CAST(? AS bigint[]), CAST(? AS text[]), CAST(? AS text[])) AS each (seq, kind, vector) ON CONFLICT DO NOTHING",
                list(seqs), list(kinds), [_written(np.frombuffer(each, dtype="<f4")) for each in vectors],
            )  # fmt: skip


def found(execute: Execute, alone: Callable[[], AbstractContextManager[object]]) -> PgVector | None:
    """Return the comparison; None if the server lacks the extension, or this user may not use it.

    `alone` opens a transaction in which no other process creates tables.
    """
    if not execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        return None
    from psycopg import errors

    try:
        with alone():
            execute("CREATE EXTENSION IF NOT EXISTS vector")
            ((schema,),) = execute(
                "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'vector'"
            )
            made = PgVector(execute, schema)
            made.prepare()
    except InfrastructureError as error:
        if isinstance(error.__cause__, errors.InsufficientPrivilege):
            return None
        raise
    return made


def _written(vector: Vector) -> str:
    """Return the text form of a vector for pgvector, which preserves float32 exactly."""
    return f"[{','.join(map(repr, vector.tolist()))}]"
