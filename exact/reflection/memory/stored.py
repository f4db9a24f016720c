"""A memory over a database: what is written, what is found again, and what becomes of what did not help."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import msgspec

from exact.context import Context, Reflection
from exact.errors import InfrastructureError, UsageError
from exact.reflection.base import Kind
from exact.reflection.embed import Embedding, words
from exact.reflection.hygiene import instructions
from exact.reflection.lesson import task_without_seed
from exact.reflection.memory import situation
from exact.reflection.memory.database import REVISION, Database
from exact.reflection.memory.entry import Damaged, Entry, Status
from exact.reflection.memory.index import Index, Row

SAME = 0.95
"""Cosine from which two situations are the same one, and reflections that say the same of them are merged."""
_ROW = "seq, id, kind, task, template, status, note, helped, hurt, revision, vector"
_ENTRY = "seq, record, status, note, born, retrieved, helped, hurt"


class StoredMemory:
    """A Memory. Several threads may use it; also a context manager, which closes it. Nothing is ever taken out for good.

    Each process keeps the vectors that it has read and reads only what was changed since.
    """

    def __init__(self, database: Database, embedding: Embedding, *, capacity: int) -> None:
        """`capacity`: how many are kept; of more, those that helped least are evicted."""
        self._database, self._embedding, self._capacity = database, embedding, capacity
        self._lock = threading.Lock()
        self._index = Index(embedding.dimensions)
        self._frozen: Index | None = None

    def add(self, reflection: Reflection) -> None:
        """Stored durably on return; a no-op where the id is there. Raises InfrastructureError (disk full, file damaged).

        One that says what another says of the same situation is merged into that; one that instructs is quarantined.
        """
        self.add_all([reflection])

    def add_all(self, reflections: Sequence[Reflection]) -> int:
        """All in one transaction; how many were new."""
        vectors = [situation.vector(self._embedding, situation.of_reflection(each)) for each in reflections]
        with self._writing() as (database, revision):
            new = 0
            for reflection, vector in zip(reflections, vectors, strict=True):
                if database.execute("SELECT seq FROM reflections WHERE id = ?", reflection.id):
                    continue
                self._refresh()
                status, note = self._standing(reflection, vector)
                self._index.take([self._insert(reflection, vector.astype("<f4").tobytes(), status, note, revision)])
                new += 1
            if not new:
                raise _Nothing
            self._evict(revision)
            return new
        return 0

    def retrieve(self, context: Context, kind: Kind, *, k: int, threshold: float, exclude_task: str | None) -> tuple[Reflection, ...]:
        """The k of that kind learned in the situations most like that of `context`, best first, of equal ones the newest.

        `threshold`: the least cosine, in [-1, 1]. Those that reach it are put in order by cosine and words in common, times what
        their record counts. `exclude_task`: id of a task; nothing from any seed of it counts, nor from its template where the context's
        task names one. Raises InfrastructureError if the file is damaged.
        """
        query = situation.of_context(context)
        vector = situation.vector(self._embedding, query)
        without = (
            set[str]() if exclude_task is None else {task_without_seed(exclude_task), str(context.task.metadata.get("template") or "")}
        )
        with self._access():
            if self._frozen is None:
                self._refresh()
            hits = self._current.nearest(vector, kind, threshold, without=frozenset(without), most=max(0, 8 * k))
            records = {seq: msgspec.json.decode(record, type=Reflection) for seq, record in self._records([hit.seq for hit in hits])}
        scored = [
            ((hit.cosine + situation.KEYWORDS * situation.keywords(query, records[hit.seq])) * hit.fade, hit.seq)
            for hit in hits if hit.seq in records
        ]  # fmt: skip
        return tuple(records[seq] for _, seq in sorted(scored, reverse=True)[: max(k, 0)])

    def used(self, attempt: str, ids: Iterable[str], success: bool | None) -> None:
        """An attempt that was shown some reflections has ended well, badly, or nobody knows how. Counted once for each attempt."""
        with self._writing() as (database, revision):
            for id in sorted(set(ids)):
                helped = None if success is None else int(success)
                added = database.execute(
                    "INSERT INTO uses (attempt, id, helped, revision) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id",
                    attempt, id, helped, revision,
                )  # fmt: skip
                if added:
                    database.execute(
                        "UPDATE reflections SET retrieved = retrieved + 1, helped = helped + ?, hurt = hurt + ?, revision = ? WHERE id = ?",
                        int(success is True), int(success is False), revision, id,
                    )  # fmt: skip

    def freeze(self, version: str | None = None) -> str:
        """From now on retrieve from the memory as it was in a version (None: as it is now), whatever is written; which one that is.

        Raises UsageError for what is no version of this memory.
        """
        if version is None:
            self.thaw()
        wanted = self.version if version is None else version
        tail = wanted.rpartition(":")[2]
        if not tail.isdecimal():
            raise UsageError(f"{wanted!r} is no version of a memory: they look like 12:34")
        frozen = Index(self._embedding.dimensions)
        with self._access():
            frozen.take(self._rows_as_of(int(tail)))
        frozen.revision = int(tail)
        self._frozen = frozen
        return wanted

    def thaw(self) -> None:
        """Retrieve from the memory as it is."""
        self._frozen = None

    @property
    def version(self) -> str:
        """`kept:revision`: how many are retrieved from, and the number of the last change; of the frozen state where it is frozen."""
        with self._access():
            if self._frozen is None:
                self._refresh()
            index = self._current
            return f"{len(index)}:{index.revision}"

    def __len__(self) -> int:
        """How many are kept."""
        with self._access():
            self._refresh()
            return len(self._index)

    def entry(self, id: str) -> Entry:
        """One, by its id or the beginning of it. Raises UsageError if there is none or there are several."""
        with self._access() as database:
            found = database.execute(f"SELECT {_ENTRY} FROM reflections WHERE id LIKE ? ORDER BY seq LIMIT 2", _prefix(id))
        if len(found) != 1:
            raise UsageError(f"{'no' if not found else 'more than one'} reflection has the id {id}: `exact memory list` names them")
        return _entry(found[0])

    def entries(self, status: Status | None = "kept", *, kind: Kind | None = None, task: str = "", limit: int = -1) -> list[Entry]:
        """Those of a status (None: all), newest first; `task`: a pattern such as `miniwob/*`, without seed."""
        where = ["1 = 1"] + ["status = ?"] * (status is not None) + ["kind = ?"] * (kind is not None) + ["task LIKE ?"] * bool(task)
        arguments = [each for each in (status, kind, task.replace("*", "%") or None) if each is not None]
        cut = f" LIMIT {int(limit)}" if limit >= 0 else ""
        with self._access() as database:
            found = database.execute(f"SELECT {_ENTRY} FROM reflections WHERE {' AND '.join(where)} ORDER BY seq DESC{cut}", *arguments)
        return [_entry(row) for row in found]

    def search(self, text: str, *, k: int = 10) -> list[Entry]:
        """Those kept with words of a text in them, best first."""
        with self._access() as database:
            seqs = database.find_words(list(words(text)), 4 * k)
            found = {
                row[0]: _entry(row) for seq in seqs for row in database.execute(f"SELECT {_ENTRY} FROM reflections WHERE seq = ?", seq)
            }
        return [found[seq] for seq in seqs if found[seq].status == "kept"][:k]

    def forget(self, ids: Iterable[str], note: str = "") -> int:
        """No longer retrieve some; how many were kept until now. `restore` undoes it."""
        return self._settle(ids, "forgotten", note)

    def restore(self, ids: Iterable[str]) -> int:
        """Keep some again that were forgotten, evicted, merged or quarantined; how many."""
        return self._settle(ids, "kept", "")

    def merge(self) -> int:
        """Merge those kept that say the same, as `add` does; how many were merged away."""
        merged = 0
        for entry in reversed(self.entries()):
            vector = situation.vector(self._embedding, situation.of_reflection(entry.reflection))
            with self._access():
                self._refresh()
                twin = self._twin(entry.reflection, vector, before=entry.seq)
            merged += self._settle([entry.reflection.id], "merged", twin) if twin else 0
        return merged

    def close(self) -> None:
        """Let go of the database; may be called twice."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _current(self) -> Index:
        """What is retrieved from."""
        return self._index if self._frozen is None else self._frozen

    def _standing(self, reflection: Reflection, vector: Any) -> tuple[Status, str]:
        """What is to become of a new one."""
        if reasons := instructions(reflection):
            return "quarantined", "; ".join(reasons)
        twin = self._twin(reflection, vector)
        return ("merged", twin) if twin else ("kept", "")

    def _twin(self, reflection: Reflection, vector: Any, *, before: int | None = None) -> str:
        """Id of one kept that says the same; empty if there is none."""
        hits = self._index.nearest(vector, reflection.kind, SAME, most=16)
        for _, record in self._records([hit.seq for hit in hits if before is None or hit.seq < before]):
            other = msgspec.json.decode(record, type=Reflection)
            if other.id != reflection.id and situation.same_lesson(reflection, other):
                return other.id
        return ""

    def _insert(self, reflection: Reflection, vector: bytes, status: str, note: str, revision: int) -> Row:
        record = msgspec.json.encode(reflection).decode()
        ((seq,),) = self._database.execute(
            "INSERT INTO reflections (id, kind, task, template, record, vector, status, note, born, ended, revision) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq",
            reflection.id, reflection.kind, task_without_seed(reflection.task), reflection.template, record, vector,
            status, note, revision, None if status == "kept" else revision, revision,
        )  # fmt: skip
        self._database.index_words(seq, " ".join((*situation.of_reflection(reflection), reflection.text, reflection.action_label)))
        task = task_without_seed(reflection.task)
        return Row(seq, reflection.id, reflection.kind, task, reflection.template, status, note, 0, 0, revision, vector)

    def _evict(self, revision: int) -> None:
        self._refresh()
        for id in self._index.least_useful(len(self._index) - self._capacity) if len(self._index) > self._capacity else []:
            self._set(id, "evicted", f"more than {self._capacity}", revision)

    def _settle(self, ids: Iterable[str], status: Status, note: str) -> int:
        wanted = [self.entry(id) for id in ids]
        changed = [each for each in wanted if (each.status == "kept") != (status == "kept")]
        with self._writing() as (database, revision):
            for each in changed:
                self._set(each.reflection.id, status, note, revision)
            if any(each.status == "merged" for each in changed):
                # What it was merged into owes it nothing any more: everyone is to read anew.
                database.execute("UPDATE facts SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = 'removed'")
        return len(changed)

    def _set(self, id: str, status: str, note: str, revision: int) -> None:
        ended = None if status == "kept" else revision
        self._database.execute(
            "UPDATE reflections SET status = ?, note = ?, ended = ?, revision = ? WHERE id = ?", status, note, ended, revision, id
        )

    def _refresh(self) -> None:
        """Read what was changed; everything again if anything was taken out."""
        facts = dict(self._database.execute("SELECT name, value FROM facts WHERE name IN ('revision', 'removed')"))
        try:
            revision, removed = int(facts["revision"]), int(facts["removed"])
        except (KeyError, ValueError) as error:
            raise Damaged("it does not know its own revision") from error
        if removed != self._index.removed or revision < self._index.revision:
            self._index = Index(self._embedding.dimensions)
            self._index.removed = removed
        if revision != self._index.revision or not len(self._index):
            self._index.take(self._rows("revision > ?", self._index.revision))
            self._index.revision = revision

    def _rows(self, where: str, *arguments: object) -> Iterator[Row]:
        for row in self._database.execute(f"SELECT {_ROW} FROM reflections WHERE {where} ORDER BY seq", *arguments):
            yield Row(*row)

    def _rows_as_of(self, revision: int) -> Iterator[Row]:
        """As they stood in a revision: those written by then, with what had been counted by then."""
        counts = {
            id: (int(helped or 0), int(hurt or 0))
            for id, helped, hurt in self._database.execute(
                "SELECT id, sum(CASE helped WHEN 1 THEN 1 ELSE 0 END), sum(CASE helped WHEN 0 THEN 1 ELSE 0 END) FROM uses "
                "WHERE revision <= ? GROUP BY id", revision,
            )
        }  # fmt: skip
        ended = {id for (id,) in self._database.execute("SELECT id FROM reflections WHERE ended > ? AND born < ended", revision)}
        for row in self._rows("born <= ?", revision):
            helped, hurt = counts.get(row.id, (0, 0))
            yield row._replace(status="kept" if row.id in ended else row.status, helped=helped, hurt=hurt)

    def _records(self, seqs: Sequence[int]) -> Iterator[tuple[int, str]]:
        for start in range(0, len(seqs), 500):
            part = seqs[start : start + 500]
            marks = ", ".join("?" * len(part))
            yield from ((int(seq), record) for seq, record in self._database.execute(
                f"SELECT seq, record FROM reflections WHERE seq IN ({marks})", *part
            ))  # fmt: skip

    @contextmanager
    def _writing(self) -> Iterator[tuple[Database, int]]:
        """A transaction and the revision it makes."""
        with self._access() as database:
            try:
                with database.writing():
                    yield database, int(database.execute(REVISION)[0][0])
            except BaseException:
                # It may have read what was undone.
                self._index = Index(self._embedding.dimensions)
                raise

    @contextmanager
    def _access(self) -> Iterator[Database]:
        with self._lock:
            try:
                yield self._database
            except _Nothing:
                return
            except (msgspec.DecodeError, Damaged) as error:
                raise InfrastructureError(f"memory {self._database.where}: {error}; restore the file or name another one") from error


class _Nothing(Exception):
    """A transaction with nothing in it."""


def _entry(row: tuple[Any, ...]) -> Entry:
    seq, record, status, note, born, retrieved, helped, hurt = row
    try:
        reflection = msgspec.json.decode(record, type=Reflection)
    except msgspec.DecodeError as error:
        raise InfrastructureError(f"reflection {seq} cannot be read: {error}; restore the memory from a copy") from error
    return Entry(
        seq=seq, reflection=reflection, status=status, note=note, born=born, retrieved=retrieved, helped=helped, hurt=hurt
    )  # fmt: skip


def _prefix(id: str) -> str:
    return id.replace("%", "").replace("_", "") + "%" if len(id) < 32 else id
