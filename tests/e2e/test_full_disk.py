"""A disk that is full, a real one, in front of a real search: one line that says so, and the run goes on once there is space."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.kills import EXACT

SETTINGS = ("search.iterations=6", "search.k=4", "limits.actions=4")
SCRIPT = """
mount -t tmpfs -o size="$1"k tmpfs "$2" || exit 77
folder="$2/run"; size="$1"; shift 2
"$@" run 'miniwob/click-button?seed=4' --out "$folder" {settings} </dev/null
echo "code $?"
mount -o remount,size=100M "${{folder%/run}}"
"$@" resume "$folder" </dev/null
echo "code $?"
""".format(settings=" ".join(f"--set {each}" for each in SETTINGS))
"""In a mount namespace of its own, which takes the disk with it when it ends."""


@pytest.mark.parametrize(
    ("kib", "lacks"),
    [(60, "memory"), (100, "memory"), (140, ""), (250, "report")],
)
def test_a_full_disk_is_reported_in_one_line_and_the_run_resumes_when_there_is_space(kib: int, lacks: str, tmp_path: Path) -> None:
    command = ["unshare", "-rm", "sh", "-c", SCRIPT, "sh", str(kib), str(tmp_path), *EXACT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("no mount namespace may be made here")
    errors = [line for line in done.stderr.splitlines() if line.startswith("exact:")]
    assert len(errors) == 1 and lacks in errors[0] and "space" in errors[0], done.stderr
    assert "free some space" in errors[0] and "Traceback" not in done.stderr
    assert done.stdout.count("code 0") == 1 and "1 of 1 solved" in done.stdout, done.stdout
