"""A short run leaves out what takes long, and no file as a whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from .short import LONG, SECONDS, long_tests
from .test_guarantees import TABLE, paths

ROOT = Path(__file__).parent.parent
CONFTEST = """
from pathlib import Path
from tests import short
from tests.short import pytest_addoption, pytest_configure
short.SECONDS = Path(__file__).parent / "seconds.json"
def pytest_collection_modifyitems(config, items):
    short.leave_out(config, items)
"""
TESTS = """
import time
def test_that_is_long():
    time.sleep(1.1)
def test_that_is_quick():
    pass
"""


def test_long_tests_are_left_out_but_the_shortest_of_each_file() -> None:
    seconds = {"a.py::slow": LONG, "a.py::slower": 99.0, "b.py::slow": LONG, "b.py::slower": 99.0, "c.py::gone": 99.0}
    ids = ["a.py::quick", "a.py::slow", "a.py::slower", "b.py::slow", "b.py::slower"]
    assert long_tests(ids, seconds) == {"a.py::slow", "a.py::slower", "b.py::slower"}


def test_long_tests_are_left_out_from_the_longest_on_until_the_others_fit() -> None:
    seconds = {"a.py::long": 5.0, "a.py::longer": 9.0, "a.py::longest": 99.0, "a.py::quick": 1.0}
    assert long_tests(list(seconds), seconds, within=14.9) == {"a.py::longest", "a.py::longer"}
    assert long_tests(list(seconds), seconds, within=15.0) == {"a.py::longest"}
    assert long_tests(list(seconds), seconds, within=500.0) == set()
    assert long_tests(list(seconds), seconds, within=0.0) == {"a.py::longest", "a.py::longer", "a.py::long"}, "one of each file stays"


def test_a_test_of_20_seconds_has_a_reason() -> None:
    _, _, section = TABLE.read_text().partition("## Tests of 20 seconds and more")
    files = {id.partition("::")[0] for id, seconds in json.loads(SECONDS.read_text()).items() if seconds >= 20}
    assert {each for each in files if (ROOT / each).exists()} - set(paths(section)) == set()


def test_seconds_are_recorded_and_used(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    recorded = tmp_path / "seconds.json"

    def run(option: str) -> str:
        command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "-p", "no:cacheprovider", option, tmp_path]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout

    assert "2 passed" in run("--record-seconds")
    assert "test_that_is_long" in recorded.read_text() and "test_that_is_quick" not in recorded.read_text()
    recorded.write_text(json.dumps({"tests/test_gone.py::test_it": 3.0, "tests/test_short.py::test_it": 3.0}))
    run("--record-seconds")
    assert "test_gone" not in recorded.read_text() and "tests/test_short.py::test_it" in recorded.read_text()
    recorded.write_text(recorded.read_text().replace(": 1.", ": 9."))
    assert "1 passed, 1 deselected" in run("--short")
