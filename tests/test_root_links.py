import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINKS = ("agents", "prompts", "reflection", "search")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("name", LINKS)
def test_a_link_at_the_root_leads_into_the_package(name: str) -> None:
    assert (ROOT / name).resolve() == ROOT / "exact" / name


@pytest.mark.parametrize("name", LINKS)
def test_a_link_at_the_root_cannot_be_imported(name: str) -> None:
    done = run(f"import {name}")
    assert done.returncode == 1
    assert f"import exact.{name}" in done.stderr and done.stderr.splitlines()[-1].startswith("ImportError: ")


@pytest.mark.parametrize("name", LINKS)
def test_the_room_itself_can_be_imported_there(name: str) -> None:
    assert run(f"import exact.{name}").returncode == 0
