"""What a process has read of a memory: a vector for each reflection, and what retrieval filters and ranks by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exact.reflection.embed import Vector
from exact.reflection.memory.entry import Damaged
from exact.reflection.memory.utility import common_rate, fade, utility


class Row(NamedTuple):
    """One reflection as it stands."""

    seq: int
    id: str
    kind: str
    task: str
    """Without seed."""
    template: str
    status: str
    note: str
    helped: int
    hurt: int
    revision: int
    vector: bytes
    """Little-endian float32."""


class Hit(NamedTuple):
    """One that reaches the threshold."""

    seq: int
    cosine: float
    fade: float
    """What its likeness counts, by its record; in [0, 1]."""


class Index:
    """Of all kinds. Not for several threads at once."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._kinds: dict[str, _Kind] = {}
        self._place: dict[str, tuple[_Kind, int]] = {}
        self.revision = 0
        self.removed = 0
        """How many rows had been taken out of the table, bypassing the memory, when it was read."""

    def __len__(self) -> int:
        """How many are kept."""
        return sum(int(each.kept[: each.count].sum()) for each in self._kinds.values())

    def take(self, rows: Iterable[Row]) -> None:
        """Read new and changed rows, oldest first. Raises Damaged."""
        for row in rows:
            self.revision = max(self.revision, row.revision)
            found = self._place.get(row.id)
            if found is None:
                kind = self._kinds.setdefault(row.kind, _Kind(self._dimensions))
                found = self._place[row.id] = kind, kind.append(row)
            kind, place = found
            kind.kept[place] = row.status == "kept"
            kind.helped[place], kind.hurt[place] = row.helped, row.hurt
            if row.status == "merged" and (into := self._place.get(row.note)):
                into[0].also.setdefault(into[1], set()).update({row.task, row.template} - {""})

    def nearest(self, query: Vector, kind: str, threshold: float, *, without: frozenset[str] = frozenset(), most: int = 64) -> list[Hit]:
        """Those of a kind that reach the threshold, in order of cosine times fade, then newest first; at most `most`.

        `without`: tasks and templates; a reflection that came from one, or was merged with one that did, does not count.
        """
        found = self._kinds.get(kind)
        if found is None or most <= 0:
            return []
        # Rounded, because a product may differ in its last bits from one size of matrix to another.
        cosines = np.round(found.vectors[: found.count] @ query, 5)
        places = np.flatnonzero((cosines >= round(threshold, 5)) & found.kept[: found.count])
        places = found.not_from(places, without)
        faded = fade(found.helped[places], found.hurt[places], self._rate)
        # One number for the order, so that of many equal ones the newest are found without sorting them all.
        keys = np.round(cosines[places] * faded * 1e5).astype(np.int64) * 2**32 + places
        if len(keys) > most:
            keys = np.partition(keys, len(keys) - most)[-most:]
        ranked = np.sort(keys)[::-1] & (2**32 - 1)
        shares = faded[np.searchsorted(places, ranked)]
        return [Hit(int(found.seqs[i]), float(cosines[i]), float(share)) for i, share in zip(ranked, shares, strict=True) if share > 0]

    @property
    def _rate(self) -> float:
        helped = sum(float(each.helped[: each.count].sum()) for each in self._kinds.values())
        hurt = sum(float(each.hurt[: each.count].sum()) for each in self._kinds.values())
        return common_rate(helped, hurt)

    def least_useful(self, count: int) -> list[str]:
        """Ids of those kept that helped least, of equal ones the oldest."""
        rate = self._rate
        kept = [
            (float(utility(kind.helped[place], kind.hurt[place], rate)), int(kind.seqs[place]), id)
            for id, (kind, place) in self._place.items()
            if kind.kept[place]
        ]
        return [id for _, _, id in sorted(kept)[:count]]


class _Kind:
    """The rows of one kind, in buffers that grow by doubling."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self.count = 0
        self._names: dict[str, int] = {"": 0}
        self.also: dict[int, set[str]] = {}
        """Tasks and templates of what was merged into a row."""
        self._allocate(64)

    def _allocate(self, size: int) -> None:
        self.vectors: Vector = self._grown("vectors", (size, self._dimensions), np.float32)
        self.seqs: npt.NDArray[np.int64] = self._grown("seqs", (size,), np.int64)
        self.kept: npt.NDArray[np.bool_] = self._grown("kept", (size,), np.bool_)
        self.helped: npt.NDArray[np.int64] = self._grown("helped", (size,), np.int64)
        self.hurt: npt.NDArray[np.int64] = self._grown("hurt", (size,), np.int64)
        self._tasks: npt.NDArray[np.int64] = self._grown("_tasks", (size,), np.int64)
        self._templates: npt.NDArray[np.int64] = self._grown("_templates", (size,), np.int64)

    def _grown(self, name: str, shape: tuple[int, ...], dtype: type) -> npt.NDArray[Any]:
        """A larger array with what the attribute of that name holds."""
        new: npt.NDArray[Any] = np.zeros(shape, dtype=dtype)
        old = self.__dict__.get(name)
        if old is not None:
            new[: self.count] = old[: self.count]
        return new

    def append(self, row: Row) -> int:
        if len(row.vector) != 4 * self._dimensions:
            raise Damaged("a vector is of the wrong length")
        if self.count == len(self.seqs):
            self._allocate(2 * self.count)
        place = self.count
        self.vectors[place] = np.frombuffer(row.vector, dtype="<f4")
        self.seqs[place] = row.seq
        self._tasks[place] = self._names.setdefault(row.task, len(self._names))
        self._templates[place] = self._names.setdefault(row.template, len(self._names))
        self.count += 1
        return place

    @property
    def used(self) -> bool:
        return bool(self.helped[: self.count].any() or self.hurt[: self.count].any())

    def not_from(self, places: npt.NDArray[np.int64], without: frozenset[str]) -> npt.NDArray[np.int64]:
        """Those places that owe nothing to any of some tasks and templates."""
        for name in without - {""}:
            if (code := self._names.get(name)) is not None:
                places = places[(self._tasks[places] != code) & (self._templates[places] != code)]
        barred = [place for place, names in self.also.items() if names & without]
        return places[~np.isin(places, barred)] if barred else places
