"""In-process index of a memory: a vector for each reflection, and the fields that retrieval filters and ranks by.

Usefulness of reflections, from the attempts that they were shown in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exact.reflection.memory.database import Likeness
from exact.reflection.record import STATUSES, Damaged, Status

if TYPE_CHECKING:
    from exact.reflection.embed import Vector
    from exact.reflection.memory.table import Row

Places = npt.NDArray[np.int64]

_CODES = {status: code for code, status in enumerate(STATUSES)}
_KEPT = _CODES["kept"]
_ROWS = 64
"""Rows that are allocated at first."""
_GROWN = {
    "seqs": np.int64, "status": np.int8, "helped": np.int64, "hurt": np.int64, "confidence": np.float32, "tasks": np.int64,
    "templates": np.int64, "about": np.int64,
}  # fmt: skip


class Hit(NamedTuple):
    """A reflection that reaches the threshold."""

    seq: int
    cosine: float
    fade: float
    """Factor of its similarity from its use, in [0, 1]."""


class Index:
    """Index of all kinds. It is not thread-safe."""

    def __init__(self, dimensions: int, likeness: Likeness | None = None) -> None:
        """Start empty. `likeness` compares vectors if the database does it."""
        self._dimensions, self._likeness = dimensions, likeness
        self._kinds: dict[str, _Kind] = {}
        self._place: dict[str, tuple[_Kind, int]] = {}
        self._into: dict[str, str] = {}
        """Reflection that each was merged into."""
        self._owed: dict[str, set[str]] = {}
        """Tasks and templates of all that was merged into each."""
        self._kept = self._helped = self._hurt = 0
        self._fades: dict[str, npt.NDArray[np.float64]] = {}
        """Weight of likeness for each row of a kind, as far as it is known."""
        self.revision = 0
        self.removed = 0
        """How many rows had been taken out of the table, bypassing the memory, when it was read."""

    def __len__(self) -> int:
        """Return the number of active reflections."""
        return self._kept

    def take(self, rows: Iterable[Row]) -> None:
        """Read new and changed rows, oldest first. Raises Damaged."""
        self._fades.clear()
        for row in rows:
            found = self._place.get(row.id)
            if found is None:
                kind = self._kinds.setdefault(row.kind, _Kind(row.kind, self._dimensions, self._likeness))
                found = self._place[row.id] = kind, kind.append(row)
                if row.id in self._owed:
                    self._owe(row.id, self._owed[row.id])
            kind, place = found
            self._kept += (row.status == "kept") - int(kind.status[place] == _KEPT)
            self._helped += row.helped - int(kind.helped[place])
            self._hurt += row.hurt - int(kind.hurt[place])
            kind.status[place] = _CODES.get(row.status, -1)  # type: ignore[call-overload]
            kind.helped[place], kind.hurt[place] = row.helped, row.hurt
            if row.status == "merged":
                self._join(row)

    def _join(self, row: Row) -> None:
        """Attribute the tasks of a merged reflection, and of those merged into it, to its target.

        The target may be read later, if it was changed after the revision that is read.
        """
        self._into[row.id] = into = row.note
        while into in self._into:
            into = self._into[into]
        names = {row.task, row.template} - {""} | self._owed.pop(row.id, set())
        self._owed.setdefault(into, set()).update(names)
        if into in self._place:
            self._owe(into, names)

    def _owe(self, id: str, names: Iterable[str]) -> None:
        kind, place = self._place[id]
        for name in names:
            kind.owing.setdefault(name, set()).add(place)

    def nearest(
        self, query: Vector, kind: str, threshold: float, *, without: frozenset[str] = frozenset(), confidence: float = 0.0, most: int = 64
    ) -> list[Hit]:
        """Return at most `most` active reflections of a kind that reach the threshold, by cosine times fade, then the newest first.

        `without` names tasks and templates: reflections from them, or merged with such ones, are left out. So are those whose
        outcome is less certain than `confidence`.
        """
        found = self._kinds.get(kind)
        if found is None or most <= 0:
            return []
        cosines = found.cosines(query, threshold)
        fades = self._faded(kind)
        passing = (cosines >= round(threshold, 5)) & (fades > 0) & found.not_from(without)
        if confidence > 0:
            passing &= found.confidence[: found.count] >= np.float32(confidence)
        places = np.flatnonzero(passing)
        ranked = _largest(cosines[places] * fades[places], places, most)
        return [Hit(int(found.seqs[i]), float(cosines[i]), float(fades[i])) for i in ranked]

    def _faded(self, kind: str) -> npt.NDArray[np.float64]:
        """Return the factor of each row's similarity: from its use if it is active, else 0. It is computed once after each read."""
        if kind not in self._fades:
            rows, count = self._kinds[kind], self._kinds[kind].count
            faded = fade(rows.helped[:count], rows.hurt[:count], self._rate)
            self._fades[kind] = np.where(rows.status[:count] == _KEPT, faded, 0.0)
        return self._fades[kind]

    def alike(self, query: Vector, kind: str, about: str, threshold: float, status: Status, *, most: int = 256) -> list[int]:
        """Return numbers of those of a status with the same subject that reach the threshold, the nearest first, faded or not."""
        found = self._kinds.get(kind)
        if found is None:
            return []
        places = found.about_the_same(about, _CODES[status])
        cosines = found.cosines_at(query, places)
        near = cosines >= round(threshold, 5)
        return [int(found.seqs[i]) for i in _largest(cosines[near], places[near], most)]

    def least_useful(self, count: int, *, spared: int = 0) -> list[str]:
        """Return ids of the active reflections that helped least, the oldest among equal ones.

        The newest `spared` ones without a known use come last.
        """
        kinds = list(self._kinds.values())
        if count <= 0 or not kinds:
            return []
        kept = [np.flatnonzero(kind.status[: kind.count] == _KEPT) for kind in kinds]
        shares = np.concatenate([utility(k.helped[p], k.hurt[p], self._rate) for k, p in zip(kinds, kept, strict=True)])
        seqs = np.concatenate([kind.seqs[places] for kind, places in zip(kinds, kept, strict=True)])
        places = np.concatenate(kept)
        untried = np.flatnonzero(np.concatenate([k.helped[p] + k.hurt[p] == 0 for k, p in zip(kinds, kept, strict=True)]))
        shares[untried[np.argsort(-seqs[untried])[:spared]]] = np.inf
        owner = np.repeat(np.arange(len(kinds)), [len(each) for each in kept])
        worst = np.partition(shares, count - 1)[count - 1]
        below, equal = np.flatnonzero(shares < worst), np.flatnonzero(shares == worst)
        oldest = equal[np.argsort(seqs[equal])[: count - len(below)]]
        return [kinds[owner[i]].ids[places[i]] for i in (*below, *oldest)]

    @property
    def _rate(self) -> float:
        return common_rate(self._helped, self._hurt)


def _largest(values: npt.NDArray[Any], places: Places, most: int) -> Places:
    """Return the positions of the largest values, descending, the newest first among equal ones; at most `most`. `places` are ascending."""
    # One number for the order, so that of many equal ones the newest are found without sorting them all.
    keys = np.round(values * 1e5).astype(np.int64) * 2**32 + places
    if len(keys) > most:
        keys = np.partition(keys, len(keys) - most)[-most:]
    ranked: Places = np.sort(keys)[::-1] & (2**32 - 1)
    return ranked


class _Kind:
    """The rows of one kind, in buffers that grow by doubling."""

    seqs: npt.NDArray[np.int64]
    status: npt.NDArray[np.int8]
    helped: npt.NDArray[np.int64]
    hurt: npt.NDArray[np.int64]
    confidence: npt.NDArray[np.float32]
    tasks: npt.NDArray[np.int64]
    templates: npt.NDArray[np.int64]
    about: npt.NDArray[np.int64]

    def __init__(self, name: str, dimensions: int, likeness: Likeness | None) -> None:
        self._name, self._dimensions, self._likeness = name, dimensions if likeness is None else 0, likeness
        self.count = 0
        self.ids: list[str] = []
        self._names: dict[str, int] = {"": 0}
        self.owing: dict[str, set[int]] = {}
        """Places of those that something from a task or template was merged into, by its name."""
        self._allocate(_ROWS)

    def cosines(self, query: Vector, least: float) -> Vector:
        """Return the cosine of each row, to five places. One that does not reach `least` may be given too low."""
        if self._likeness is None:
            # Row by row, not as one product with a matrix: read in the order in which they lie, vectors in no cache take half as long.
            return np.round(np.asarray(np.vecdot(self.vectors[: self.count], query)), 5)
        return self._placed(self._likeness.of_kind(query, self._name, least - 1e-5))

    def cosines_at(self, query: Vector, places: Places) -> Vector:
        """Return the cosines of the rows at some positions, to five places."""
        if self._likeness is None:
            return np.round(self.vectors[places] @ query, 5)
        return self._placed(self._likeness.of(query, self.seqs[places].tolist()))[places]

    def _placed(self, likeness: Sequence[tuple[int, float]]) -> Vector:
        """Return the given values at the positions of their rows. Rows that were written since the read are left out."""
        cosines, seqs = np.full(self.count, -np.inf, dtype=np.float32), self.seqs[: self.count]
        told = np.array([seq for seq, _ in likeness], dtype=np.int64)
        order = np.argsort(seqs, kind="stable")  # they rise, unless one was changed before it was first read
        places = order[np.minimum(np.searchsorted(seqs, told, sorter=order), self.count - 1)]
        read = seqs[places] == told
        cosines[places[read]] = np.round(np.array([cosine for _, cosine in likeness], dtype=np.float32)[read], 5)
        return cosines

    def about_the_same(self, about: str, status: int) -> Places:
        """Return the positions of those of a status with a subject."""
        code = self._names.get(about, -1)
        return np.flatnonzero((self.about[: self.count] == code) & (self.status[: self.count] == status))

    def not_from(self, without: frozenset[str]) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that came from none of some tasks and templates."""
        free = np.ones(self.count, dtype=np.bool_)
        for name in without - {""}:
            free[list(self.owing.get(name, ()))] = False
            if (code := self._names.get(name)) is not None:
                free &= (self.tasks[: self.count] != code) & (self.templates[: self.count] != code)
        return free

    def append(self, row: Row) -> int:
        """Return the position of a new row, which has no status yet."""
        if self._likeness is None and len(row.vector) != 4 * self._dimensions:
            raise Damaged("a vector is of the wrong length")
        if self.count == len(self.seqs):
            self._allocate(2 * self.count)
        place = self.count
        if self._likeness is None:
            self.vectors[place] = np.frombuffer(row.vector, dtype="<f4")
        self.seqs[place], self.confidence[place], self.status[place] = row.seq, row.confidence, -1
        self.tasks[place] = self._names.setdefault(row.task, len(self._names))
        self.templates[place] = self._names.setdefault(row.template, len(self._names))
        self.about[place] = self._names.setdefault(row.about, len(self._names))
        self.ids.append(row.id)
        self.count += 1
        return place

    def _allocate(self, size: int) -> None:
        self.vectors: Vector = self._larger("vectors", (size, self._dimensions), np.float32)
        for name, dtype in _GROWN.items():
            setattr(self, name, self._larger(name, (size,), dtype))

    def _larger(self, name: str, shape: tuple[int, ...], dtype: type) -> npt.NDArray[Any]:
        """Return an array of a shape with the content of an attribute."""
        new: npt.NDArray[Any] = np.zeros(shape, dtype=dtype)
        old = self.__dict__.get(name)
        if old is not None:
            new[: self.count] = old[: self.count]
        return new


Counts = float | npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]

EVIDENCE = 4.0
"""Weight of the common rate, in attempts."""
FADED = 0.5
"""Share of the common rate below which a reflection is no longer shown."""


def common_rate(helped: float, hurt: float) -> float:
    """Return the share of successful attempts over all shown reflections; 0.5 while nothing is known."""
    return (helped + 2.0) / (helped + hurt + 4.0)


def utility(helped: Counts, hurt: Counts, rate: float) -> Shares:
    """Return the share of successful attempts with a reflection, shrunk towards the common rate, in (0, 1)."""
    return np.asarray((helped + EVIDENCE * rate) / (helped + hurt + EVIDENCE))


def fade(helped: Counts, hurt: Counts, rate: float) -> Shares:
    """Return the factor of a reflection's similarity, in [0, 1]: below 1 only if attempts went worse with it than with others.

    It is 0 below FADED, and relative to the common rate, because on hard tasks all reflections fail alike.
    """
    share = np.minimum(1.0, utility(helped, hurt, rate) / rate)
    return np.where(share >= FADED, share, 0.0)
