"""A pytest plugin: `--short` leaves out the tests that took long when all were run last, but the shortest one of each file.

`--within SECONDS` leaves out the longest, until the others fit. `tests/seconds.json` has their seconds. `--record-seconds`, with
all tests, writes it; `--record-whole` writes down that all have passed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from .choose import Recorder

SECONDS = Path(__file__).parent / "seconds.json"
LONG = 2.0
"""Seconds from which on a test is left out."""
_LEAST = 1.0
"""Seconds of the shortest test that is recorded: it leaves a margin below `LONG`."""
_USUAL = 0.1
"""Seconds that a test takes on average if it is not recorded."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help=f"leave out tests of {LONG:g} s and more, but one of each file")
    parser.addoption("--within", type=float, metavar="SECONDS", help="leave out the longest of these tests, until all take as long as this")
    parser.addoption("--record-whole", action="store_true", help="write down, if all tests pass, that they do at this commit")
    parser.addoption("--record-seconds", action="store_true", help=f"write how long the tests took to {SECONDS.name}, for --short")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    if config.getoption("--record-seconds"):
        config.pluginmanager.register(_Recorder())
    if config.getoption("--record-whole"):
        config.pluginmanager.register(Recorder(alone=config.getoption("lf")))


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the long tests out of `items` if that is wanted."""
    within = config.getoption("--within")
    if within is None and not config.getoption("--short"):
        return
    out = long_tests([item.nodeid for item in items], json.loads(SECONDS.read_text()), within)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
    items[:] = [item for item in items if item.nodeid not in out]


def put_long_files_first(items: list[pytest.Item]) -> None:
    """Sort the files by their seconds: all processes then end at about the same time, as short ones are left for the end."""
    seconds, files = json.loads(SECONDS.read_text()), defaultdict[Path, float](float)
    for item in items:
        files[item.path] += seconds.get(item.nodeid, _USUAL)
    items.sort(key=lambda item: -files[item.path])


def long_tests(ids: list[str], seconds: dict[str, float], within: float | None = None) -> set[str]:
    """Return the ids of the tests to leave out: those of `LONG`, or the longest until the others take `within` seconds."""
    files = defaultdict(list)
    for id in ids:
        files[id.partition("::")[0]].append((seconds.get(id, _USUAL), id))
    others = sorted((test for tests in files.values() for test in sorted(tests)[1:] if test[1] in seconds), reverse=True)
    if within is None:
        return {id for took, id in others if took >= LONG}
    out, excess = set[str](), sum(took for tests in files.values() for took, _ in tests) - within
    for took, id in others:
        if excess > 0:
            out.add(id)
            excess -= took
    return out


def _is_elsewhere(file: str, files: set[str]) -> bool:
    """Return whether a file is there and is none of those that ran."""
    return file not in files and (Path(__file__).parents[1] / file).exists()


class _Recorder:
    """Adds up the seconds of each test, with its fixtures, and writes them at the end, beside those of files that did not run."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        files = {id.partition("::")[0] for id in self._seconds}
        known = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
        others = {id: took for id, took in known.items() if _is_elsewhere(id.partition("::")[0], files)}
        long = dict(sorted((others | {id: round(took, 1) for id, took in self._seconds.items() if took >= _LEAST}).items()))
        SECONDS.write_text(json.dumps(long, indent=0, ensure_ascii=False) + "\n")
