"""Data sent to another machine: once for a benchmark, and once for each attempt.

Files of this machine that attempts elsewhere need: plug-in modules, prompts, providers, and the files of tasks.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from exact.config import Config
from exact.errors import JournalError, UsageError
from exact.evaluation.folder import BenchFolder
from exact.evaluation.plan import Plan
from exact.plugins import is_attribute, is_plugin, use_shipped
from exact.runs.journal.store import Blobs, RunFolder, write_whole
from exact.task import Task

_BLOB = re.compile(rb"[0-9a-f]{64}")

What = Literal["persists", "attempt", "replay"]
"""Method of an Engine that is called elsewhere."""


class Cargo(msgspec.Struct, frozen=True, kw_only=True):
    """The part that is the same for all attempts of a benchmark. It holds no key: nodes take them from their own environment."""

    plan: Plan
    configs: dict[str, Config]
    """Configuration of each agent, as recorded: with placeholders in place of secrets."""
    shipped: Shipped
    make: str
    """`module:function` that makes a local engine from a BenchFolder and `arguments`."""
    arguments: tuple[Any, ...] = ()

    @classmethod
    def of(cls, folder: BenchFolder, *, make: str, arguments: tuple[object, ...], carried: Iterable[str]) -> Cargo:
        """Return the cargo of a benchmark. `carried`: agents whose memory travels with each attempt. Raises UsageError."""
        plan, carried = folder.plan, set(carried)
        configs = {agent: folder.agent(agent)[1] for agent in plan.agents}
        shipped = collect(configs.values(), plan.tasks)
        for agent in carried:
            reflection = msgspec.structs.replace(configs[agent].reflection, memory="")
            configs[agent] = msgspec.structs.replace(configs[agent], reflection=reflection)
        return cls(plan=plan, configs=configs, shipped=shipped, make=make, arguments=arguments)

    def unpack(self, folder: Path) -> BenchFolder:
        """Write a benchmark's folder without results. Its paths lead to the files that came along."""
        files = folder / "shipped"
        self.shipped.unpack(files)
        tasks = tuple(self.shipped.task_in(files, task) for task in self.plan.tasks)
        configs = {agent: self.shipped.config_in(files, config) for agent, config in self.configs.items()}
        return BenchFolder.create(folder / "bench", msgspec.structs.replace(self.plan, tasks=tasks), configs)


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """One call of an engine elsewhere, with the files of an earlier attempt at the task."""

    what: What
    agent: str
    task: str
    """Id of the task."""
    journal: bytes = b""
    blobs: dict[str, bytes] = {}
    """Contents that the journal refers to, by name."""
    memory: bytes = b""
    """SQLite file of the agent's reflections; empty if none travels."""
    rounds: bytes = b""
    """Content of the run's rounds.json."""

    @classmethod
    def of(cls, what: What, run: RunFolder, agent: str, task: Task, *, memory: bytes = b"") -> Parcel:
        """Return the parcel of a call. Raises JournalError."""
        rounds = run.path / "rounds.json"
        journal = b"" if what == "persists" else _whole_lines(run.task_folder(task) / "journal.jsonl")
        return cls(
            what=what, agent=agent, task=task.id, journal=journal, blobs=_blobs_of(journal, run.blobs), memory=memory,
            rounds=rounds.read_bytes() if memory and rounds.exists() else b"",
        )  # fmt: skip

    def unpack(self, run: RunFolder, task: Task) -> None:
        """Write the parcel into a run folder that holds nothing of the task."""
        if self.journal:
            place = run.task_folder(task) / "journal.jsonl"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self.journal)
        for data in self.blobs.values():
            run.blobs.put(data)
        for left in run.path.glob("memory.sqlite-*") if self.memory else ():
            left.unlink()  # of the file that is replaced
        for name, data in (("memory.sqlite", self.memory), ("rounds.json", self.rounds)):
            if data:
                write_whole(run.path / name, data)


def _whole_lines(journal: Path) -> bytes:
    """Return a journal without a torn last line; nothing if there is none. Raises JournalError."""
    try:
        data = journal.read_bytes() if journal.exists() else b""
    except OSError as error:
        raise JournalError(f"cannot read {journal}: {error.strerror}") from error
    return data[: data.rfind(b"\n") + 1]


def _blobs_of(text: bytes, blobs: Blobs) -> dict[str, bytes]:
    """Return the contents that a text refers to, and those that these refer to. A missing one is reported at its use."""
    found, waiting = dict[str, bytes](), set(_BLOB.findall(text))
    while waiting:
        name = waiting.pop().decode()
        if name not in found:
            with suppress(JournalError):  # another digest, such as that of the configuration
                found[name] = blobs.get(name)
                waiting |= set(_BLOB.findall(found[name]))
    return found


MOST = 64 << 20
"""Most bytes of all files together. Larger ones are put on the nodes beforehand."""
_NEVER = {"__pycache__", "node_modules"}


class Shipped(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of files, and the names that stand for them in configurations and tasks."""

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
    """Return the files of this machine that configurations and tasks name. Raises UsageError if they are too large."""
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
    """Return the files of a user's module; none if it is installed, as it then has to be on every node."""
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
