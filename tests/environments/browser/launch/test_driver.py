"""A driver that does not start is told in one line, with a way out."""

from pathlib import Path

import pytest

from exact.cli import doctor
from exact.config import BrowserConfig
from exact.environments.browser import launch
from exact.environments.browser.launch.driver import driver_fault
from exact.errors import EnvironmentFailure

LACK = "node: error while loading shared libraries: libatomic.so.1: no such file"


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Node.js on a machine that lacks a library."""
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho '{LACK}' >&2\nexit 127\n")
    node.chmod(0o755)
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(node))
    return node


def test_a_driver_that_starts_has_no_fault() -> None:
    assert driver_fault() == ""


async def test_a_browser_is_refused_with_what_the_driver_said(broken: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"driver does not start: .*libatomic.so.1.*: run shells/setup.sh, or apt-get"):
        async with launch(BrowserConfig()):
            pass


def test_the_doctor_names_it(broken: Path) -> None:
    (found,) = [check for check in doctor.checks() if check.name == "playwright"]
    assert not found.ok and LACK in found.found and "libatomic1" in found.fix


def test_a_driver_that_is_not_there_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", "/nowhere/node")
    assert "/nowhere/node" in driver_fault()
