"""The page "Bring your environment", followed word for word: each program is short, runs alone, and prints the right answer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import exact

PAGE = Path(__file__).parents[2] / "docs" / "bring_environment.md"
PROGRAMS = {name: (text, shown) for name, text, shown in re.findall(
    r'^```python title="(\w+\.py)"\n(.*?)^```\n(?:\n```text\n(.*?)^```)?', PAGE.read_text("utf-8"), re.S | re.M
)}  # fmt: skip
RIGHT = {
    "jugs.py": r"(\w+_\w+ ){7}pour_small\n",
    "coins.py": r"left: 0\.[1-5]\d after \d{2,3} flips\nright: 0\.[4-8]\d after \d{3} flips\n",
    "door.py": r"1\.0 take_key open\n",
    "order.py": r"1\.0( coffee| tea){3} send\n",
}
"""The right answers of the programs."""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / program).write_text(PROGRAMS[program][0], "utf-8")
    environ = {**os.environ, "PYTHONPATH": str(Path(exact.__file__).parents[1])}
    return subprocess.run([sys.executable, program], cwd=folder, env=environ, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("program", RIGHT)
def test_a_program_prints_the_right_answer_and_what_the_page_shows(program: str, tmp_path: Path) -> None:
    done = run(program, tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert re.fullmatch(RIGHT[program], done.stdout) and PROGRAMS[program][1] in ("", done.stdout)


def test_the_jugs_hold_four_litres_after_what_the_page_shows() -> None:
    litres, sizes = {"small": 0, "large": 0}, {"small": 3, "large": 5}
    for verb, jug in (action.split("_") for action in PROGRAMS["jugs.py"][1].split()):
        other = "large" if jug == "small" else "small"
        moved = min(litres[jug], sizes[other] - litres[other]) if verb == "pour" else 0
        litres = {other: litres[other] + moved, jug: sizes[jug] if verb == "fill" else litres[jug] - moved if verb == "pour" else 0}
    assert litres["large"] == 4


def test_every_program_has_fewer_than_thirty_lines_of_code() -> None:
    code = {name: [line for line in text.splitlines() if line.strip()] for name, (text, _) in PROGRAMS.items()}
    assert code.keys() == RIGHT.keys() and {name: len(lines) for name, lines in code.items() if len(lines) >= 30} == {}


def test_the_page_names_each_kind_of_environment_once() -> None:
    for words in ("deterministic=True", "deterministic=False", "raise exact.ActionError(", "observation=None, terminated=True"):
        assert [name for name, (text, _) in PROGRAMS.items() if words in text].__len__() == 1
