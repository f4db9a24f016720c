"""Tests that the table of guarantees, README.md beside this file, names files that exist."""

import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("README.md")
FOLDERS = ("bench/", "docs/", "examples/", "tests/", ".ci/")


def paths(cell: str) -> list[str]:
    """Return the paths in a cell's backticks, braces expanded. A bare file name lies in the folder of the path before it."""
    found: list[str] = []
    for name in re.findall(r"`([^`]+)`", cell):
        path = name.split()[0]
        if re.fullmatch(r"test_[\w{},*]+\.py", path):
            path = f"{Path(found[-1]).parent}/{path}"
        elif not path.startswith(FOLDERS):
            continue
        found += expanded(path)
    return found


def expanded(path: str) -> list[str]:
    """Return the alternatives that `{a,b}` in a path stands for."""
    parts = [part.split(",") for part in re.split(r"[{}]", path)[1::2]]
    pieces = re.split(r"\{[^}]*\}", path)
    return ["".join(itertools.chain(*zip(pieces, (*chosen, ""), strict=True))) for chosen in itertools.product(*parts)]


def rows() -> list[tuple[str, str]]:
    """Return the guarantees with the cells that show them."""
    cells = [line.strip("|").split(" | ") for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    return [(cell[0].strip(), cell[-1]) for cell in cells if cell[0].strip() not in ("guarantee", "reason")]


def test_braces_are_expanded() -> None:
    assert paths("`tests/a/test_{b,c}.py`, `test_d.py`: `figure`") == ["tests/a/test_b.py", "tests/a/test_c.py", "tests/a/test_d.py"]


@pytest.mark.parametrize(("guarantee", "shown"), rows())
def test_every_path_exists(guarantee: str, shown: str) -> None:
    missing = [path for path in paths(shown) if not any(ROOT.glob(path.rstrip("/")))]
    assert not missing, f"not there: {', '.join(missing)}"
    assert "`" in shown, f"nothing shows: {guarantee}"
