"""Files of this machine that attempts elsewhere need: plug-in modules, prompts, providers, and the files of tasks."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from exact.config import Config
from exact.errors import UsageError
from exact.plugins import is_attribute, is_plugin, use_shipped
from exact.task import Task

MOST = 64 << 20
"""Most bytes of all files together. Larger ones are put on the nodes beforehand."""
_NEVER = {"__pycache__", "node_modules"}


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of files, and what stands for them in configurations and tasks."""

    files: dict[str, bytes] = {}
    """Contents by name, relative to the folder that they are unpacked in."""
    code: dict[str, str] = {}
    """Names of files by the place in a plug-in's `file.py:attribute`."""
    paths: dict[str, str] = {}
    """Names of files and folders by the path that a configuration or a task gives."""

    def unpack(self, folder: Path) -> None:
        """Write the files in a folder, and let plug-ins be found there."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        use_shipped({place: folder / name for place, name in self.code.items()})
        if (modules := folder / "modules").is_dir() and str(modules) not in sys.path:
            sys.path.insert(0, str(modules))

    def config_in(self, folder: Path, config: Config) -> Config:
        """Return a configuration whose paths lead to the files in a folder."""
        models = msgspec.structs.replace(config.models, providers=self._moved(folder, config.models.providers))
        return msgspec.structs.replace(config, prompts=self._moved(folder, config.prompts), models=models)

    def task_in(self, folder: Path, task: Task) -> Task:
        """Return a task whose paths lead to the files in a folder."""
        files, images = (tuple(self._moved(folder, each) for each in paths) for paths in (task.files, task.images))
        return msgspec.structs.replace(task, files=files, images=images)

    def _moved(self, folder: Path, path: str) -> str:
        return str(folder / self.paths[path]) if path in self.paths else path


def collect(configs: Iterable[Config], tasks: Iterable[Task]) -> Shipped:
    """Return what configurations and tasks name of this machine's files. Raises UsageError where they are too large."""
    files, code, paths = dict[str, bytes](), dict[str, str](), dict[str, str]()
    configs, tasks = list(configs), list(tasks)
    for kind in dict.fromkeys([*(part for config in configs for part in config.own_parts if is_plugin(part)), *_named_by(tasks)]):
        place = kind.rpartition(":")[0]
        if place.endswith(".py"):
            code[place] = _add(files, Path(place), "code")
        else:
            files |= _module(place.partition(".")[0])
    named = [path for config in configs for path in (config.prompts, config.models.providers)]
    named += [path for task in tasks for path in (*task.files, *task.images)]
    for text in dict.fromkeys(filter(None, named)):
        if (path := Path(text)).exists():
            paths[text] = _add(files, path, "files")
    if (size := sum(map(len, files.values()))) > MOST:
        raise UsageError(f"the plug-ins and files of tasks have {size:,} bytes, more than {MOST:,}: install them on the nodes")
    return Shipped(files=files, code=code, paths=paths)


def _add(files: dict[str, bytes], path: Path, kind: str) -> str:
    """Add a file, or the files in a folder, and return its name."""
    name = f"{kind}/{hashlib.blake2b(str(path.absolute()).encode(), digest_size=6).hexdigest()}/{path.name}"
    try:
        if path.is_dir():
            files |= {f"{name}/{each.relative_to(path).as_posix()}": each.read_bytes() for each in _files_in(path)}
        else:
            files[name] = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}, which the nodes need: {error.strerror}") from error
    return name


def _module(name: str) -> Mapping[str, bytes]:
    """Return the files of a module of the user's own; none where it is installed, as it then has to be on every node."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    finally:
        sys.path.remove(str(Path.cwd()))
    if spec is None or not spec.origin or name == "exact" or _is_installed(Path(spec.origin)):
        return {}
    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        return {f"modules/{origin.name}": origin.read_bytes()}
    top = origin.parent
    return {f"modules/{top.name}/{each.relative_to(top).as_posix()}": each.read_bytes() for each in _files_in(top)}


def _is_installed(origin: Path) -> bool:
    if {"site-packages", "dist-packages"} & set(origin.parts) or not origin.is_absolute():
        return True
    return origin.is_relative_to(sysconfig.get_path("stdlib"))


def _files_in(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part in _NEVER or part.startswith(".") for part in parts):
            yield path


def _named_by(tasks: Iterable[Task]) -> Iterator[str]:
    """Yield the plug-ins that the private parts of tasks name: suites, environments and evaluators."""
    for task in tasks:
        for value in task.private.values():
            yield from filter(is_attribute, _texts(value))


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in plain data, and in JSON that a text holds."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        try:
            inner = json.loads(value) if value[:1] in ("{", "[") else None
        except ValueError:
            inner = None
        yield from [value] if inner is None else _texts(inner)
