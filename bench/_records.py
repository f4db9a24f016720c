"""Records of attempts that a bench keeps, and whether they still say what its result says."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from _common import Figure

from exact.runs.journal.store import write_whole

Record = TypeVar("Record", bound=msgspec.Struct)


def write_records(file: Path, records: Sequence[msgspec.Struct]) -> None:
    """Write records, one a line, compressed. A kill meanwhile leaves the earlier ones."""
    write_whole(file, gzip.compress(b"".join(msgspec.json.encode(each) + b"\n" for each in records), mtime=0))


def read_records(file: Path, kind: type[Record]) -> list[Record]:
    """Return the records of a file."""
    return [msgspec.json.decode(line, type=kind) for line in gzip.decompress(file.read_bytes()).splitlines()]


def differing(figures: Sequence[Figure], result: Path) -> list[str]:
    """Return the names of figures that a kept result has otherwise, or lacks."""
    kept = json.loads(result.read_text())["figures"]
    return [each.name for each in figures if each.name not in kept or round(each.value, 4) != kept[each.name]["value"]]


def conclude(wrong: Sequence[str], attempts: int) -> int:
    """Print whether the figures and so many attempts match the records. Return the exit code."""
    print("\n" + ("the records do not match: " + "; ".join(wrong) if wrong else f"the figures and {attempts} attempts match the records"))
    return int(bool(wrong))
