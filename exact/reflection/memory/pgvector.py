"""Comparison of vectors by a PostgreSQL server with the extension pgvector, so that a process need not read all vectors.

The search is exact, as elsewhere: no index of the extension is used, since with filters these miss what they should find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from exact.errors import InfrastructureError

if TYPE_CHECKING:
    from exact.reflection.embed import Vector

Execute = Callable[..., list[tuple[Any, ...]]]
"""Function of a statement and its arguments that returns all rows."""

_FILLED_AT_ONCE = 1000


class PgVector:
    """A Likeness, made by `found`. Each query first adds new vectors to its copy, whichever process wrote them."""

    def __init__(self, execute: Execute, schema: str) -> None:
        """Take the quoted schema of the extension, which need not be in the search path."""
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
    """Return the comparison; None where the server lacks the extension, or this user may not use it.

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
