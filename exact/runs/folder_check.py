"""Run folders of strangers: what no run folder of ours holds is refused before anything is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from exact.errors import UsageError

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)
MOST = {
    "signature": 4096,
    "config.yaml": 4 << 20,
    "run.json": 128 << 20,
    "bench.json": 128 << 20,
    "rounds.json": 64 << 20,
    "results.jsonl": 256 << 20,
}
"""Most bytes of files by name."""
MOST_BLOB, _MOST_JOURNAL = 256 << 20, 256 << 20
"""Bytes of the largest blob and journal. A journal takes ten to twenty times as much memory once it is read: 2 MB hold 1,500 states."""
MOST_LINE = 16 << 20
"""Bytes of the longest line of a journal, of results and of the like."""
_DEEPEST, _MOST_FILES = 12, 4_000_000
"""Most folders in each other; most files."""


def files_of(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files of a run folder with their sizes in bytes, without following links.

    Raises UsageError for anything that is no regular file, for a file larger than any of ours, and for too many or too deep folders.
    """
    waiting, count = [(str(folder), 0)], 0
    while waiting:
        here, depth = waiting.pop()
        if depth > _DEEPEST:
            raise UsageError(f"{here} lies too deep for a run folder: use a folder that `exact run` wrote")
        try:
            with os.scandir(here) as entries:
                for entry in sorted(entries, key=lambda each: each.name):
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # a process that writes the run has renamed it by now
                        continue
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append((entry.path, depth + 1))
                        continue
                    count += 1
                    _check(Path(entry.path), found, count)
                    yield Path(entry.path), found.st_size
        except OSError as error:
            raise UsageError(f"cannot read {here}: {error.strerror}") from error


def memory_file(folder: Path) -> Path:
    """Return the path of a run folder's own memory, which need not exist.

    Raises UsageError where it, or a file that is read with it, is no regular file: it could lead to somebody's other memory.
    """
    for name in ("config.yaml", "memory.sqlite", "memory.sqlite-wal", "memory.sqlite-shm", "memory.sqlite-journal"):
        path = folder / name
        try:
            found = path.lstat()
        except OSError:  # there is none
            continue
        _check(path, found, 1)
    return folder / "memory.sqlite"


def check_folder(folder: Path) -> None:
    """Check all files of a run folder, as `files_of` does. Raises UsageError."""
    for _ in files_of(folder):
        pass


def _check(path: Path, found: os.stat_result, count: int) -> None:
    kind = next((words for is_kind, words in _KINDS if is_kind(found.st_mode)), "")
    if kind:
        raise UsageError(f"{path} is {kind}: a run folder holds regular files only; use a copy without it")
    most = MOST.get(path.name) or (
        _MOST_JOURNAL if path.suffix == ".jsonl" else MOST_BLOB if "blobs" in path.parts or path.suffix == ".png" else 0
    )
    if most and found.st_size > most:
        raise UsageError(f"{path} has {found.st_size:,} bytes, more than any of a run: use a folder that `exact run` wrote")
    if count > _MOST_FILES:
        raise UsageError(f"{path.parent} and others hold more than {_MOST_FILES:,} files: use a folder that `exact run` wrote")
