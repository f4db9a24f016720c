"""A test that hangs ends, by name, and with the place where it stood."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WAITING = """
import asyncio, contextlib, threading
import pytest

@contextlib.asynccontextmanager
async def ending():
    yield
    await asyncio.Event().wait()  # here

async def test_in_a_loop():
    async with ending():  # for this
        pass

def test_in_a_thread():
    threading.Event().wait()

@pytest.fixture
def end():
    yield
    threading.Event().wait()

def test_at_its_end(end):
    pass

def test_that_is_quick():
    pass
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it is told by a signal")
def test_a_test_that_hangs_fails_and_says_where_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "test_waiting.py").write_text(WAITING)
    options = ("asyncio_mode = auto", "asyncio_default_fixture_loop_scope = function", "hanging_seconds = 0.5")
    (tmp_path / "pytest.ini").write_text("\n".join(("[pytest]", *options)))
    command = [sys.executable, "-m", "pytest", "-p", "tests.hanging", "-p", "no:cacheprovider", "-q", "test_waiting.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "2 passed" in done.stdout and "2 failed" in done.stdout and "1 error" in done.stdout, done.stdout
    for name in ("test_in_a_loop", "test_in_a_thread"):
        assert f"FAILED test_waiting.py::{name} - Failed: hangs: no end after 0.5 s" in done.stdout
    assert "ERROR test_waiting.py::test_at_its_end" in done.stdout
    assert "async with ending():  # for this" in done.stdout and "await asyncio.Event().wait()  # here" in done.stdout
