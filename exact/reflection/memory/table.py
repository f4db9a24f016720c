"""The tables of a memory: the statements that write and read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from exact.context import Reflection
from exact.errors import InfrastructureError, UsageError
from exact.reflection import embed
from exact.reflection.base import Kind
from exact.reflection.embed import vocabulary
from exact.reflection.memory.database import Database
from exact.reflection.record import Damaged, Entry, Status, Use, confidence, task_without_seed

_ROW = "seq, id, kind, task, template, about, confidence, status, note, helped, hurt, revision"
_ENTRY = "seq, record, status, note, born, retrieved, helped, hurt"
_NEXT = "UPDATE facts SET value = CAST(CAST(value AS BIGINT) + 1 AS TEXT) WHERE name = '{}' RETURNING value"


class Row(NamedTuple):
    """One reflection in its current state."""

    seq: int
    id: str
    kind: str
    task: str
    """Task without seed."""
    template: str
    about: str
    """Digest of its action and direction; reflections that differ in it have different meanings."""
    confidence: float
    """Certainty of its outcome, in [0, 1]."""
    status: str
    note: str
    helped: int
    hurt: int
    revision: int
    vector: bytes = b""
    """Little-endian float32; empty if the database compares vectors."""


class Facts(NamedTuple):
    """State of a memory."""

    revision: int
    """Number of the last change."""
    removed: int
    """Rises if rows must be read anew: some were taken out, or a merge was undone."""


class Table:
    """Statements over a database. Methods that write must be called within its `writing`. All raise InfrastructureError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._columns = f"{_ROW}, vector" if database.likeness is None else _ROW

    def next_revision(self) -> int:
        """Return the next revision. Each transaction that writes takes it first, and so waits for the one before."""
        return int(self._database.execute(_NEXT.format("revision"))[0][0])

    def facts(self) -> Facts:
        """Return the state of the memory. Raises Damaged."""
        found = dict(self._database.execute("SELECT name, value FROM facts WHERE name IN ('revision', 'removed')"))
        try:
            return Facts(int(found["revision"]), int(found["removed"]))
        except (KeyError, ValueError) as error:
            raise Damaged("it does not know its own revision") from error

    def read_anew(self) -> None:
        """Have all processes read everything again."""
        self._database.execute(_NEXT.format("removed"))

    def has(self, id: str) -> bool:
        return bool(self._database.execute("SELECT seq FROM reflections WHERE id = ?", id))

    def insert(self, reflection: Reflection, vector: bytes, status: str, note: str, revision: int) -> Row:
        r, task = reflection, task_without_seed(reflection.task)
        about, sure = embed.about(r), confidence(r)
        ((seq,),) = self._database.execute(
            "INSERT INTO reflections (id, kind, task, template, about, confidence, record, vector, status, note, born, revision) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq",
            r.id, r.kind, task, r.template, about, sure, msgspec.json.encode(r).decode(), vector, status, note, revision, revision,
        )  # fmt: skip
        told = embed.told(r)
        self._database.index_words(seq, told)
        self._database.execute("INSERT INTO vocabulary (seq, words) VALUES (?, ?)", seq, _distinct(told))
        if status != "kept":
            self._changed(r.id, status, note, revision)
        return Row(seq, r.id, r.kind, task, r.template, about, sure, status, note, 0, 0, revision, vector)

    def settle(self, id: str, status: Status, note: str, revision: int) -> None:
        """Give a reflection a status."""
        self._database.execute("UPDATE reflections SET status = ?, note = ?, revision = ? WHERE id = ?", status, note, revision, id)
        self._changed(id, status, note, revision)

    def _changed(self, id: str, status: str, note: str, revision: int) -> None:
        self._database.execute("INSERT INTO changes (id, status, note, revision) VALUES (?, ?, ?, ?)", id, status, note, revision)

    def count_use(self, attempt: str, id: str, success: bool | None, revision: int) -> None:
        """Record that an attempt was shown a reflection, once for each attempt, and only for one that exists."""
        helped = None if success is None else int(success)
        added = self._database.execute(
            "INSERT INTO uses (attempt, id, helped, revision) SELECT ?, id, ?, ? FROM reflections WHERE id = ? "
            "ON CONFLICT DO NOTHING RETURNING id", attempt, helped, revision, id,
        )  # fmt: skip
        if added:
            self._database.execute(
                "UPDATE reflections SET retrieved = retrieved + 1, helped = helped + ?, hurt = hurt + ?, revision = ? WHERE id = ?",
                int(success is True), int(success is False), revision, id,
            )  # fmt: skip

    def take_over(self, id: str, by: str, revision: int) -> None:
        """Copy the use of one reflection to another."""
        self._database.execute(
            "INSERT INTO uses (attempt, id, helped, revision) SELECT attempt, CAST(? AS TEXT), helped, ? FROM uses WHERE id = ? "
            "ON CONFLICT DO NOTHING", by, revision, id,
        )  # fmt: skip
        self._database.execute(
            "UPDATE reflections SET revision = ?, retrieved = (SELECT count(*) FROM uses WHERE uses.id = reflections.id), "
            "helped = (SELECT count(*) FROM uses WHERE uses.id = reflections.id AND uses.helped = 1), "
            "hurt = (SELECT count(*) FROM uses WHERE uses.id = reflections.id AND uses.helped = 0) WHERE id = ?",
            revision, by,
        )  # fmt: skip

    def uses(self, id: str) -> list[Use]:
        """Return the attempts that a reflection was shown in, oldest first."""
        found = self._database.execute("SELECT attempt, helped FROM uses WHERE id = ? ORDER BY revision, attempt", id)
        return [Use(attempt=attempt, success=None if helped is None else bool(helped)) for attempt, helped in found]

    def row(self, id: str) -> Row:
        (found,) = self._rows("id = ?", id)
        return found

    def changed_since(self, revision: int, until: int) -> Iterator[Row]:
        """Return the rows whose last change is later than one revision and not later than another."""
        return self._rows("revision > ? AND revision <= ?", revision, until)

    def as_of(self, revision: int) -> Iterator[Row]:
        """Return all rows of a revision, with the status and the use that they had then."""
        used: dict[str, list[int]] = {}
        for id, helped in self._database.execute("SELECT id, helped FROM uses WHERE revision <= ? AND helped IS NOT NULL", revision):
            used.setdefault(id, [0, 0])[int(helped)] += 1
        stood = {
            id: (status, note)
            for id, status, note in self._database.execute(
                "SELECT id, status, note FROM changes WHERE revision <= ? ORDER BY revision", revision
            )
        }
        for row in self._rows("born <= ?", revision):
            hurt, helped = used.get(row.id, (0, 0))
            status, note = stood.get(row.id, ("kept", ""))
            yield row._replace(status=status, note=note, helped=helped, hurt=hurt)

    def _rows(self, where: str, *arguments: object) -> Iterator[Row]:
        # `+seq`: SQLite is to find a few changed rows by their revision, not to go through all by their number.
        for row in self._database.execute(f"SELECT {self._columns} FROM reflections WHERE {where} ORDER BY +seq", *arguments):
            yield Row(*row)

    def reflections(self, seqs: Sequence[int]) -> Iterator[tuple[int, Reflection]]:
        """Return the reflections of some numbers, in no order. Raises Damaged."""
        for seq, record in self._of("SELECT seq, record FROM reflections WHERE seq IN ({})", seqs):
            yield int(seq), _decoded(seq, record)

    def words(self, seqs: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Return the distinct words of the reflections of some numbers, split by spaces. Raises Damaged."""
        missing = set(seqs)
        for seq, words in self._of("SELECT seq, words FROM vocabulary WHERE seq IN ({})", seqs):
            missing.discard(int(seq))
            yield int(seq), words
        for seq, reflection in self.reflections(sorted(missing)):
            yield seq, _distinct(embed.told(reflection))

    def _of(self, statement: str, seqs: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(seqs), 500):
            part = seqs[start : start + 500]
            yield from self._database.execute(statement.format(", ".join("?" * len(part))), *part)

    def entry(self, id: str) -> Entry:
        """Return the entry of an id, or of a prefix of it. Raises UsageError if there is none or there are several."""
        found = self._database.execute(f"SELECT {_ENTRY} FROM reflections WHERE id = ?", id) or self._database.execute(
            f"SELECT {_ENTRY} FROM reflections WHERE substr(id, 1, ?) = ? ORDER BY seq LIMIT 2", len(id), id
        )
        if len(found) != 1:
            raise UsageError(f"{'no' if not found else 'more than one'} reflection has the id {id}: `exact list memory MEMORY` names them")
        return _entry(found[0])

    def entries(self, status: Status | None, kind: Kind | None, task: str, limit: int) -> list[Entry]:
        """Return entries, newest first. `task` is a pattern with `*`, or empty."""
        where = ["1 = 1"] + ["status = ?"] * (status is not None) + ["kind = ?"] * (kind is not None)
        where += ["task LIKE ? ESCAPE '!'"] * bool(task)
        pattern = task.replace("!", "!!").replace("%", "!%").replace("_", "!_").replace("*", "%")
        arguments = [each for each in (status, kind, pattern or None) if each is not None]
        cut = f" LIMIT {int(limit)}" if limit >= 0 else ""
        statement = f"SELECT {_ENTRY} FROM reflections WHERE {' AND '.join(where)} ORDER BY seq DESC{cut}"
        return [_entry(row) for row in self._database.execute(statement, *arguments)]

    def numbered(self, seqs: Sequence[int]) -> list[Entry]:
        """Return those of some numbers, in that order."""
        return [_entry(row) for seq in seqs for row in self._database.execute(f"SELECT {_ENTRY} FROM reflections WHERE seq = ?", seq)]


def _distinct(told: str) -> str:
    """Return the distinct words of a text, split by spaces."""
    return " ".join(sorted(vocabulary(told)))


def _entry(row: tuple[Any, ...]) -> Entry:
    seq, record, status, note, born, retrieved, helped, hurt = row
    try:
        reflection = _decoded(seq, record)
    except Damaged as error:
        raise InfrastructureError(f"{error}; restore the memory from a copy") from error
    return Entry(
        seq=seq, reflection=reflection, status=status, note=note, born=born, retrieved=retrieved, helped=helped, hurt=hurt
    )  # fmt: skip


def _decoded(seq: int, record: str) -> Reflection:
    try:
        return msgspec.json.decode(record, type=Reflection)
    except msgspec.DecodeError as error:
        raise Damaged(f"reflection {seq} cannot be read: {error}") from error
