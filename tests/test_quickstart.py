"""shells/quickstart.sh, with stand-ins for the set-up and for the command `exact`."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXACT = """#!/bin/bash
cd "$(dirname "$0")/../.." && echo "$@" >>log
if [ "$1" = run ]; then mkdir -p "${@: -1}/tasks/one" && touch "${@: -1}/tasks/one/report.html"; fi
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "a checkout"
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / "shells").mkdir()
    shutil.copy(ROOT / "shells" / "quickstart.sh", root / "shells")
    (root / "shells" / "setup.sh").write_text('[ "$1" = --no-test ]\n')
    (root / ".venv" / "bin" / "exact").write_text(EXACT)
    (root / ".venv" / "bin" / "exact").chmod(0o755)
    return root


def quickstart(root: Path, *args: str) -> tuple[list[str], str]:
    """Run the script, and return the calls of `exact` and the output."""
    done = subprocess.run(["bash", root / "shells" / "quickstart.sh", *args], cwd="/", capture_output=True, text=True, check=True)
    return (root / "log").read_text().splitlines(), done.stdout


def test_the_quickstart_runs_a_few_tasks_and_names_their_reports(checkout: Path) -> None:
    asked, said = quickstart(checkout)
    assert len(asked) == 1
    assert asked[0].count("miniwob/") == 5
    assert "--config shells/configs/rmcts_builtin.yaml" in asked[0]
    report = Path(said.splitlines()[-1].strip())
    assert report.is_file() and report.is_relative_to(checkout / "runs")


def test_the_quickstart_takes_other_tasks(checkout: Path) -> None:
    asked, _ = quickstart(checkout, "miniwob/click-test?seed=9")
    assert asked[0].startswith("run miniwob/click-test?seed=9 --config")


def test_a_quickstart_without_reports_builds_them(checkout: Path) -> None:
    exact = checkout / ".venv" / "bin" / "exact"
    exact.write_text(EXACT.replace("= run", "= report"))
    asked, said = quickstart(checkout)
    assert asked[1].startswith("report runs/quickstart-")
    assert said.splitlines()[-1].endswith("report.html")
