"""Unpacks untrusted archives of root file systems, layer by layer, and writes nothing outside their target folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from exact.errors import EnvironmentFailure

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
