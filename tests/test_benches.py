"""Every bench imports, and the quick ones run."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in (ROOT / "bench").glob("[!_]*.py"))
IMPORT = """
import importlib, json, sys, traceback
failed = {}
for name in sys.argv[1:]:
    sys.path.insert(0, "bench")
    try:
        importlib.import_module(name)
    except Exception:
        failed[name] = traceback.format_exc(limit=-1)
print(json.dumps(failed))
"""


def test_every_bench_imports() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT, *NAMES], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {}


@pytest.mark.parametrize("name", ["search_quality", "startup"])
def test_a_bench_that_takes_seconds_runs_in_its_quick_form(name: str) -> None:
    done = subprocess.run([sys.executable, f"bench/{name}.py", "--quick"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\w+: \S+( \(goal .*\))?", done.stdout.splitlines()[-1])
