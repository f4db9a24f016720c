"""Unpack what came from elsewhere: archives of root file systems, layer by layer, and nothing outside the folder they go to."""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from exact.errors import EnvironmentFailure

WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
"""How a layer says that a name, or all there was in a folder, is gone."""
_LINKS = 40
"""Symbolic links on one path, as Linux has it."""


class Unpacking:
    """Layers of one root file system, unpacked one over the other. Not for a folder that others write to meanwhile."""

    def __init__(self, root: Path, limit: int) -> None:
        """`limit`: bytes and, in KiB of them, files that may be written at most; for a small archive can unpack to very much."""
        self._root, self._left, self._files = root, limit, limit >> 10

    def add(self, layer: tarfile.TarFile, name: str) -> None:
        """`name`: for messages. Devices, sockets, set-user-id bits and, unless we are root, owners are left out.

        Raises EnvironmentFailure where it is damaged, or does not fit.
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
        self._place(layer, member, path / name)

    def _place(self, layer: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
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
    """Where a path lies in a root, its symbolic links followed as they would be with that as `/`. Raises ValueError."""
    here, left, links = root, list(reversed(PurePosixPath(name).parts)), 0
    while left:
        part = left.pop()
        if part in ("/", "."):
            here = root if part == "/" else here
        elif part == "..":
            here = here.parent if here != root else here
        elif (here / part).is_symlink():
            links += 1
            if links > _LINKS:
                raise ValueError(f"{name!r} has too many symbolic links")
            left.extend(reversed(PurePosixPath((here / part).readlink().as_posix()).parts))
        else:
            here /= part
    return here


def _remove(path: Path) -> None:
    """Whatever is there, if anything; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[tarfile.TarFile]:
    """An archive, compressed or not. Raises EnvironmentFailure where it is none."""
    try:
        opened = tarfile.open(path)  # noqa: SIM115 - closed below
    except (OSError, tarfile.TarError, EOFError) as error:
        raise EnvironmentFailure(f"{path} is no tar archive: {error}") from error
    with opened:
        yield opened
