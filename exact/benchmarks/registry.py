"""All suites, and the tasks that ids and patterns name.

A package adds a suite by an entry point of the group `exact.suites`, whose object is a callable without arguments that
gives a Suite: `mysuite = "mypackage:MySuite"`.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from types import MappingProxyType

from exact.benchmarks.base import Judging, Suite
from exact.benchmarks.browsergym import BrowserGymSuite
from exact.benchmarks.desktop import DesktopSuite
from exact.benchmarks.ids import join, split_pattern
from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.osworld.suite import OSWorld
from exact.benchmarks.sites import trac, wagtail
from exact.benchmarks.visualwebarena import visualwebarena
from exact.benchmarks.webarena import WebArena
from exact.config import ModelsConfig
from exact.errors import UsageError, unknown
from exact.task import Task


@functools.cache
def suites() -> Mapping[str, Suite]:
    """Every suite by name: those of this package, then those of installed packages."""
    own: tuple[Suite, ...] = (MiniWob(), WebArena(), visualwebarena(), trac(), wagtail(), DesktopSuite(), BrowserGymSuite(), OSWorld())
    found = {each.name: each for each in own}
    for entry in entry_points(group="exact.suites"):
        if entry.name in found:
            raise UsageError(f"two suites are named {entry.name!r}: uninstall the package of {entry.value}")
        found[entry.name] = entry.load()()
    return MappingProxyType(found)


def suite(id: str) -> Suite:
    """The suite of a task id, a pattern or a bare suite name. Raises UsageError that names the nearest suite."""
    name = id.partition("?")[0].partition("/")[0]
    if name not in suites():
        raise unknown("suite", name, suites(), where=repr(id))
    return suites()[name]


def judged(id: str, models: ModelsConfig) -> Suite:
    """The suite of a task id, with the models of a configuration where its verdicts ask some."""
    found = suite(id)
    return found.judged_by(models) if isinstance(found, Judging) else found


def task(id: str) -> Task:
    """The task of an id. Raises UsageError that names the nearest suite or task."""
    return suite(id).task(id)


def expand(patterns: Iterable[str]) -> list[Task]:
    """The tasks that patterns name, each once, in the order of the patterns, then of the suite, then of the seeds.

    A pattern is an id whose name may hold `*` and `[...]`, or be a named list: `miniwob/click-*?seed=1..3`,
    `miniwob/@browsergym?seed=0..4`. Raises UsageError where one names nothing.
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
        raise UsageError(f"no task matches {pattern!r}: `exact tasks list {prefix}` names them")
    return found
