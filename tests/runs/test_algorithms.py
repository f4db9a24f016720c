"""Every algorithm through the real driver: solved, with one worker and with four, and its journal folds to its tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain, deceptive_chain
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import fold
from exact.search.inspect.export import to_json
from tests.runs.toys import config, toy_runner

CASES: list[tuple[str, dict[str, Any]]] = [
    ("best_first", {}),
    ("beam", {}),
    ("tot_bfs", {}),
    ("tot_bfs", {"options": {"rating": "vote"}}),
    ("tot_dfs", {}),
]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("commit", ["replan", "plan"])
@pytest.mark.parametrize("name, more", CASES, ids=[f"{name}{' vote' if more else ''}" for name, more in CASES])
async def test_an_algorithm_finds_the_way_out_and_its_journal_is_its_tree(
    tmp_path: Path, name: str, more: dict[str, Any], commit: str, workers: int
) -> None:
    settings = config(search={"algorithm": name, "iterations": 20, "k": 4, "workers": workers, "commit": commit, **more})
    runner = toy_runner(tmp_path / "run", ToyFactory(deceptive_chain(3)), settings)
    [line] = await runner.run()
    assert line.score == 1.0 and not line.failures
    folder = next((tmp_path / "run" / "tasks").iterdir())
    assert (folder / "tree.json").read_bytes() == to_json(fold(settings, read_journal(folder / "journal.jsonl")).search.tree)


@pytest.mark.parametrize("workers", [1, 4])
async def test_best_of_n_draws_trajectories_in_real_environments(tmp_path: Path, workers: int) -> None:
    settings = config(search={"algorithm": "best_of_n", "breadth": 24, "iterations": 40, "workers": workers})
    [line] = await toy_runner(tmp_path / "run", ToyFactory(chain(2)), settings).run()
    assert line.score == 1.0 and line.status == "scored"
