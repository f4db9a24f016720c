"""Files that a service of the user's application needs although the sandbox hides home directories and temporary files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from exact.environments.sandbox.bundle import is_masked
from exact.environments.sandbox.host import masked_folders
from exact.environments.sandbox.service import Service

_PATH = re.compile(r"(?:(?<=[=:,;@\s\"'])|^)/*((?:~|\.\.)?/[^\s:,;\"'?&=]+)")
"""A path in an argument or a variable, also as an option's value and in the address of a database."""

_MAX_LINKS = 40


def visible_files(service: Service, *, own_root: bool = False) -> tuple[Path, ...]:
    """Return the hidden files and folders of this machine that a service sees and may change in the sandbox's memory.

    These are its working folder, its `reads`, its program, and the paths that its command and its variables name. A file is seen with the
    folder that it lies in, for files beside a database, unless that is a home directory or a hidden folder (`.ssh`).

    `own_root`: the service has another root, in which it sees only its `reads`.
    """
    folder = Path(service.folder)
    if own_root:
        return tuple(map(Path, service.reads))
    found = [folder, *map(Path, service.reads), *_program(service, folder)]
    for text in (*service.command[1:], *service.env.values()):
        found += [place for path in _named(text, folder) for place in _with_folder(path)]
    return tuple(dict.fromkeys(path for path in found if path != Path("/") and is_masked(path.absolute())))


def hidden_links(paths: Iterable[Path]) -> dict[str, str]:
    """Return the symbolic links on the way to visible files that the sandbox hides, with the paths that they lead to."""
    found = {}
    for path in map(Path.absolute, paths):
        for part in (*reversed(path.parents), path):
            if part.is_symlink() and is_masked(part):
                found[str(part)] = str(part.resolve())
                break
    return found


def _named(text: str, folder: Path) -> Iterator[Path]:
    """Yield the paths that a text names, absolute ones."""
    whole = Path(text).expanduser() if text.startswith(("/", "~/")) else None
    if whole and whole.exists():
        yield whole
        return
    for found in _PATH.finditer(text):
        name = found[1]
        yield Path(name).expanduser() if name.startswith("~") else Path(folder, name).resolve() if name.startswith("..") else Path(name)


def _with_folder(path: Path) -> Iterable[Path]:
    """Return the paths shown for a named path: the folder itself, or the folder of a file, which may not exist yet."""
    if path.is_dir():
        return () if _holds_home(path) else (path,)
    folder = path.parent
    if folder.is_dir() and not _holds_home(folder) and not any(part.startswith(".") for part in folder.parts):
        return (folder,)
    return (path,) if path.exists() else ()


def _holds_home(folder: Path) -> bool:
    """Return whether a folder is or holds a home directory or a folder of temporary files."""
    folder = folder.resolve()
    return folder.parent == Path("/home") or any(Path(masked).is_relative_to(folder) for masked in masked_folders())


def _program(service: Service, folder: Path) -> Iterator[Path]:
    """Yield the program and its link's target, each with the libraries beside it."""
    name = service.command[0] if service.command else ""
    found = shutil.which(name, path=service.env.get("PATH")) if "/" not in name else str(folder / Path(name).expanduser())
    path = Path(found or "/")
    for _ in range(_MAX_LINKS):
        prefix = path.parent.parent
        yield path
        if path.parent.name == "shims" or (prefix / "pyvenv.cfg").is_file():
            yield prefix  # of a version manager, or of a virtual environment
        elif path.parent.name == "bin" and not _holds_home(prefix):
            yield from (each for each in (prefix / "lib", prefix / "lib64") if each.is_dir())
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()
