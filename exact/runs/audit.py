"""Audit of a run folder: places in all its files at which a secret stands that is known, or something that has the shape of one."""

from __future__ import annotations

import bisect
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from exact.runs.folder_check import files_of
from exact.secrecy import Scrubber
from exact.secrecy.shapes import shapes

_CHUNK, _OVERLAP = 4 << 20, 1 << 16
"""Bytes that are looked at together, and those that are looked at twice."""
_JSON = 8 << 20
"""Bytes of the largest line whose fields are looked at together."""
_UNPACKED = 512 << 20
"""Most bytes of a zip that are unpacked."""
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8")
_MOST = 50
"""Places that are reported for one file."""


class Place(NamedTuple):
    """A place at which a secret stands. The secret itself is not part of it."""

    file: str
    """Path below the run folder; `a.zip!b` for a file in a zip."""
    line: int
    """Number of the line, from 1."""
    what: str
    """Name of the known secret, or the shape."""
    known: bool
    """Whether it is a secret that is known."""


def audit(folder: Path, scrubber: Scrubber) -> Iterator[Place]:
    """Yield the places at which secrets stand in a run folder, in the order of its files.

    Raises UsageError for what is no file of a run.
    """
    for path, _ in sorted(files_of(folder)):
        found = sorted(set(_in_file(path, path.relative_to(folder).as_posix(), scrubber)), key=lambda place: (place.file, place.line))
        yield from found[:_MOST]


def _in_file(path: Path, name: str, scrubber: Scrubber) -> Iterator[Place]:
    yield from _in_text(name, name, scrubber)
    with path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        if start.startswith(b"PK\x03\x04"):
            yield from _in_zip(file, name, scrubber)
            return
        if start.startswith(_PICTURES) or path.suffix == ".png":
            data = file.read()
            yield from _in_text(_text_of(data), name, scrubber, lines=False)
            yield from _in_text("\n".join(_texts_of(data)), name, scrubber, lines=False)
            return
        before, line = b"", 1
        while chunk := file.read(_CHUNK):
            data = before + chunk
            yield from _in_text(_text_of(data), name, scrubber, line=line)
            before = data[-_OVERLAP:]
            line += data.count(b"\n") - before.count(b"\n")
    if path.suffix in (".jsonl", ".json") or "blobs" in path.parts:
        yield from _in_fields(path, name, scrubber)


def _in_text(text: str, name: str, scrubber: Scrubber, *, line: int = 1, lines: bool = True) -> Iterator[Place]:
    found = [(each.start, each.name, True) for each in scrubber.find(text)] + [(each.start, each.what, False) for each in shapes(text)]
    if not found:
        return
    ends = [at for at, letter in enumerate(text) if letter == "\n"] if lines else []
    for at, what, known in found:
        yield Place(name, line + bisect.bisect_left(ends, at), what, known)


def _in_fields(path: Path, name: str, scrubber: Scrubber) -> Iterator[Place]:
    """Yield where a secret is split over several fields of JSON."""
    if not scrubber:
        return
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_JSON):
            number += 1
            if line[:1] not in (b"{", b"["):
                return
            try:
                given = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if scrubber.value(given) is not given:
                yield from (Place(name, number, what, True) for what in sorted(_names_in(scrubber.value(given))))


def _names_in(value: Any) -> set[str]:
    text = json.dumps(value, ensure_ascii=False)
    return {part.partition(">")[0] for part in text.split("<secret:")[1:]} or {"a known secret"}


def _in_zip(file: Any, name: str, scrubber: Scrubber) -> Iterator[Place]:
    try:
        with zipfile.ZipFile(file) as whole:
            left = _UNPACKED
            for entry in whole.infolist():
                with whole.open(entry) as inner:
                    data = inner.read(min(left, _UNPACKED))
                left -= len(data)
                yield from _in_text(_text_of(data), f"{name}!{entry.filename}", scrubber)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError):
        return  # it is no zip that anything opens


def _texts_of(data: bytes) -> list[str]:
    """Return the texts that a picture carries, compressed ones too. A picture that does not open has none."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            return [str(each) for each in (*image.info.items(), *image.getexif().items())]
    except Exception:  # noqa: BLE001 - a decoder of pictures may raise anything for a hostile one, and has told no text then
        return []


def _text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")
