"""A memory over a database: writing, retrieval and eviction."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Self

import msgspec

from exact.context import Context, Reflection
from exact.errors import InfrastructureError, UsageError
from exact.reflection import embed
from exact.reflection.base import Kind
from exact.reflection.embed import Embedding, words
from exact.reflection.memory.database import Database
from exact.reflection.memory.table import Table
from exact.reflection.record import Damaged, Entry, Status, Use, confidence, outcome_id, task_without_seed

if TYPE_CHECKING:
    from exact.reflection.embed import Vector
    from exact.reflection.memory.index import Hit, Index

SAME = 0.95
"""Cosine from which two situations are the same one, and reflections that say the same of them are merged."""
CANDIDATES = 8
"""For each reflection that is asked for, so many of the nearest are put in order by words in common too."""
UNTRIED = 10
"""One place in so many of the capacity is for the newest reflections, whose effect is not known yet."""
_READ = 20_000
"""Reflections whose words are kept as read."""


class StoredMemory:
    """A Memory. Several threads may use it; also a context manager, which closes it. Nothing is ever deleted for good.

    Each process keeps the vectors that it has read, and reads only later changes.
    """

    def __init__(self, database: Database, embedding: Embedding, *, capacity: int) -> None:
        """Take the capacity: beyond it, those that helped least are evicted, the newest unused ones last."""
        self._database, self._embedding, self._capacity = database, embedding, capacity
        self._table = Table(database)
        self._lock = threading.Lock()
        self._frozen: Index | None = None
        self._words: dict[int, str] = {}

    def add(self, reflection: Reflection) -> None:
        """Store a reflection durably; an id that is there already has no effect. Raises InfrastructureError (disk full, file damaged).

        Of two reflections that say the same about the same embed, the one with the less certain outcome is merged into the other. A
        reflection that does more than state a lesson is quarantined; one that only advises to destroy something is kept once a second task
        has said the same. A reflection that a person had forgotten is forgotten again. Stored text never changes: the same reflection from
        a more certain outcome gets a separate id, and the first one is merged into it.
        """
        self.add_all([reflection])

    def add_all(self, reflections: Sequence[Reflection]) -> int:
        """Add all in one transaction, and return the number of new ones."""
        vectors = [embed.vector(self._embedding, embed.of_reflection(each)) for each in reflections]
        with self._access():
            self._refresh()  # long reads come before others have to wait
        with self._writing() as revision:
            added = 0
            for reflection, vector in zip(reflections, vectors, strict=True):
                if (new := self._new(reflection)) is not None:
                    if not added:
                        self._refresh()
                    self._insert(new, vector, revision)
                    added += 1
            if not added:
                raise _Nothing
            self._evict(revision)
            return added
        return 0

    def retrieve(
        self, context: Context, kind: Kind, *, k: int, threshold: float, exclude_task: str | None, confidence: float = 0.0
    ) -> tuple[Reflection, ...]:
        """Return the k reflections of a kind from the situations most similar to that of `context`, best first.

        The newest comes first among equal ones. `threshold`: the least cosine, in [-1, 1]. Up to CANDIDATES nearest reflections above it
        for each requested one are ranked by cosine and words in common, times the weight of their records. `exclude_task`: id of a task;
        nothing from any seed of it counts, nor from its template if the context's task names one. `confidence`: the least, in [0, 1]; see
        record.confidence. Raises InfrastructureError if the file is damaged.
        """
        query = embed.of_context(context)
        vector = embed.vector(self._embedding, query)
        asked = words(" ".join(query))
        without = frozenset[str]()
        if exclude_task is not None:
            without = frozenset({task_without_seed(exclude_task), str(context.task.metadata.get("template") or "")})
        with self._access():
            if self._frozen is None:
                self._refresh()
            hits = self._current.nearest(vector, kind, threshold, without=without, confidence=confidence, most=max(0, CANDIDATES * k))
            held = self._held(hits)
            hits = [hit for hit in hits if hit.seq in held]
            shares = embed.keywords(asked, [held[hit.seq] for hit in hits])
            scored = [((hit.cosine + embed.KEYWORDS * share) * hit.fade, hit.seq) for hit, share in zip(hits, shares, strict=True)]
            best = [seq for _, seq in sorted(scored, reverse=True)[: max(k, 0)]]
            known = dict(self._table.reflections(best))
        return tuple(known[seq] for seq in best if seq in known)

    def used(self, attempt: str, ids: Iterable[str], success: bool | None) -> None:
        """Record the end of an attempt that was shown reflections; `success` is None if it is unknown. Each attempt counts once."""
        with self._writing() as revision:
            for id in sorted(set(ids)):
                self._table.count_use(attempt, id, success, revision)

    def uses(self, id: str) -> list[Use]:
        """Return the attempts that a reflection was shown in, with their outcomes."""
        with self._access():
            return self._table.uses(id)

    def freeze(self, version: str | None = None) -> str:
        """Retrieve from the memory as it was in a version (None: as it is now) from now on, and return that version.

        Raises UsageError for an unknown version of this memory.
        """
        with self._access():
            wanted = self._table.facts().revision if version is None else _revision(version)
            if wanted > self._table.facts().revision:
                raise UsageError(f"the memory has not come to version {version} yet: is it the one that the run began with?")
            frozen = self._empty()
            frozen.take(self._table.as_of(wanted))
            frozen.revision = wanted
            self._frozen = frozen
            return _version(frozen)

    @property
    def version(self) -> str:
        """`kept:revision`: number of retrievable reflections, and number of the last change; those of the frozen state if it is frozen."""
        with self._access():
            if self._frozen is None:
                self._refresh()
            return _version(self._current)

    def __len__(self) -> int:
        """Return the number of active reflections."""
        with self._access():
            self._refresh()
            return len(self._index)

    def entry(self, id: str) -> Entry:
        """Return the entry of an id, or of a prefix of it. Raises UsageError if there is none or there are several."""
        with self._access():
            return self._table.entry(id)

    def entries(self, status: Status | None = "kept", *, kind: Kind | None = None, task: str = "", limit: int = -1) -> list[Entry]:
        """Return entries of a status (None: all), newest first. `task` is a pattern such as `miniwob/*`, without seed."""
        with self._access():
            return self._table.entries(status, kind, task, limit)

    def reflections(self) -> list[Reflection]:
        """Return active and merged reflections, oldest first. An empty memory to which they are added has the same active ones."""
        entries = self.entries(None)
        known = {entry.reflection.id: entry for entry in entries}

        def keeper(entry: Entry) -> Entry | None:
            seen = set[str]()
            while entry.status == "merged" and entry.note in known and entry.note not in seen:
                seen.add(entry.note)
                entry = known[entry.note]
            return entry if entry.status == "kept" else None

        return [entry.reflection for entry in reversed(entries) if keeper(entry)]

    def search(self, text: str, *, k: int = 10) -> list[Entry]:
        """Return active reflections that contain words of a text, best first."""
        with self._access():
            return self._table.numbered(self._database.find_words(list(words(text)), k))

    def forget(self, ids: Iterable[str], note: str = "") -> int:
        """Exclude some from retrieval, and return how many were active. `restore` undoes it."""
        return self._settle(ids, "forgotten", note)

    def restore(self, ids: Iterable[str]) -> int:
        """Reactivate some that were forgotten, evicted, merged or quarantined, and return their number."""
        return self._settle(ids, "kept", "")

    def merge(self) -> int:
        """Merge active reflections with the same meaning, as `add` does, and return the number of those merged."""
        merged = 0
        for entry in reversed(self.entries()):
            one = entry.reflection
            vector = embed.vector(self._embedding, embed.of_reflection(one))
            with self._access():
                self._refresh()
                surer, weaker = self._twins(one, vector, before=entry.seq)
            if ids := [one.id] if surer else weaker:
                with self._writing() as revision:
                    self._give_way(ids, surer or one.id, revision)
                merged += len(ids)
        return merged

    def close(self) -> None:
        """Close the database. A second call has no effect."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _index(self) -> Index:
        """Return the index of this process, empty at first. It is made when it is first asked for: it needs numpy."""
        return self._empty()

    @property
    def _current(self) -> Index:
        """Return the index that is retrieved from."""
        return self._index if self._frozen is None else self._frozen

    def _new(self, reflection: Reflection) -> Reflection | None:
        """Return the reflection to write: none if the id is there, or one with another id if its outcome is more certain."""
        if not self._table.has(reflection.id):
            return reflection
        if confidence(reflection) <= confidence(self._table.entry(reflection.id).reflection):
            return None
        other = msgspec.structs.replace(reflection, id=outcome_id(reflection))
        return None if self._table.has(other.id) else other

    def _insert(self, reflection: Reflection, vector: Vector, revision: int) -> None:
        status, note, weaker = self._standing(reflection, vector)
        self._index.take([self._table.insert(reflection, vector.astype("<f4").tobytes(), status, note, revision)])
        if weaker:
            self._give_way(weaker, reflection.id, revision)
            self._index.take([self._table.row(id) for id in (*weaker, reflection.id)])

    def _standing(self, reflection: Reflection, vector: Vector) -> tuple[Status, str, list[str]]:
        """Return the status of a new reflection, and the ids of those that it replaces."""
        from exact.reflection.hygiene import DESTROYS, instructions

        reasons = instructions(reflection)
        second = self._second_source(reflection) if reasons == [DESTROYS] else ""
        if reasons and not second:
            return "quarantined", "; ".join(reasons), []
        surer, weaker = self._twins(reflection, vector)
        if surer:
            return "merged", surer, []
        if not weaker and (twin := next(self._alike(reflection, vector, "forgotten"), None)):
            return "forgotten", f"says what {twin.id} says", []
        return "kept", "", [*weaker, second] if second else weaker

    def _second_source(self, reflection: Reflection) -> str:
        """Return the id of a reflection that advises the same destructive deed after another task, and waits for that; else empty."""
        from exact.reflection.hygiene import DESTROYS

        for entry in self._table.entries("quarantined", reflection.kind, "", -1):
            other = entry.reflection
            apart = task_without_seed(other.task) != task_without_seed(reflection.task)
            if entry.note == DESTROYS and apart and embed.same_reflection(reflection, other):
                return other.id
        return ""

    def _twins(self, reflection: Reflection, vector: Vector, *, before: int | None = None) -> tuple[str, list[str]]:
        """Return the id of an active reflection with the same meaning that is at least as certain, or empty, and the less certain ones."""
        weaker = []
        for twin in self._alike(reflection, vector, "kept", before=before):
            if confidence(twin) >= confidence(reflection):
                return twin.id, []
            weaker.append(twin.id)
        return "", weaker

    def _alike(self, reflection: Reflection, vector: Vector, status: Status, *, before: int | None = None) -> Iterator[Reflection]:
        """Return those of a status with the same meaning."""
        seqs = self._index.alike(vector, reflection.kind, embed.about(reflection), SAME, status)
        for _, other in self._table.reflections([seq for seq in seqs if before is None or seq < before]):
            if other.id != reflection.id and embed.same_reflection(reflection, other):
                yield other

    def _give_way(self, ids: Sequence[str], into: str, revision: int) -> None:
        """Merge some into another, which takes over the records of their use."""
        for id in ids:
            self._table.settle(id, "merged", into, revision)
            self._table.take_over(id, into, revision)

    def _evict(self, revision: int) -> None:
        for id in self._index.least_useful(len(self._index) - self._capacity, spared=max(1, self._capacity // UNTRIED)):
            self._table.settle(id, "evicted", f"more than {self._capacity}", revision)

    def _settle(self, ids: Iterable[str], status: Status, note: str) -> int:
        wanted = [self.entry(id) for id in ids]
        changed = [each for each in wanted if (each.status == "kept") != (status == "kept")]
        with self._writing() as revision:
            for each in changed:
                self._table.settle(each.reflection.id, status, note, revision)
            if any(each.status == "merged" for each in changed):
                # Its former target owes it nothing any more.
                self._table.read_anew()
        return len(changed)

    def _refresh(self) -> None:
        """Read the changes; everything again if anything was taken out."""
        facts = self._table.facts()
        if facts.removed != self._index.removed or facts.revision < self._index.revision:
            self._index = self._empty()
            self._index.removed = facts.removed
            self._words.clear()
        if facts.revision != self._index.revision:
            self._index.take(self._table.changed_since(self._index.revision, facts.revision))
            self._index.revision = facts.revision

    def _empty(self) -> Index:
        from exact.reflection.memory.index import Index

        return Index(self._embedding.dimensions, self._database.likeness)

    def _held(self, hits: Sequence[Hit]) -> dict[int, str]:
        """Return the words of some hits, by number. Each is read once."""
        missing = [hit.seq for hit in hits if hit.seq not in self._words]
        if len(self._words) + len(missing) > _READ:
            self._words.clear()
            missing = [hit.seq for hit in hits]
        self._words.update(self._table.words(missing))
        return {hit.seq: self._words[hit.seq] for hit in hits if hit.seq in self._words}

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """Open a transaction, and give its revision."""
        with self._access():
            try:
                with self._database.writing():
                    yield (revision := self._table.next_revision())
                # The rows written now are read back at the next look, as others read them.
                self._index.revision = min(self._index.revision, revision - 1)
            except _Nothing:
                return
            except BaseException:
                # It may have read rows that were rolled back.
                self._index = self._empty()
                raise

    @contextmanager
    def _access(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except Damaged as error:
                raise InfrastructureError(f"memory {self._database.where}: {error}; restore the file or name another one") from error


class _Nothing(Exception):
    """Return a transaction without statements."""


def _version(index: Index) -> str:
    return f"{len(index)}:{index.revision}"


def _revision(version: str) -> int:
    """Return the revision of a version. Raises UsageError."""
    tail = version.rpartition(":")[2]
    if not tail.isdecimal():
        raise UsageError(f"{version!r} is no version of a memory: they look like 12:34")
    return int(tail)
