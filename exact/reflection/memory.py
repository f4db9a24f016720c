"""Reflections in one SQLite file, found again by exact cosine.

Writers of many processes share the file: SQLite lets one write at a time, and a commit is on the disk when `add` returns (WAL
with `synchronous=FULL`). Each process keeps the vectors it has read and reads only what was added since.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from exact.context import Context, Reflection
from exact.errors import InfrastructureError, UsageError
from exact.reflection.base import Kind
from exact.reflection.embed import Embedding, HashedEmbedding, Vector, unit
from exact.reflection.lesson import shortened, site, task_without_seed

SCHEMA = 1
_APPLICATION = 0x65786D31
"""Marks the file as a memory of this package ("exm1")."""
_WAIT = 30.0
"""Seconds to wait for another process's write."""
_WEIGHTS = (0.55, 0.1, 0.35)
"""Shares of instruction, site and state in the likeness of two situations."""
_IDS = re.compile(r"^\s*\[[\w:.-]+\] ?", re.M)
_TABLES = """
CREATE TABLE reflections (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, task TEXT NOT NULL,
    record TEXT NOT NULL, vector BLOB NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class SQLiteMemory:
    """A Memory in a file. May be called from several threads; also a context manager, which closes it."""

    def __init__(self, path: Path | str, *, embedding: Embedding | None = None) -> None:
        """Opens the file, or makes it and its folders.

        Raises UsageError if it cannot be written, is no memory, is of a newer version, or holds vectors of another embedding.
        """
        self.path = Path(path)
        self._embedding = embedding or HashedEmbedding()
        self._lock = threading.Lock()
        self._seen = _Seen(self._embedding.dimensions)
        self._connection = _opened(self.path, self._embedding.name)

    def add(self, reflection: Reflection) -> None:
        """Stored durably on return; a no-op where the id is there. Raises InfrastructureError (disk full, file damaged)."""
        vector = self._vector(reflection.instruction, reflection.site, reflection.state)
        row = (
            reflection.id,
            reflection.kind,
            task_without_seed(reflection.task),
            msgspec.json.encode(reflection).decode(),
            vector.astype("<f4").tobytes(),
        )
        with self._access() as connection:
            connection.execute("INSERT OR IGNORE INTO reflections (id, kind, task, record, vector) VALUES (?, ?, ?, ?, ?)", row)

    def retrieve(self, context: Context, kind: Kind, *, k: int, threshold: float, exclude_task: str | None) -> tuple[Reflection, ...]:
        """The k of that kind learned in the situations most like that of `context`, best first, of equal ones the oldest.

        `threshold`: the least cosine, in [-1, 1]. `exclude_task`: id of a task, no seed of which counts. Raises
        InfrastructureError if the file is damaged.
        """
        query = self._vector(context.instruction, site(context), context.observation.text)
        with self._access() as connection:
            self._seen.refresh(connection)
            found = self._seen.nearest(query, kind, k, threshold, None if exclude_task is None else task_without_seed(exclude_task))
            records = [connection.execute("SELECT record FROM reflections WHERE seq = ?", (seq,)).fetchone() for seq in found]
            return tuple(msgspec.json.decode(record[0], type=Reflection) for record in records if record is not None)

    @property
    def version(self) -> str:
        """`count:last`: how many there are, and the sequence number of the newest."""
        with self._access() as connection:
            return "{}:{}".format(*_extent(connection))

    def __len__(self) -> int:
        with self._access() as connection:
            return _extent(connection)[0]

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> SQLiteMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _vector(self, instruction: str, site: str, state: str) -> Vector:
        texts = (instruction, site, _IDS.sub("", shortened(state)))
        parts = [weight**0.5 * self._embedding.embed(text) for weight, text in zip(_WEIGHTS, texts, strict=True)]
        return unit(np.sum(parts, axis=0))

    @contextmanager
    def _access(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except (sqlite3.Error, msgspec.DecodeError, _Damaged) as error:
                raise InfrastructureError(f"memory {self.path}: {error}; restore the file or name another one") from error


class _Damaged(Exception):
    pass


class _Seen:
    """What this process has read so far: a vector, kind and task for each sequence number."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._last = 0
        self._seqs: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._kinds: npt.NDArray[np.object_] = np.zeros(0, dtype=object)
        self._tasks: npt.NDArray[np.object_] = np.zeros(0, dtype=object)
        self._rows: Vector = np.zeros((0, dimensions), dtype=np.float32)

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Read what was added; all of it again if anything was taken out."""
        count, last = _extent(connection)
        if (count, last) == (len(self._seqs), self._last):
            return
        self._read(connection)
        if len(self._seqs) != _extent(connection)[0]:
            self._clear()
            self._read(connection)

    def nearest(self, query: Vector, kind: Kind, k: int, threshold: float, without: str | None) -> list[int]:
        """Sequence numbers of the nearest, best first."""
        wanted = (self._kinds == kind) & (self._tasks != without)
        # Rounded, because a product may differ in its last bits from one size of matrix to another.
        cosines = np.where(wanted, np.round(self._rows @ query, 5), -2.0)
        order = np.argsort(-cosines, kind="stable")[: max(k, 0)]
        return [int(self._seqs[i]) for i in order if wanted[i] and cosines[i] >= round(threshold, 5)]

    def _read(self, connection: sqlite3.Connection) -> None:
        rows = connection.execute("SELECT seq, kind, task, vector FROM reflections WHERE seq > ? ORDER BY seq", (self._last,)).fetchall()
        if not rows:
            return
        seqs, kinds, tasks, vectors = zip(*rows, strict=True)
        if any(len(vector) != 4 * self._dimensions for vector in vectors):
            raise _Damaged("a vector is of the wrong length")
        self._seqs = np.concatenate([self._seqs, np.array(seqs, dtype=np.int64)])
        self._kinds = np.concatenate([self._kinds, np.array(kinds, dtype=object)])
        self._tasks = np.concatenate([self._tasks, np.array(tasks, dtype=object)])
        new = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(rows), self._dimensions)
        self._rows = np.concatenate([self._rows, new])
        self._last = int(seqs[-1])

    def _clear(self) -> None:
        self._last = 0
        self._seqs, self._kinds, self._tasks, self._rows = self._seqs[:0], self._kinds[:0], self._tasks[:0], self._rows[:0]


def _extent(connection: sqlite3.Connection) -> tuple[int, int]:
    count, last = connection.execute("SELECT count(*), coalesce(max(seq), 0) FROM reflections").fetchone()
    return int(count), int(last)


def _opened(path: Path, embedding: str) -> sqlite3.Connection:
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
    except UsageError:
        connection.close()
        raise
    return connection


def _cannot_open(path: Path, error: Exception) -> UsageError:
    return UsageError(f"cannot use {path} as memory: {getattr(error, 'strerror', None) or error}; name a file that can be written")


def _prepare(connection: sqlite3.Connection, path: Path, embedding: str) -> None:
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


def _identify(cursor: sqlite3.Cursor, path: Path, embedding: str) -> None:
    """Make the tables in an empty file; refuse a file that is not ours to use."""
    application = cursor.execute("PRAGMA application_id").fetchone()[0]
    schema = cursor.execute("PRAGMA user_version").fetchone()[0]
    if application == 0 and cursor.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        for statement in _TABLES.split(";")[:-1]:
            cursor.execute(statement)
        cursor.execute("INSERT INTO facts VALUES ('embedding', ?)", (embedding,))
        cursor.execute(f"PRAGMA application_id = {_APPLICATION}")
        cursor.execute(f"PRAGMA user_version = {SCHEMA}")
        return
    if application != _APPLICATION:
        raise UsageError(f"{path} is an SQLite database, but no memory of reflections: name another file")
    if schema > SCHEMA:
        raise UsageError(f"{path} was written by a newer version (schema {schema}; this one reads {SCHEMA}): upgrade, or name another file")
    written = cursor.execute("SELECT value FROM facts WHERE name = 'embedding'").fetchone()
    if written is None or written[0] != embedding:
        raise UsageError(f"{path} holds vectors of {written and written[0]}, not of {embedding}: name another file")


def _patiently(connection: sqlite3.Connection, attempt: Callable[[], object]) -> None:
    """Repeat what SQLite refuses without waiting while others have the file: the change to WAL by several at once."""
    end = time.monotonic() + _WAIT
    while True:
        try:
            attempt()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        # Waits, by SQLite's own busy timeout, until whoever writes has ended.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
