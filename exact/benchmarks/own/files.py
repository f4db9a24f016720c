"""Site files and task files, in YAML: the files that `exact run tasks.yaml` reads. docs/own_application.md shows both.

The order of a file's tasks, of which some are attempted after others.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urljoin

import msgspec

from exact.benchmarks.own.evaluate import EVALUATE, MOST_BYTES, OwnTask, distinct, in_environment, kept, read_list
from exact.config import BrowserConfig, Strict
from exact.config.aliases import current
from exact.environments.browser.launch.options import browser_config_of
from exact.environments.sandbox.service import Service, located
from exact.environments.sites.site import Outside, with_hooks
from exact.errors import UsageError, unknown
from exact.models.providers import providers
from exact.origins import origin
from exact.task import Scalar, Task
from exact.untrusted import read_yaml

T = TypeVar("T", bound=msgspec.Struct)


class SiteFile(Strict, frozen=True, kw_only=True):
    """Site: its address and surroundings. Paths are relative to the file."""

    name: str
    """First part of its tasks' ids."""
    url: str
    """Default start address of its tasks."""
    origins: tuple[str, ...] = ()
    """Further origins that belong to it."""
    services: tuple[Service, ...] = ()
    """Services started with the browser, in one sandbox if there is one. Their working folder is the site's."""
    hosts: dict[str, str] = {}
    """Names for servers without one: `{shop.test: "127.0.0.1:8000"}`."""
    outside: Outside | None = None
    """Hooks and accounts of a site that runs elsewhere: see docs/design/environments.md."""
    harmless: tuple[str, ...] = ()
    """Requests that do not count as the agent's writes: drafts, preferences, telemetry. Regular expressions of `METHOD URL`. As in
    `outside`."""
    reads: tuple[str, ...] = ()
    """Requests that only read although their method is POST, in the same form. As in `outside`."""
    writes: tuple[str, ...] = ()
    """Requests that write although they are a GET, in the same form. As in `outside`."""
    browser: dict[str, Any] = {}
    """Keys of `browser` in the configuration, for this site: log-in, mask, locale, ..."""


class TaskEntry(Strict, frozen=True, kw_only=True):
    """Task of a site."""

    id: str
    instruction: str
    start: str = ""
    """Start, relative to the site's address."""
    seed: int = 0
    evaluate: str | dict[str, Any] = ""
    """Evaluator: `judge.py:function`, or WebArena's `eval` as a mapping; empty: the agent judges itself."""
    files: tuple[str, ...] = ()
    """Files that may be uploaded."""
    browser: dict[str, Any] = {}
    after: tuple[str, ...] = ()
    """Ids of tasks of this file that are attempted before this one."""


class _EnvironmentFile(Strict, frozen=True, kw_only=True):
    """Tasks in the user's own environment."""

    environment: str | dict[str, Any]
    tasks: tuple[TaskEntry, ...]


class _TaskFile(Strict, frozen=True, kw_only=True):
    site: str | SiteFile
    tasks: tuple[TaskEntry, ...]


def read_site(path: Path) -> SiteFile:
    """Read a site file. Raises UsageError with the invalid key."""
    data = _yaml(path)
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no mapping: see docs/own_application.md")
    return _convert(path, _with_hooks(path, data), SiteFile)


def _with_hooks(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    """Return a site's data with hooks written out. Their commands run in the file's folder."""
    try:
        return {**data, "outside": with_hooks(data["outside"], str(path.parent.resolve()))} if "outside" in data else data
    except ValueError as error:
        raise UsageError(f"{path}: outside: a hook's command cannot be read: {error}") from error


def read(path: Path, pattern: str = "*") -> tuple[Task, ...]:
    """Return the tasks of a file whose ids match a pattern.

    The file is a site's task file or a plain list. Raises UsageError that names the nearest id or the invalid key.
    """
    data = _yaml(path)
    if not isinstance(data, dict) or "tasks" not in data:
        return _fitting([(task.id.removeprefix("own/").partition("?")[0], task) for task in read_list(path)], pattern, path)
    if "environment" in data:
        return _fitting(_in_environment(path, data), pattern, path)
    if isinstance(data.get("site"), dict):
        data = {**data, "site": _with_hooks(path, data["site"])}
    file = _convert(path, data, _TaskFile)
    folder = path.parent
    where = folder if isinstance(file.site, SiteFile) else (folder / file.site).parent
    site = file.site if isinstance(file.site, SiteFile) else read_site(folder / file.site)
    made = distinct(path, [own_task(site, each, where, folder) for each in file.tasks])
    return _fitting(in_order(path, file.tasks, made), pattern, path)


def _in_environment(path: Path, data: dict[str, Any]) -> list[tuple[str, Task]]:
    file = _convert(path, data, _EnvironmentFile)
    for task in file.tasks:
        if extra := next((name for name in ("start", "evaluate", "files", "browser") if getattr(task, name)), None):
            raise UsageError(f"{path}: task {task.id}: {extra} is for sites, and the file names an environment: leave one of them out")
    own = [OwnTask(id=each.id, goal=each.instruction, seed=each.seed, environment=file.environment) for each in file.tasks]
    made = distinct(path, [in_environment(path, each) for each in own])
    return in_order(path, file.tasks, made)


def _fitting(tasks: Sequence[tuple[str, Task]], pattern: str, path: Path) -> tuple[Task, ...]:
    """Return the tasks whose name matches, with every seed."""
    found = tuple(task for name, task in tasks if fnmatch.fnmatchcase(name, pattern))
    if not found:
        raise unknown("task", pattern, {name for name, _ in tasks}, where=str(path))
    return found


def own_task(site: SiteFile, task: TaskEntry, where: Path, folder: Path | None = None) -> Task:
    """Return a task as runs store it, with everything that its environments need.

    `where`: the site file's folder; `folder`: the task file's. Paths of the task have neither links nor `..`.
    """
    where = where.resolve()
    folder = where if folder is None else folder.resolve()
    if not origin(site.url):
        raise UsageError(f"the site's url {site.url!r} is no web address: write http://host")
    try:
        start = urljoin(site.url, task.start)
    except ValueError as error:
        raise UsageError(f"task {task.id}: start {task.start!r} is no address: write /path or http://host/path") from error
    browser = _located(_merged(current(site.browser, "browser"), current(task.browser, "browser")), where)
    metadata: dict[str, Scalar] = {}
    for key, value in (
        ("services", tuple(_placed(each, where) for each in site.services)),
        ("hosts", site.hosts),
        ("outside", _outside(site)),
        ("browser", browser),
    ):
        if value:
            metadata[key] = msgspec.json.encode(value).decode()
    _check_variables(metadata)
    judged: dict[str, Scalar] = {EVALUATE: kept(folder / "tasks", task.id, task.evaluate)} if task.evaluate else {}
    made = Task(
        id=f"{site.name}/{task.id}", instruction=task.instruction, start=start, seed=task.seed,
        origins=(site.url, *site.origins), files=tuple(str(folder / each) for each in task.files), metadata=metadata,
        private=judged,
    )  # fmt: skip
    browser_config_of(BrowserConfig(), made)  # report wrong keys here
    return made


def _check_variables(metadata: Mapping[str, Scalar]) -> None:
    """Raise UsageError if a site would receive the key of a model: a log-in's value `$NAME` names its variable."""
    known = providers().values()
    keys = {each.api_key_env for each in known} | {each.api_key_env for provider in known for each in provider.endpoints}
    for place, text in metadata.items():
        for name in re.findall(r'"\$(\w+)"', str(text)):
            if name in keys:
                raise UsageError(
                    f"`{place}` of the site names {name}, the key of a model, which no site is sent: name a variable of the site"
                )


def _outside(site: SiteFile) -> Outside | None:
    """Return the outside that a site declares, its own patterns of requests included."""
    if not (site.harmless or site.reads or site.writes):
        return site.outside
    outside = site.outside or Outside()
    return msgspec.structs.replace(
        outside,
        harmless=(*outside.harmless, *site.harmless),
        reads=(*outside.reads, *site.reads),
        writes=(*outside.writes, *site.writes),
    )


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of both mappings, merged recursively."""
    found = dict(one)
    for key, value in other.items():
        found[key] = _merged(found[key], value) if isinstance(value, dict) and isinstance(found.get(key), dict) else value
    return found


def _located(browser: dict[str, Any], where: Path) -> dict[str, Any]:
    """Return the settings with absolute paths."""

    def at(value: Any) -> Any:
        return str(where / Path(value).expanduser()) if isinstance(value, str) and value else value

    login = browser.get("login")
    if isinstance(login, dict):
        login = {**login, **{key: at(login[key]) for key in ("state",) if key in login}}
        if isinstance(shown := login.get("certificate"), dict):
            login["certificate"] = {key: value if key == "passphrase" else at(value) for key, value in shown.items()}
        browser = {**browser, "login": login}
    if isinstance(given := browser.get("authorities"), list):
        browser = {**browser, "authorities": [at(each) for each in given]}
    if isinstance(recording := browser.get("recording"), dict) and "path" in recording:
        browser = {**browser, "recording": {**recording, "path": at(recording["path"])}}
    return browser


def _placed(service: Service, where: Path) -> Service:
    """Return a service that works in the site's folder by default, and sees it. Raises UsageError for a path that does not exist."""
    found = located(service, where)
    folder = found.folder if service.folder != "/" else str(where)
    return msgspec.structs.replace(found, folder=folder, reads=tuple(dict.fromkeys((str(where), *found.reads))))


def _yaml(path: Path) -> Any:
    try:
        return read_yaml(path, MOST_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}: name a file of tasks; `exact init` makes one") from error


def _convert(path: Path, data: Any, kind: type[T]) -> T:
    for key in data:
        if key not in kind.__struct_fields__:
            raise unknown("key", str(key), kind.__struct_fields__, where=str(path))
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}") from error


class NamedEntry(Protocol):
    """An entry of a file of tasks."""

    @property
    def id(self) -> str:
        """Name in the file."""

    @property
    def after(self) -> tuple[str, ...]:
        """Names of the entries that are attempted before."""


def in_order(path: Path, entries: Sequence[NamedEntry], tasks: Sequence[Task]) -> list[tuple[str, Task]]:
    """Return the tasks of entries with their names, each after those that it names, else in the order of the file.

    Raises UsageError if an entry names an unknown one, or entries wait for each other.
    """
    names = {entry.id: task.id.partition("?")[0] for entry, task in zip(entries, tasks, strict=True)}
    for entry in entries:
        for name in entry.after:
            if name not in names:
                raise unknown("task", name, names, where=f"{path}: after of {entry.id}")
    waits = {entry.id: list[str]() for entry in entries}
    for entry in entries:
        waits[entry.id] += entry.after
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        raise UsageError(f"{path}: tasks wait for each other: {' after '.join(error.args[1][::-1])}: leave one `after` out") from error
    row, place, stack = {name: at for at, name in enumerate(names)}, dict[str, int](), list(reversed(names))
    while stack:
        if left := sorted({*waits[stack[-1]]} - place.keys(), key=row.__getitem__):
            stack.append(left[0])
        else:
            place.setdefault(stack.pop(), len(place))
    found = [
        (entry.id, msgspec.structs.replace(task, after=tuple(names[name] for name in entry.after)))
        for entry, task in zip(entries, tasks, strict=True)
    ]
    return sorted(found, key=lambda each: place[each[0]])
