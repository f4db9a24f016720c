"""Parts that users bring: by entry points of installed packages, and by `module:attribute` or `file.py:attribute` in a configuration.

A configuration that the user writes may name any part. One from a run folder may not, because a stranger may have made it, unless this user
has signed the folder: see `exact.untrusted`.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from exact.errors import ExactError, UsageError, unknown
from exact.parts import described

_ATTRIBUTE = re.compile(r"([\w./-]+\.py|[A-Za-z_][\w.]+):[A-Za-z_]\w*")
_MOST_NAMED = 8
_trusted = set[str]()
"""Names that a configuration of the user's holds, or a run folder that the user signed."""
_recorded = set[str]()
"""Names read from run folders that this user has not signed."""
_needed_soon = dict[str, None]()
"""Modules to import while another process starts, in order."""
_shipped = dict[str, Path]()
"""Files that another machine sent, by the place in a plug-in's name."""


def trust(names: Iterable[str]) -> None:
    """Let this process run the parts that these names stand for."""
    _trusted.update(filter(is_plugin, names))


def distrust(names: Iterable[str]) -> None:
    """Note names that a stranger's run folder holds. They are not run unless they are trusted."""
    _recorded.update(filter(is_plugin, names))


def use_shipped(files: Mapping[str, Path]) -> None:
    """Read the code of plug-ins from these files, by the place in their name `place:attribute`: they came from another machine."""
    _shipped.update(files)


def at_first_use(package: str, **modules: str) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which imports a name from a module of the package when it is first used. `modules`: by name."""

    def named(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return named


def import_later(*modules: str) -> None:
    """Note modules that are needed soon, so that they are imported while this process waits for another one to start."""
    _needed_soon.update(dict.fromkeys(name for name in modules if name not in sys.modules))


async def import_meanwhile() -> None:
    """Import the modules that were noted, one in each turn of the event loop."""
    while _needed_soon:
        name = next(iter(_needed_soon))
        del _needed_soon[name]
        importlib.import_module(name)
        await asyncio.sleep(0)


def is_plugin(kind: str) -> bool:
    """Return whether a name is written as `module:attribute` or `file.py:attribute`."""
    return ":" in kind


def is_attribute(text: str) -> bool:
    """Return whether a text that may also be a path or an address is written as `module:attribute` or `file.py:attribute`."""
    return _ATTRIBUTE.fullmatch(text) is not None


def plugin_in(id: str) -> str:
    """Return the `module:attribute` or `file.py:attribute` with which a task's id or pattern begins. Empty if it begins with none."""
    found = _ATTRIBUTE.match(id)
    return found[0] if found and id[found.end() :][:1] in ("", "/", "?") else ""


def located(kind: str) -> str:
    """Return the name of a plug-in with the absolute path of its file, if it is named by file."""
    place, _, name = kind.rpartition(":")
    return f"{Path(place).absolute()}:{name}" if place.endswith(".py") else kind


def is_registered(name: str, group: str) -> bool:
    """Return whether an installed package registers a name in a group of entry points."""
    return any(entry.name == name for entry in entry_points(group=group))


def check_kind(key: str, kind: str, builtin: Iterable[str], group: str) -> None:
    """Raise ValueError for a kind that is neither built in, nor written as a plug-in, nor registered in a group of entry points."""
    if kind in builtin or is_plugin(kind):
        return
    registered = [entry.name for entry in entry_points(group=group)]
    if kind not in registered:
        text = str(unknown("value", kind, [*builtin, *registered], where=f"configuration key {key}", way_out="or write module:attribute"))
        raise ValueError(text)


def make_plugin(key: str, kind: str, group: str, options: Mapping[str, Any]) -> Any:
    """Return the object that a plug-in makes: its attribute is called with `options` as keywords.

    Args:
        key: The configuration key that named it, for errors.
        kind: `module:attribute`, `file.py:attribute`, or the name of an entry point. A module is also looked for in the current folder.
        group: Group of entry points, such as `exact.policies`.
        options: Keywords.

    Raises UsageError if there is no such attribute, or it cannot be called so.
    """
    made = attribute(key, kind, group)
    try:
        return made(**options)
    except ExactError:
        raise
    except Exception as error:
        given = ", ".join(options) or "none"
        raise UsageError(f"{key}: {kind} cannot be made ({described(error)}): options given: {given}") from error


def attribute(key: str, kind: str, group: str) -> Any:
    """Return the callable that a plug-in's name stands for, as `make_plugin` finds it. Raises UsageError."""
    if not is_plugin(kind):
        for entry in entry_points(group=group):
            if entry.name == kind:
                return entry.load()
        raise UsageError(f"{key}: no installed package registers {kind!r} in the entry points {group}")
    if kind in _recorded and kind not in _trusted:
        raise UsageError(f"{key}: the run names code, {kind}, which is not run unasked: if you trust the run: exact trust RUN")
    place, _, name = kind.rpartition(":")
    module = load_file(key, _shipped.get(place) or Path(place).absolute()) if place.endswith(".py") else _module(key, place)
    if not callable(found := getattr(module, name, None)):
        has = f"it has {', '.join(own[:_MOST_NAMED])}" if (own := _own(module)) else "it has no function or class of its own"
        raise UsageError(f"{key}: {place} has no {name!r}{' that can be called' if hasattr(module, name) else ''}; {has}")
    return found


def _own(module: Any) -> list[str]:
    """Return the names of the functions and classes that a module defines."""
    home = module.__name__
    return [name for name, each in vars(module).items() if callable(each) and getattr(each, "__module__", "") == home and name[0] != "_"]


def _module(key: str, name: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{key}: {name} cannot be imported ({error}): install it, or name a file.py:attribute") from error
    except Exception as error:
        raise UsageError(f"{key}: {name} does not load: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(Path.cwd()))


FILE_MODULE = "exact_plugin_"
"""Beginning of the names of modules that are files."""
_loaded: dict[Path, Any] = {}
"""Modules of files, by path: a file runs once, whichever keys name parts of it."""


def load_file(key: str, path: Path) -> Any:
    """Return the module of a Python file, which runs once. Raises UsageError if there is none, or it does not load."""
    if path in _loaded:
        return _loaded[path]
    if not path.is_file():
        raise UsageError(f"{key}: there is no file {path}")
    name = f"{FILE_MODULE}{hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(f"{key}: {path} does not load: {type(error).__name__}: {error}") from error
    _loaded[path] = module
    return module
