"""Processor time of a tree of processes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from exact.environments.process.process import processor_seconds

BUSY = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
TOLD = 0.3 - 4 / os.sysconf("SC_CLK_TCK")
"""What the kernel tells of it at least: each of four sums is of whole ticks."""


@pytest.fixture
def started() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Start a script, and wait until it reports that it is done; it lives until the test ends."""
    with ExitStack() as stack:

        def start(script: str) -> subprocess.Popen[bytes]:
            program = [sys.executable, "-c", f"{script}\nprint(flush=True)\ninput()"]
            process = stack.enter_context(subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            stack.callback(process.communicate, b"\n")
            assert process.stdout is not None
            process.stdout.readline()
            return process

        yield start


def test_processor_time_of_a_child_counts_after_its_end(started: Callable[[str], subprocess.Popen[bytes]]) -> None:
    itself = started(BUSY)
    assert processor_seconds(itself.pid) >= TOLD
    parent = started(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])")
    assert processor_seconds(parent.pid) >= TOLD, "its child has ended"
    assert processor_seconds(os.getpid()) >= processor_seconds(itself.pid) + processor_seconds(parent.pid)


def test_a_process_that_is_gone_and_a_system_that_does_not_tell_have_taken_nothing(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert processor_seconds(ended.pid) == 0.0
    assert processor_seconds(os.getpid(), proc=tmp_path) == 0.0
