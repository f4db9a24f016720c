"""Records of bench/when_search_helps.py, and what they say: tables, figures and the plot."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import TypeVar

import _common
import msgspec

FOLDER = _common.ROOT / "bench" / "results" / "when_search_helps"

Record = TypeVar("Record", bound=msgspec.Struct)


def write(name: str, records: Sequence[msgspec.Struct]) -> None:
    """Write the records of one name."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = b"".join(msgspec.json.encode(each) + b"\n" for each in records)
    (FOLDER / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines, mtime=0))


def read(name: str, kind: type[Record]) -> list[Record]:
    """Return the records of one name."""
    return [msgspec.json.decode(line, type=kind) for line in gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes()).splitlines()]
