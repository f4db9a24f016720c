"""Files that are written line by line and appear only when they are whole."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from exact.runs.journal.store import write_whole


class LineWriter:
    """Writes lines of JSON to a temporary file beside the named one, which it replaces on `commit`.

    A with block that is left without a commit, by an error or by Ctrl-C, leaves no file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.lines, self.bytes = path, 0, 0
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._hash = hashlib.sha256()
        self._seen = set[bytes]()
        self._pictures = set[str]()

    def __enter__(self) -> Self:
        self._file = self._part.open("wb")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)

    def is_new(self, *content: Any) -> bool:
        """Return whether no equal content was seen before. 16 bytes a line are remembered."""
        digest = hashlib.blake2b(msgspec.json.encode(content), digest_size=16).digest()
        if digest in self._seen:
            return False
        self._seen.add(digest)
        return True

    def write(self, line: dict[str, Any]) -> None:
        """Append one line."""
        data = msgspec.json.encode(line) + b"\n"
        self._file.write(data)
        self._hash.update(data)
        self.lines, self.bytes = self.lines + 1, self.bytes + len(data)

    def store(self, name: str, data: bytes) -> None:
        """Store a picture below the folder of the export, once. Its name is that of its content."""
        if name not in self._pictures:
            path = self.path.parent / name
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                write_whole(path, data)
            self._pictures.add(name)

    def commit(self) -> str:
        """Put the file in its place and return the hex SHA-256 of its content."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._part.replace(self.path)
        return self._hash.hexdigest()

    @property
    def pictures(self) -> int:
        """Pictures that the lines name."""
        return len(self._pictures)
