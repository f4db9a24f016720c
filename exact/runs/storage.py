"""Run folders on storage that fsspec reaches, such as s3://bucket/run: a local copy is worked on, and what changes in it is copied back.

Who writes a folder on storage: a file in it, renewed while a process writes.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from exact.errors import JournalError, UsageError
from exact.machine import try_lock

INTERVAL = 10.0
"""Seconds between two copies of what changed."""
_TOKEN, _LOCK = ".token", ".lock"
_BUCKETS = frozenset({"abfs", "abfss", "az", "gcs", "gs", "oss", "s3", "s3a"})
"""Protocols without folders. To make one there would make a bucket."""
_BLOBS, _DATABASES = "blobs", (".sqlite",)


@contextmanager
def stored_folder(url: str, *, write: bool, interval: float = INTERVAL) -> Iterator[Path]:
    """Yield a local copy of the folder at an address. With `write`, changes are copied back every `interval` seconds and at the end.

    The copy is removed at the end. After a kill it stays, and the next call with `write` on this machine goes on with it, unless another
    machine has written the folder since. One process at a time writes a folder.

    Raises UsageError for an address that cannot be opened and for a folder that another process writes, JournalError where the storage
    does not answer.
    """
    storage = _Storage.open(url)
    if not write:
        with tempfile.TemporaryDirectory(prefix="exact-stored-") as folder:
            copy = Path(folder) / storage.name
            storage.fetch(copy)
            if (written := storage.get(OWNER)) is not None:  # `exact show --progress` asks who writes
                (copy / OWNER).write_bytes(written)
            yield copy
        return
    home = _home(url)
    with _locked(home, url):
        copy, token = home / storage.name, home / _TOKEN
        owner = Owner(storage.get, storage.put, url, place=f"{socket.gethostname()}:{home}")
        if not (copy.is_dir() and token.exists() and token.read_text() == owner.last):
            shutil.rmtree(copy, ignore_errors=True)
            storage.fetch(copy)
        token.write_text(owner.take())
        with _kept(_Copier(storage, copy), owner, interval):
            yield copy
        shutil.rmtree(home)


@contextmanager
def _locked(home: Path, url: str) -> Iterator[None]:
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (home / _LOCK).open("ab") as lock:
        if not try_lock(lock.fileno()):
            raise UsageError(f"{url} is being written by another process of this machine: wait for it, or end it")
        yield


def _home(url: str) -> Path:
    """Return the folder of the local copy of an address."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "exact" / "stored" / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]


class _Storage(NamedTuple):
    """A folder on storage. Each method raises JournalError where the storage does not answer."""

    system: Any
    root: str
    url: str

    @classmethod
    def open(cls, url: str) -> _Storage:
        try:
            import fsspec
        except ImportError:
            raise UsageError(f"{url} needs fsspec: pip install 'exact-agent[storage]', and for s3:// s3fs") from None
        try:
            system, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise UsageError(f"cannot open {url}: {' '.join(str(error).split())}") from error
        return cls(system, root.rstrip("/"), url.rstrip("/"))

    @property
    def name(self) -> str:
        return self.root.rpartition("/")[2] or "run"

    def names(self) -> list[str]:
        """Return the names of all files in the folder, relative to it. None where there is no folder."""
        with self._told("read"):
            try:
                found = self.system.find(self.root, detail=True)
            except FileNotFoundError:
                return []
        for path, info in found.items():
            if info["type"] != "file" or info.get("islink"):
                raise JournalError(f"{self.url} holds {path[len(self.root) + 1 :]!r}, which is a link or no file: remove it there")
        return [path[len(self.root) + 1 :] for path in found if path.startswith(f"{self.root}/")]

    def get(self, name: str) -> bytes | None:
        """Return the content of a file; None where it is absent."""
        with self._told("read"):
            try:
                data: bytes = self.system.cat_file(f"{self.root}/{name}")
            except FileNotFoundError:
                return None
            return data

    def put(self, name: str, data: bytes | None) -> None:
        """Write a whole file, or remove it."""
        path = f"{self.root}/{name}"
        with self._told("write"):
            if data is not None:
                if not _BUCKETS.intersection([self.system.protocol] if isinstance(self.system.protocol, str) else self.system.protocol):
                    self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
                self.system.pipe_file(path, data)
            elif self.system.exists(path):
                self.system.rm_file(path)

    def fetch(self, folder: Path) -> None:
        """Copy the folder to this machine. Names that lead out of it are refused."""
        folder.mkdir(parents=True)
        for name in self.names():
            if name == OWNER:
                continue
            path = folder / name
            if not path.resolve().is_relative_to(folder.resolve()):
                raise JournalError(f"{self.url} holds {name!r}, which leads out of the folder: remove it there")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.get(name) or b"")

    @contextmanager
    def _told(self, done: str) -> Iterator[None]:
        """Raise JournalError for whatever a storage raises: their libraries have no common type."""
        try:
            yield
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            raise JournalError(
                f"cannot {done} {self.url}: {type(error).__name__}: {text}: check its address and the credentials in the environment"
            ) from error


class _Copier:
    """Copies what changed in a local folder since the last time."""

    def __init__(self, storage: _Storage, folder: Path) -> None:
        self._storage, self._folder = storage, folder
        self._copied = dict[str, tuple[int, int]]()
        """Time and size of what was copied, by name."""

    def copy(self) -> None:
        """Copy what changed. Raises JournalError.

        Journals are read before the blobs are copied, and written after them: whatever a journal on the storage names is there.
        """
        found = {str(path.relative_to(self._folder)): path for path in self._folder.rglob("*") if path.is_file() and _is_kept(path)}
        changed = {name: state for name, path in found.items() if (state := _state(path)) and self._copied.get(name) != state}
        read = {name: _content(found[name]) for name in changed if not _is_blob(name)}
        for name in sorted(changed, key=lambda name: (not _is_blob(name), name)):
            data = read[name] if name in read else _content(found[name])
            if data is not None:
                self._storage.put(name, data)
                self._copied[name] = changed[name]
        for name in self._copied.keys() - found.keys():
            self._storage.put(name, None)
            del self._copied[name]


def _is_blob(name: str) -> bool:
    return _BLOBS in Path(name).parts


def _is_kept(path: Path) -> bool:
    """Return whether a file belongs to the run: no part of a file that is being written, no journal of a database."""
    return not path.is_symlink() and not path.name.endswith((".part", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal", ".lock"))


def _state(path: Path) -> tuple[int, int] | None:
    """Return the time and size of a file; None where it is gone. Those of a database include the changes beside it."""
    files = [path, path.with_name(f"{path.name}-wal")] if path.suffix in _DATABASES else [path]
    found = [each.stat() for each in files if each.exists()]
    return (max(each.st_mtime_ns for each in found), sum(each.st_size for each in found)) if found else None


def _content(path: Path) -> bytes | None:
    """Return the content of a file, of a database as of one moment; None where it is gone."""
    with suppress(FileNotFoundError):
        if path.suffix not in _DATABASES:
            return path.read_bytes()
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            return database.serialize()
    return None


@contextmanager
def _kept(copier: _Copier, owner: Owner, interval: float) -> Iterator[None]:
    """Copy what changes while the block runs, and at its end. What cannot be copied meanwhile is tried again."""
    ended = threading.Event()

    def copy() -> None:
        owner.renew()
        copier.copy()

    def work() -> None:
        while not ended.wait(interval):
            with suppress(JournalError):
                copy()

    thread = threading.Thread(target=work, name="stored folder", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        try:
            copy()
            owner.release()
        except JournalError as error:
            raise JournalError(f"{error}; what was written is kept on this machine, and the same command with --resume goes on") from error


OWNER = "writer.json"
STALE = 60.0
"""Seconds without a renewal after which a writer counts as gone."""


class _Entry(msgspec.Struct, frozen=True):
    token: str
    place: str
    """Machine and folder of the writer's local copy."""
    process: int
    renewed: float
    """Seconds since the epoch, by the writer's clock."""
    ended: bool = False


class Owner:
    """The claim of this process to write a folder."""

    def __init__(self, get: Callable[[str], bytes | None], put: Callable[[str, bytes | None], None], url: str, *, place: str) -> None:
        """Read who wrote the folder last. Raises JournalError where the storage does not answer."""
        self._get, self._put, self._url, self._place = get, put, url, place
        self._last, self._token = self._read(), secrets.token_hex(8)

    @property
    def last(self) -> str:
        """Token of the last writer; empty where there was none."""
        return self._last.token if self._last else ""

    def take(self) -> str:
        """Become the writer and return the token. Raises UsageError where a process elsewhere is one, JournalError.

        Two processes of one place are kept apart by a lock there.
        """
        last = self._last
        if last and not last.ended and last.place != self._place and (age := time.time() - last.renewed) < STALE:
            raise UsageError(
                f"{self._url} is being written by process {last.process} of {last.place.partition(':')[0]}: end it, and try again in "
                f"{STALE - age:.0f} s"
            )
        self._write()
        return self._token

    def renew(self) -> None:
        """Say that this process still writes. Raises JournalError, also where another process became the writer."""
        found = self._read()
        if found is not None and found.token != self._token:
            raise JournalError(f"{self._url} was taken over by process {found.process} of {found.place.partition(':')[0]}")
        self._write()

    def release(self) -> None:
        """Say that this process has ended. Raises JournalError."""
        self._write(ended=True)

    def _read(self) -> _Entry | None:
        data = self._get(OWNER)
        try:
            return None if data is None else msgspec.json.decode(data, type=_Entry)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _write(self, *, ended: bool = False) -> None:
        entry = _Entry(self._token, self._place, os.getpid(), time.time(), ended)
        self._put(OWNER, msgspec.json.encode(entry))


def is_written_elsewhere(copy: Path) -> bool:
    """Return whether a process writes the folder on storage that this is a copy of, by the clock of this machine."""
    try:
        entry = msgspec.json.decode((copy / OWNER).read_bytes(), type=_Entry)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return not entry.ended and time.time() - entry.renewed < STALE
