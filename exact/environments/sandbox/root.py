"""The files that an environment sees as `/`: a folder, or an image of a container as `docker save` and others write it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO, Any

from exact.environments.sandbox.unpack import Unpacking, open_archive, resolve_inside
from exact.errors import EnvironmentFailure

LIMIT = 64 << 30
"""Bytes that an image may unpack to."""


def root_folder(path: Path, *, cache: Path | None = None, limit: int = LIMIT) -> Path:
    """The folder itself, or what an archive holds, unpacked once for each version of the archive into the user's cache.

    An archive is an OCI image layout, what `docker save` writes, or a plain root file system (`docker export`).
    Raises EnvironmentFailure where it is none of them, is damaged, or does not fit.
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
    """Make a place in a root where something can be mounted: an empty folder or file, if there is none. Raises EnvironmentFailure."""
    try:
        place = resolve_inside(root, target)
        if place.exists():
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            place.mkdir()
        else:
            place.touch()
    except (OSError, ValueError) as error:
        raise EnvironmentFailure(f"{source} cannot be mounted at {target} in {root}: {error}: make an empty place for it there") from error


def _unpack(path: Path, target: Path, limit: int) -> None:
    """Whole or not at all."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target.parent))
    try:
        with open_archive(path) as outer:
            unpacking = Unpacking(work, limit)
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
    """Names of an image's layers in the archive, lowest first; None where it is no image."""
    names = set(outer.getnames())
    try:
        if "index.json" in names and "oci-layout" in names:
            return [_blob(layer) for layer in _manifest(outer, _json(outer, "index.json"))["layers"]]
        if "manifest.json" in names:
            return [str(name) for name in _json(outer, "manifest.json")[0]["Layers"]]
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise EnvironmentFailure(f"{outer.name!r} is no image that is understood: {type(error).__name__}: {error}") from error
    return None


def _manifest(outer: tarfile.TarFile, index: dict[str, Any]) -> dict[str, Any]:
    """The one for Linux on this machine where an index names several, else the first; indexes may nest."""
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
        raise EnvironmentFailure(f"{outer.name!r} lacks {name}: is it whole?") from error
    if file is None:
        raise EnvironmentFailure(f"{outer.name!r}: {name} is no file")
    kind, _, digest = name.removeprefix("blobs/").partition("/")
    if name.startswith("blobs/") and kind == "sha256":
        found = hashlib.sha256()
        while data := file.read(1 << 20):
            found.update(data)
        if found.hexdigest() != digest:
            raise EnvironmentFailure(f"{outer.name!r}: {name} is not what its name says: fetch the image again")
        file.seek(0)
    return file


def _tar(file: IO[bytes], name: str) -> tarfile.TarFile:
    try:
        return tarfile.open(name, fileobj=file)
    except (tarfile.TarError, EOFError) as error:
        raise EnvironmentFailure(f"layer {name} cannot be read: {error} (gzip, bzip2, xz and plain are understood)") from error
