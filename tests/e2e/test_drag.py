"""A drag that only shows in where things stand: a search goes on behind it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from exact.benchmarks.miniwob import MiniWob
from exact.config import parse
from exact.environments.base import EnvironmentFactory
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.runner import Runner, create
from exact.task import Task

SETTINGS = {
    "search": {"algorithm": "mcts", "iterations": 12, "k": 4, "revisit": "repeat"},
    "limits": {"actions": 4, "transitions": 30},
    "reflection": {"kind": "none"},
    "browser": {"screenshots": False},
}


async def test_a_search_continues_after_a_drag(tmp_path: Path) -> None:
    suite, config = MiniWob(), parse(SETTINGS)

    def open_environments(task: Task) -> AbstractAsyncContextManager[EnvironmentFactory]:
        return suite.environments(config.browser)

    run = create(tmp_path, (task := suite.task("miniwob/drag-box?seed=120"),), config)
    (line,) = await Runner(folder=run, config=config, open_environments=open_environments).run()
    events = list(read_journal(run.task_folder(task) / "journal.jsonl"))
    drags = {(each.node, each.edge) for each in events if isinstance(each, ev.Acted) and "moved" in each.info}
    first = next(each for each in events if isinstance(each, ev.Committed))
    assert drags and first.action.startswith("drag") and line.score == 1
