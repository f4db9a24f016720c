"""The table of suites, and the tasks that ids and patterns name.

A suite's module is imported when its name is first looked up. A package adds a suite by an entry point of the group `exact.suites`,
whose object is a callable without arguments that returns a Suite: `mysuite = "mypackage:MySuite"`.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

from exact.benchmarks.base import ModelEvaluatedSuite, Suite
from exact.benchmarks.ids import join, split_pattern
from exact.config import ModelsConfig
from exact.errors import UsageError, unknown
from exact.task import Task

GROUP = "exact.suites"
BUILTIN = {
    "miniwob": "exact.benchmarks.miniwob:MiniWob",
    "webarena": "exact.benchmarks.webarena:WebArena",
    "webarena_verified": "exact.benchmarks.webarena_verified:WebArenaVerified",
    "visualwebarena": "exact.benchmarks.visualwebarena:visualwebarena",
    "trac": "exact.benchmarks.sites:trac",
    "wagtail": "exact.benchmarks.sites:wagtail",
    "desktop": "exact.benchmarks.desktop:DesktopSuite",
    "browsergym": "exact.benchmarks.browsergym:BrowserGymSuite",
    "osworld": "exact.benchmarks.osworld.suite:OSWorld",
}
"""The `module:attribute` of each suite of this package; the attribute is called without arguments."""


class _Suites(Mapping[str, Suite]):
    """Suites by name. A suite is imported and made when it is first looked up."""

    def __init__(self, entries: Iterable[EntryPoint]) -> None:
        self._entries: dict[str, EntryPoint] = {}
        for entry in entries:
            if entry.name in self._entries:
                raise UsageError(f"two suites are named {entry.name!r}: uninstall the package of {entry.value}")
            self._entries[entry.name] = entry
        self._suites: dict[str, Suite] = {}

    def __getitem__(self, name: str) -> Suite:
        if name not in self._suites:
            self._suites[name] = self._entries[name].load()()
        return self._suites[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@functools.cache
def suites() -> Mapping[str, Suite]:
    """Return every suite by name: those of this package, then those of installed packages. Raises UsageError where two share a name."""
    own = [EntryPoint(name, target, GROUP) for name, target in BUILTIN.items()]
    return _Suites([*own, *entry_points(group=GROUP)])


def suite(id: str) -> Suite:
    """Return the suite of a task id, a pattern or a bare suite name. Raises UsageError that names the nearest suite."""
    name = id.partition("?")[0].partition("/")[0]
    if name not in suites():
        raise unknown("suite", name, suites(), where=repr(id))
    return suites()[name]


def suite_with_models(id: str, models: ModelsConfig) -> Suite:
    """Return the suite of a task id, with these models where its evaluators ask some. Raises UsageError as `suite` does."""
    plain = suite(id)
    return plain.with_models(models) if isinstance(plain, ModelEvaluatedSuite) else plain


def task(id: str) -> Task:
    """Return the task of an id. Raises UsageError that names the nearest suite or task."""
    return suite(id).task(id)


def expand(patterns: Iterable[str]) -> list[Task]:
    """Return the tasks that patterns name, each once, in the order of the patterns, then of the suite, then of the seeds.

    A pattern is an id whose name may contain `*` and `[...]`, or a named list: `miniwob/click-*?seed=1..3`,
    `miniwob/@browsergym?seed=0..4`. Raises UsageError where a pattern names nothing.
    """
    tasks: dict[str, Task] = {}
    for pattern in patterns:
        name, seeds = split_pattern(pattern)
        for id in _names(suite(pattern), name):
            tasks.update((found.id, found) for found in (task(join(id, seed)) for seed in seeds))
    return list(tasks.values())


def _names(suite: Suite, pattern: str) -> list[str]:
    prefix, _, name = pattern.partition("/")
    if name.startswith("@"):
        lists = suite.lists()
        if name[1:] not in lists:
            raise unknown("list", name[1:], lists, where=repr(pattern))
        return list(lists[name[1:]])
    if not any(sign in pattern for sign in "*["):
        return [pattern]
    found = [id for id in suite.ids() if fnmatch.fnmatchcase(id, pattern)]
    if not found:
        raise UsageError(f"no task matches {pattern!r}: `exact tasks list {prefix}` prints the ids")
    return found
