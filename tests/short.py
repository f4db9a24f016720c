"""A pytest plugin: `--short` leaves out the tests that took long when all were run last, but the shortest one of each file.

`tests/seconds.json` has their seconds. `--record-seconds`, with all tests, writes it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

SECONDS = Path(__file__).parent / "seconds.json"
LONG = 2.0
"""Seconds from which on a test is left out."""
_LEAST = 1.0
"""Seconds of the shortest test that is recorded: it leaves a margin below `LONG`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help=f"leave out tests of {LONG:g} s and more, but one of each file")
    parser.addoption("--record-seconds", action="store_true", help=f"write how long the tests took to {SECONDS.name}, for --short")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-seconds") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder())


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the long tests out of `items` if that is wanted."""
    if not config.getoption("--short"):
        return
    out = long_tests([item.nodeid for item in items], json.loads(SECONDS.read_text()))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
    items[:] = [item for item in items if item.nodeid not in out]


def long_tests(ids: list[str], seconds: dict[str, float]) -> set[str]:
    """Return the ids of the tests to leave out. A test without recorded seconds is a short one."""
    files = defaultdict(list)
    for id in ids:
        files[id.partition("::")[0]].append((seconds.get(id, 0.0), id))
    return {id for tests in files.values() for took, id in sorted(tests)[1:] if took >= LONG}


class _Recorder:
    """Adds up the seconds of each test, with its fixtures, and writes them at the end."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        long = {id: round(took, 1) for id, took in sorted(self._seconds.items()) if took >= _LEAST}
        SECONDS.write_text(json.dumps(long, indent=0, ensure_ascii=False) + "\n")
