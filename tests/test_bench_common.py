"""bench/_common.py: how a benchmark ends, and of which code it says that it is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from exact.runs.journal.versions import checked_out, code

WHO = ("-c", "user.name=A", "-c", "user.email=a@example.org")
BENCH = Path(__file__).parents[1] / "bench"
HOLD = """
import asyncio, _common
from exact.machine import scratch

async def answers(asked):
    while True:
        (await asked.get()).set_result(None)

async def main():
    asked = asyncio.Queue()
    server = asyncio.create_task(answers(asked))
    with scratch("bench"):
        print("up", flush=True)
        try:
            await asyncio.sleep(60)
        finally:
            await asked.put(closed := asyncio.get_running_loop().create_future())
            await closed

_common.parser("").parse_args([])
asyncio.run(main())
"""
"""A bench that closes something by asking another task, as an attempt closes its browser."""


@pytest.mark.parametrize("background", [False, True])
def test_a_benchmark_that_is_terminated_ends_in_order_and_leaves_no_file(background: bool, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*(("env", "--ignore-signal=INT") if background else ()), sys.executable, "-c", HOLD],
        env={**os.environ, "PYTHONPATH": str(BENCH), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.terminate()
    assert process.communicate(timeout=30)[1] == b""
    assert process.returncode == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


def test_a_result_says_of_which_code_it_is_and_that_a_script_was_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    import _common

    clone = tmp_path / "clone"
    for command in (["init", "-q", str(clone)], ["-C", str(clone), *WHO, "commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", *command], check=True)
    monkeypatch.setattr(_common, "ROOT", clone)
    head = checked_out(clone)
    (clone / "docs").mkdir()
    (clone / "docs" / "page.md").write_text("of results\n")
    assert len(head) == 40 and _common.commit() == head, "other results are no other code"
    (clone / "new.py").write_text("measures\n")
    assert _common.commit() == head, "looked at once"
    code.cache_clear()
    assert _common.commit() == f"{head}+changes"
    monkeypatch.setattr(_common, "ROOT", tmp_path)
    assert _common.commit() == "unknown"
