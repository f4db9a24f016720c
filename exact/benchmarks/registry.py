"""The table of suites, and the tasks that ids and patterns name.

A suite's module is imported when its name is first looked up. A package adds a suite by an entry point of the group `exact.suites`, whose
object is a callable without arguments that returns a Suite: `mysuite = "mypackage:MySuite"`. A user names their own as `mine.py:MySuite`:
see `own_suites`.
"""

from __future__ import annotations

import fnmatch
import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

import msgspec

from exact.benchmarks.base import ModelEvaluatedSuite, Suite
from exact.benchmarks.ids import join, split_pattern
from exact.config import Config, ModelsConfig
from exact.errors import UsageError, unknown
from exact.plugins import attribute, located, plugin_in
from exact.task import Task

GROUP = "exact.suites"
OWN = "suite"
"""Key of a task's private part: the `module:attribute` of its suite, if the suite is the user's own."""
BUILTIN = {
    "miniwob": "exact.benchmarks.miniwob:MiniWob",
    "webarena": "exact.benchmarks.webarena:WebArena",
    "webarena_verified": "exact.benchmarks.webarena_verified.suite:WebArenaVerified",
    "visualwebarena": "exact.benchmarks.webarena.suite:visualwebarena",
    "trac": "exact.benchmarks.sites.suite:trac",
    "wagtail": "exact.benchmarks.sites.suite:wagtail",
    "desktop": "exact.benchmarks.desktop.suite:DesktopSuite",
    "browsergym": "exact.benchmarks.browsergym:BrowserGymSuite",
    "osworld": "exact.benchmarks.osworld.suite:OSWorld",
}
"""The `module:attribute` of each suite of this package; the attribute is called without arguments."""


_brought: dict[str, str] = {}
"""Origins of user-defined suites, as `module:attribute`, by name."""


class _Suites(Mapping[str, Suite]):
    """Suites by name. A suite is imported and made when it is first looked up."""

    def __init__(self, entries: Iterable[EntryPoint]) -> None:
        self._entries: dict[str, EntryPoint] = {}
        for entry in entries:
            if entry.name in self._entries:
                raise UsageError(f"two suites are named {entry.name!r}: uninstall the package of {entry.value}")
            self._entries[entry.name] = entry
        self._suites: dict[str, Suite] = {}

    def bring(self, kind: str) -> str:
        """Add the suite of a `module:attribute`, and return its name. Raises UsageError."""
        known = next((name for name, found in _brought.items() if found == kind), None)
        if known is not None:
            return known
        suite = _made(kind)
        if suite.name in self._entries or suite.name in _brought:
            raise UsageError(f"{kind} is named {suite.name!r}, as another suite is: give it another name")
        self._suites[suite.name], _brought[suite.name] = suite, kind
        return suite.name

    def __getitem__(self, name: str) -> Suite:
        if name not in self._suites:
            self._suites[name] = self._entries[name].load()()
        return self._suites[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in _brought

    def __iter__(self) -> Iterator[str]:
        return iter((*self._entries, *_brought))

    def __len__(self) -> int:
        return len(self._entries) + len(_brought)


@functools.cache
def suites() -> _Suites:
    """Return every suite by name: those of this package, then those of installed packages. Raises UsageError if two share a name."""
    own = [EntryPoint(name, target, GROUP) for name, target in BUILTIN.items()]
    return _Suites([*own, *entry_points(group=GROUP)])


def own_suites(patterns: Iterable[str]) -> list[str]:
    """Return patterns with the short names of user-defined suites: `mine.py:MySuite/one` becomes `mysuite/one`.

    The suites are made on the way, so call this only for names that the user wrote, never for those of a stranger. Raises UsageError.
    """
    return [_short(each) for each in patterns]


def use(config: Config) -> None:
    """Add the suites that a configuration of the user's names. Raises UsageError."""
    own_suites(config.suites)


def _short(pattern: str) -> str:
    kind = plugin_in(pattern)
    return f"{suites().bring(located(kind))}{pattern[len(kind) :]}" if kind else pattern


def _made(kind: str) -> Suite:
    """Return the suite that a `module:attribute` makes. Raises UsageError if it makes none."""
    make = attribute("suite", kind, GROUP)
    try:
        made = make()
    except Exception as error:
        raise UsageError(f"suite: {kind} cannot be called without arguments: {type(error).__name__}: {error}") from error
    missing = [name for name in ("name", "ids", "lists", "task", "environments") if not hasattr(made, name)]
    if missing:
        what = type(made).__name__
        raise UsageError(f"suite: {kind} {'is' if inspect.isclass(make) else 'gives'} {what}, which has no {', '.join(missing)}")
    found: Suite = made
    return found


def suite_of(task: Task) -> Suite:
    """Return the suite of a task, which may be the user's own. Raises UsageError as `suite` does."""
    if kind := task.private.get(OWN):
        suites().bring(str(kind))
    return suite(task.id)


def suite(id: str) -> Suite:
    """Return the suite of a task id, a pattern or a bare suite name. Raises UsageError that names the nearest suite."""
    name = id.partition("?")[0].partition("/")[0]
    if name not in suites():
        raise unknown("suite", name, suites(), where=repr(id))
    return suites()[name]


def suite_with_models(task: Task, models: ModelsConfig) -> Suite:
    """Return the suite of a task, with these models if its evaluators ask some. Raises UsageError as `suite` does."""
    plain = suite_of(task)
    return plain.with_models(models) if isinstance(plain, ModelEvaluatedSuite) else plain


def task(id: str) -> Task:
    """Return the task of an id. Raises UsageError that names the nearest suite or task."""
    return _task(suite(id), id)


def expand(patterns: Iterable[str]) -> list[Task]:
    """Return the tasks that patterns name, each once, in the order of the patterns, then of the suite, then of the seeds.

    A pattern is an id whose name may contain `*` and `[...]`, or a named list: `miniwob/click-*?seed=1..3`,
    `miniwob/@browsergym?seed=0..4`. Raises UsageError if a pattern names nothing.
    """
    tasks: dict[str, Task] = {}
    for pattern in patterns:
        name, seeds = split_pattern(pattern)
        for id in _names(suite(pattern), name):
            tasks.update((found.id, found) for found in (task(join(id, seed)) for seed in seeds))
    return list(tasks.values())


def _task(suite: Suite, id: str) -> Task:
    """Return a task of a suite. A task of a user-defined suite records the suite's origin, which resuming the run needs."""
    found = suite.task(id)
    kind = _brought.get(suite.name)
    return msgspec.structs.replace(found, private={**found.private, OWN: kind}) if kind else found


def ids(suite: Suite) -> Sequence[str]:
    """Return the ids of a suite's tasks. Raises the suite's own UsageError if none of its tasks is on this machine."""
    found = suite.ids()
    if not found:
        suite.task(f"{suite.name}/*")
    return found


def _names(suite: Suite, pattern: str) -> list[str]:
    prefix, _, name = pattern.partition("/")
    if name.startswith("@"):
        lists = suite.lists()
        if name[1:] not in lists:
            ids(suite)
            raise unknown("list", name[1:], lists, where=repr(pattern))
        return list(lists[name[1:]])
    if not any(sign in pattern for sign in "*["):
        return [pattern]
    found = [id for id in ids(suite) if fnmatch.fnmatchcase(id, pattern)]
    if not found:
        raise UsageError(f"no task matches {pattern!r}: `exact list tasks {prefix}` prints the ids")
    return found
