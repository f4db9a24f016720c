"""Root file systems of environments: folders, or container images as `docker save` and others write them.

Unpacks untrusted archives of root file systems, layer by layer, and writes nothing outside their target folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from exact.errors import EnvironmentFailure

LIMIT = 64 << 30
"""Largest unpacked size of an image, in bytes."""


def root_folder(path: Path, *, cache: Path | None = None, limit: int = LIMIT) -> Path:
    """Return the folder of a root file system: the path itself, or an archive unpacked into a cache.

    An archive is an OCI image layout, the output of `docker save`, or a plain root file system (`docker export`). It is unpacked once for
    each version of the archive. `cache`: by default the user's. `limit`: largest unpacked size in bytes. Raises EnvironmentFailure if the
    path is none of these, is damaged, or is too large.
    """
    if path.is_dir():
        return path.resolve()
    try:
        found = path.stat()
    except OSError as error:
        raise EnvironmentFailure(f"sandbox.root {path} cannot be read: {error.strerror}") from error
    version = f"{path.resolve()} {found.st_size} {found.st_mtime_ns}"
    parent = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exact" / "roots"
    target = parent / hashlib.blake2b(version.encode(), digest_size=16).hexdigest()
    if not target.is_dir():
        _unpack(path, target, limit)
    return target


def make_mount_point(root: Path, target: str, source: Path) -> None:
    """Create an empty folder or file as a mount point in a root, unless it exists. Raises EnvironmentFailure."""
    try:
        path = resolve_inside(root, target)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            path.mkdir()
        else:
            path.touch()
    except (OSError, ValueError) as error:
        raise EnvironmentFailure(
            f"{source} cannot be mounted at {target} in {root}: {error}: create an empty folder or file for it there"
        ) from error


def _unpack(path: Path, target: Path, limit: int) -> None:
    """Unpack an archive atomically. Raises EnvironmentFailure."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target.parent))
    try:
        with open_archive(path) as outer:
            unpacking = LayerUnpacker(work, limit)
            layers = _layers(outer)
            if layers is None:
                unpacking.add(outer, str(path))
            for name in layers or ():
                with _inner(outer, name) as file, _tar(file, name) as layer:
                    unpacking.add(layer, f"{path}: {name}")
        work.chmod(0o755)
        with contextlib.suppress(OSError):  # another process was faster
            work.rename(target)
    except (OSError, tarfile.TarError) as error:
        raise EnvironmentFailure(f"{path} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _layers(outer: tarfile.TarFile) -> list[str] | None:
    """Return the names of an image's layers in the archive, lowest first. None if it is not an image."""
    names = set(outer.getnames())
    try:
        if "index.json" in names and "oci-layout" in names:
            return [_blob(layer) for layer in _manifest(outer, _json(outer, "index.json"))["layers"]]
        if "manifest.json" in names:
            return [str(name) for name in _json(outer, "manifest.json")[0]["Layers"]]
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise EnvironmentFailure(f"{outer.name!r} is not an image in a known format: {type(error).__name__}: {error}") from error
    return None


def _manifest(outer: tarfile.TarFile, index: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest for this machine's architecture if an index has several, else the first. Indexes may nest."""
    ours = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    entries = index["manifests"]
    fit = [each for each in entries if each.get("platform", {}).get("architecture", ours) == ours]
    found: dict[str, Any] = _json(outer, _blob((fit or entries)[0]))
    return _manifest(outer, found) if "manifests" in found else found


def _blob(descriptor: dict[str, Any]) -> str:
    kind, _, digest = descriptor["digest"].partition(":")
    return f"blobs/{kind}/{digest}"


def _json(outer: tarfile.TarFile, name: str) -> Any:
    with _inner(outer, name) as file:
        return json.load(file)


def _inner(outer: tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        file = outer.extractfile(name)
    except KeyError as error:
        raise EnvironmentFailure(f"{outer.name!r} lacks {name}: fetch the image again") from error
    if file is None:
        raise EnvironmentFailure(f"{outer.name!r}: {name} is not a file")
    kind, _, digest = name.removeprefix("blobs/").partition("/")
    if name.startswith("blobs/") and kind == "sha256":
        found = hashlib.sha256()
        while data := file.read(1 << 20):
            found.update(data)
        if found.hexdigest() != digest:
            raise EnvironmentFailure(f"{outer.name!r}: {name} does not match its digest: fetch the image again")
        file.seek(0)
    return file


def _tar(file: IO[bytes], name: str) -> tarfile.TarFile:
    try:
        return tarfile.open(name, fileobj=file)
    except (tarfile.TarError, EOFError) as error:
        raise EnvironmentFailure(f"layer {name} cannot be read: {error} (gzip, bzip2, xz and plain are understood)") from error


WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
"""Prefixes with which a layer deletes a name, or all previous contents of a folder (OCI image specification)."""
_MAX_LINKS = 40
"""Largest number of symbolic links on one path, as in Linux."""


class LayerUnpacker:
    """Unpacks the layers of one root file system over each other. No other process may write to the folder meanwhile."""

    def __init__(self, root: Path, limit: int) -> None:
        """Create an unpacker.

        `limit`: largest number of bytes written, because a small archive can unpack to a large size. At most `limit / 1024` files.
        """
        self._root, self._left, self._files = root, limit, limit >> 10

    def add(self, layer: tarfile.TarFile, name: str) -> None:
        """Unpack one layer. Devices, sockets, set-user-id bits and, unless we are root, owners are omitted.

        `name`: name of the layer in messages. Raises EnvironmentFailure if it is damaged or too large.
        """
        try:
            for member in layer:
                self._add(layer, member)
        except (tarfile.TarError, EOFError, OSError, ValueError) as error:
            raise EnvironmentFailure(f"{name} cannot be unpacked: {error}") from error

    def _add(self, layer: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = resolve_inside(self._root, str(PurePosixPath(member.name).parent))
        name = PurePosixPath(member.name).name
        self._files -= 1
        if self._files < 0:
            raise ValueError("it has too many files")
        if name in ("", ".."):
            return
        path.mkdir(parents=True, exist_ok=True)
        if name.startswith(WHITEOUT):
            for gone in path.iterdir() if name == OPAQUE else [path / name.removeprefix(WHITEOUT)]:
                _remove(gone)
            return
        self._extract(layer, member, path / name)

    def _extract(self, layer: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
        if member.isdir():
            if path.is_symlink() or not path.is_dir():
                _remove(path)
                path.mkdir()
            path.chmod(member.mode & 0o777 | 0o700)
        elif member.issym():
            _remove(path)
            path.symlink_to(member.linkname)
        elif member.islnk():
            source = resolve_inside(self._root, str(PurePosixPath(member.linkname).parent)) / PurePosixPath(member.linkname).name
            if source != path:
                _remove(path)
                os.link(source, path, follow_symlinks=False)
            return
        elif member.isreg():
            self._write(layer, member, path)
        else:
            return
        if os.geteuid() == 0:
            os.lchown(path, member.uid, member.gid)

    def _write(self, layer: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
        self._left -= member.size
        if self._left < 0:
            raise ValueError("it unpacks to too many bytes")
        source = layer.extractfile(member)
        assert source is not None
        _remove(path)
        with source, path.open("xb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        path.chmod(member.mode & 0o777 | 0o600)


def resolve_inside(root: Path, name: str) -> Path:
    """Resolve a path in a root, following symbolic links as if the root were `/`. Raises ValueError for too many links."""
    here, left, links = root, list(reversed(PurePosixPath(name).parts)), 0
    while left:
        part = left.pop()
        if part in ("/", "."):
            here = root if part == "/" else here
        elif part == "..":
            here = here.parent if here != root else here
        elif (here / part).is_symlink():
            links += 1
            if links > _MAX_LINKS:
                raise ValueError(f"{name!r} has too many symbolic links")
            left.extend(reversed(PurePosixPath((here / part).readlink().as_posix()).parts))
        else:
            here /= part
    return here


def _remove(path: Path) -> None:
    """Delete a file, folder or link, if it exists. Links are not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[tarfile.TarFile]:
    """Open an archive, compressed or not. Raises EnvironmentFailure if it is not one."""
    try:
        opened = tarfile.open(path)  # noqa: SIM115 - closed below
    except (OSError, tarfile.TarError, EOFError) as error:
        raise EnvironmentFailure(f"{path} is not a tar archive: {error}") from error
    with opened:
        yield opened
