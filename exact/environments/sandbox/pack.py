"""Packs images: pages of a base image are referenced, the rest is compressed. As a script: `pack.py FOLDER [BASE]`.

The images of one sandbox's forks differ in few pages of 4 KiB: those of a browser differ in about a quarter from the image before the
first episode. A file F becomes F.packed: a header (magic, size and BLAKE2b digest of F, bytes of the index), the compressed index, and the
compressed pages that BASE/F lacks. The index has a number for each page of F. Numbers below the page count of BASE/F reference its pages;
the others count the new pages. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

PAGE = 4096
FILES = ("pages.img", "checkpoint.img")
"""Files of an image that are packed; the others are small."""
_MAGIC = b"exactpk1"
_HEAD = struct.Struct("<8sQ16sI")
_LEVEL = 1
"""Compression level of zlib. Level 6 takes twice as long for 10 percent less."""


def pack(folder: Path, base: Path | None) -> None:
    """Replace the files of an image by packed ones, each atomically. Raises OSError if the disk is full."""
    for name in FILES:
        if (folder / name).is_file():
            partial = folder / f"{name}.partial"
            try:
                _write(folder / name, partial, base / name if base else None)
                partial.rename(folder / f"{name}.packed")
            finally:
                partial.unlink(missing_ok=True)
            (folder / name).unlink()


def unpack(folder: Path, base: Path | None) -> None:
    """Restore the files of an image. Raises OSError if the disk is full, and ValueError if it is damaged; it then stays packed."""
    for name in FILES:
        if (packed := folder / f"{name}.packed").is_file():
            partial = folder / f"{name}.partial"
            try:
                _read(packed, partial, base / name if base else None)
                partial.rename(folder / name)
            finally:
                partial.unlink(missing_ok=True)
            packed.unlink()


def _write(source: Path, target: Path, base: Path | None) -> None:
    known, index, whole, fresh = dict[bytes, int](), array("I"), _digest(), zlib.compressobj(_LEVEL)
    for number, page in enumerate(_pages(base)):
        known[_digest(page).digest()] = number
    count = _count(base)
    with target.open("wb") as file:
        packed = bytearray()
        for page in _pages(source):
            whole.update(page)
            if (digest := _digest(page).digest()) not in known:
                known[digest], count = count, count + 1
                packed += fresh.compress(page)
            index.append(known[digest])
        packed_index = zlib.compress(index.tobytes(), _LEVEL)
        file.write(_HEAD.pack(_MAGIC, source.stat().st_size, whole.digest(), len(packed_index)) + packed_index + packed + fresh.flush())


def _read(packed: Path, target: Path, base: Path | None) -> None:
    data = packed.read_bytes()
    try:
        magic, size, digest, length = _HEAD.unpack_from(data)
        index = array("I", zlib.decompress(data[_HEAD.size : _HEAD.size + length]))
        fresh, known, count = memoryview(zlib.decompress(data[_HEAD.size + length :])), memoryview(_content(base)), _count(base)
    except (struct.error, zlib.error) as error:
        raise ValueError(f"{packed} is damaged: {error}") from error
    whole = _digest()
    with target.open("wb") as file:
        for first, last in _runs(index, count):
            pages, shift = (fresh, count) if first >= count else (known, 0)
            run = pages[(first - shift) * PAGE : (last - shift) * PAGE]
            whole.update(run)
            file.write(run)
    if magic != _MAGIC or whole.digest() != digest or target.stat().st_size != size:
        raise ValueError(f"{packed} is damaged: it does not unpack to what was packed")


def _runs(index: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """Yield runs of consecutive numbers as (first, last + 1). No run crosses `count`."""
    begin = 0
    for at in range(1, len(index) + 1):
        if at == len(index) or index[at] != index[at - 1] + 1 or index[at] == count:
            yield index[begin], index[at - 1] + 1
            begin = at


def _pages(path: Path | None) -> Iterator[bytes]:
    """Yield the pages of a file. The last one may be shorter."""
    if path is not None and path.is_file():
        with path.open("rb") as file:
            while page := file.read(PAGE):
                yield page


def _content(path: Path | None) -> bytes:
    return path.read_bytes() if path is not None and path.is_file() else b""


def _count(path: Path | None) -> int:
    """Return the number of pages of a file, a shorter last one included."""
    return -(-path.stat().st_size // PAGE) if path is not None and path.is_file() else 0


def _digest(data: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(data, digest_size=16)


def main() -> None:
    os.nice(10)
    folder, *base = (Path(each) for each in sys.argv[1:])
    pack(folder, base[0] if base else None)


if __name__ == "__main__":
    main()
