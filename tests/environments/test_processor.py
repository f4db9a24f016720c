"""Processor time of a tree of processes."""

import os
import subprocess
import sys
from pathlib import Path

from exact.environments.processor import processor_seconds

BUSY = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"


def test_what_a_child_does_counts_also_once_it_has_ended() -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
    running = subprocess.Popen([sys.executable, "-c", f"{child}\ninput()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    grandchild = subprocess.Popen(
        [sys.executable, "-c", f"{BUSY}\nprint(flush=True)\ninput()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert grandchild.stdout is not None
    grandchild.stdout.readline()
    assert processor_seconds(grandchild.pid) >= 0.3
    assert processor_seconds(os.getpid()) >= processor_seconds(grandchild.pid)
    for process in (running, grandchild):
        process.communicate(b"\n")


def test_a_process_that_is_gone_and_a_system_that_does_not_tell_have_taken_nothing(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert processor_seconds(ended.pid) == 0.0
    assert processor_seconds(os.getpid(), proc=tmp_path) == 0.0
