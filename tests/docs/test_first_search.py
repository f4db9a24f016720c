"""The first page of the tutorial: what its programs print is what it says, and its search sees further than a greedy step."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import exact
from tests.docs.test_tutorial import answers

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tutorial" / "first_search.md").read_text("utf-8")
FILES = dict(re.findall(r'^```python title="(\w+\.py)"\n(.*?)^```', PAGE, re.S | re.M))
SHOWN = re.findall(r"^```text\n(.*?)^```", PAGE, re.S | re.M)
"""What the page says that `first.py` and `solve.py` print."""


def run(program: str, folder: Path) -> str:
    (folder / program).write_text(FILES[program], "utf-8")
    environ = {**os.environ, "PYTHONPATH": str(Path(exact.__file__).parents[1])}
    done = subprocess.run([sys.executable, program], cwd=folder, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory, executable: str) -> Iterator[tuple[str, Path]]:
    """Output of the page's `solve.py`, and the folder that it ran in."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "shop.py").write_text(FILES["shop.py"], "utf-8")
    shop = subprocess.Popen([sys.executable, "shop.py", "8430"], cwd=folder)
    try:
        answers(8430)
        yield run("solve.py", folder), folder
    finally:
        shop.terminate()
        shop.wait(10)


def first_actions(folder: Path) -> dict[str, Any]:
    """Return the edges of the start by the URL that they lead to."""
    found = exact.open_run(folder / "mcts")
    start = found.tree(found.tasks[0]).nodes[0]
    return dict(zip(("blue", "red", "sale"), start.edges, strict=True))


def test_the_toy_search_prints_what_the_page_shows_and_does_not_follow_the_looks(tmp_path: Path) -> None:
    assert run("first.py", tmp_path) == SHOWN[0]
    left, right = (re.search(rf'go "{side}"  N \d+  Q ([\d.]+) .* V ([\d.]+)', SHOWN[0]) for side in ("left", "right"))
    assert left and right and float(left[2]) > float(right[2]) and float(left[1]) < float(right[1])


def test_the_greedy_agent_ends_in_the_dead_end_and_the_search_finds_the_answer(solved: tuple[str, Path]) -> None:
    assert solved[0] == SHOWN[1]
    assert "greedy: 'Sold out.'" in SHOWN[1] and "mcts: 'Blue lamp: 12 euros'" in SHOWN[1]


def test_the_first_action_that_looks_best_is_worth_less_than_the_committed_one(solved: tuple[str, Path]) -> None:
    edges = first_actions(solved[1])
    looks = {name: edge.child.value for name, edge in edges.items()}
    assert max(looks, key=lambda name: looks[name]) == "blue" and max(edges, key=lambda name: edges[name].q) == "sale"
    told = f"(V {looks['blue']:.2f}), the sale has none (V {looks['sale']:.2f})", f"(Q {edges['sale'].q:.2f})", f"(Q {edges['blue'].q:.2f})"
    assert [each for each in told if each not in " ".join(PAGE.split())] == []


def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("search_picture", DOCS / "_site" / "search_picture.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # its dataclass looks up its own module
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("name", ["search", "search_narrow"])
def test_the_drawing_has_the_actions_and_figures_of_the_run(solved: tuple[str, Path], name: str) -> None:
    picture = drawing()
    start = picture.cards(picture.RunFolder.open(solved[1] / "mcts"))
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", (DOCS / "images" / "drawn" / f"{name}.svg").read_text("utf-8"))
    told = [text for card in start.all() for text in (card.action, card.figures)]
    assert sorted(re.sub("&quot;", '"', text) for text in drawn if text != "end") == sorted(told)
    assert [card.action for card in start.all() if card.committed] == [
        "start", 'click link "Sale"', 'click link "Last pieces"', 'stop "Blue lamp: 12 euros"',
    ]  # fmt: skip
