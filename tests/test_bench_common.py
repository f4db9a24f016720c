"""bench/_common.py: how a benchmark ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[1] / "bench"
HOLD = """
import asyncio, _common
from exact.scratch import scratch

async def main():
    _common.parser("").parse_args([])
    with scratch("bench"):
        print("up", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def test_a_benchmark_that_is_terminated_leaves_no_file(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        env={**os.environ, "PYTHONPATH": str(BENCH), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.terminate()
    assert process.communicate()[1] == b""
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
