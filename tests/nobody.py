"""Programs run as a user without any rights. Only root can become that user, and only where it may have a user namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
ROOT = Path(__file__).parents[1]


@contextmanager
def nobody(runsc: str) -> Iterator[dict[str, str]]:
    """Variables of such a user, with nothing but a home and a copy of runsc in it. Skips the test where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("only root can become nobody")
    if refused := _said("unshare", "-Ur", "true"):
        pytest.skip(f"no user namespace for nobody: {refused}")
    if refused := _said(sys.executable, "-c", "import exact"):
        pytest.skip(f"nobody may not read what is tested, in {ROOT}: {refused.splitlines()[-1]}")
    with tempfile.TemporaryDirectory(prefix="exact-nobody-", dir="/tmp") as home:
        shutil.copy(runsc, home)
        for path in (home, f"{home}/{Path(runsc).name}"):
            os.chown(path, 65534, 65534)
        yield {"HOME": home, "EXACT_RUNSC": f"{home}/{Path(runsc).name}"}


def _said(*command: str) -> str:
    """Return the error output of a program that fails as `nobody`; empty if it does not fail."""
    done = subprocess.run([*AS_NOBODY, *command], capture_output=True, text=True, cwd=ROOT, env={"PATH": "/usr/bin:/bin"})
    return (done.stderr.strip() or f"{command[0]} ended with {done.returncode}") if done.returncode else ""
