"""The worked example of Q shows the tree that its program prints, and its sums are right."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "concepts" / "rmcts.md").read_text("utf-8")
PROGRAM = re.findall(r"```python title=\"first.py\"\n(.*?)```", (DOCS / "tutorial" / "first_search.md").read_text("utf-8"), re.S)[0]


@pytest.fixture(scope="module")
def printed() -> str:
    """Tree that the tutorial's first search prints after 7 iterations, and the mean of its first state."""
    program = PROGRAM.replace("iterations=20", "iterations=7").replace("print(", "tree = (") + "\nprint(tree)\nprint(tree.root.mean)"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_tree_is_the_one_that_the_first_search_prints(printed: str) -> None:
    assert re.findall(r"```text\n(.*?)```", PAGE, re.S)[0] == "".join(printed.splitlines(keepends=True)[:-1])


@pytest.mark.parametrize("row", re.findall(r"^\| (.*?) \| (.+?) = (\d\.\d\d) \|", PAGE, re.M), ids=lambda row: row[0])
def test_a_number_is_computed_from_the_values_below_and_stands_in_the_tree(row: tuple[str, str, str], printed: str) -> None:
    name, sum_, result = row
    assert float(result) == pytest.approx(computed(sum_), abs=0.005)
    action, _, state = re.sub(r"Q of `|mean of ", "", name).partition("` in ")
    if not state:
        assert float(printed.splitlines()[-1]) == pytest.approx(float(result), abs=0.005)
    else:
        below = printed.partition(f"{state} ")[2]
        assert re.search(rf"{re.escape(action)}  N \d+  Q {result}", below)


def computed(text: str) -> float:
    """Return the value of a mean, a sum of products over a count, or of a maximum."""
    if text.startswith("max("):
        return max(map(float, re.findall(r"\d\.\d\d", text)))
    parts, count = re.fullmatch(r"\((.*)\) / (\d+)", text).groups()  # type: ignore[union-attr]
    products = [part.split(" * ") for part in parts.split(" + ")]
    return sum(float(part[0]) * (float(part[1]) if len(part) > 1 else 1.0) for part in products) / int(count)


def test_there_are_rows() -> None:
    assert len(re.findall(r"= \d\.\d\d \|", PAGE)) == 4
