"""No reward reaches a search: on pages whose rewards have the other sign it writes the same journal, byte for byte."""

from __future__ import annotations

import asyncio
import re
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from exact.benchmarks.miniwob import MiniWob, flip_rewards
from exact.config import parse
from exact.environments.base import EnvironmentFactory
from exact.runs.journal.file import Journal
from exact.runs.runner import Runner, create
from exact.task import Task

TASKS = (
    "click-tab-2?seed=1",
    "enter-text?seed=2",
    "click-collapsible?seed=2",
    "use-autocomplete?seed=1",
)
SETTINGS = {
    "search": {"algorithm": "mcts", "iterations": 6, "k": 4},
    "limits": {"actions": 4, "transitions": 40},
    "reflection": {"kind": "builtin"},
    "browser": {"screenshots": False},  # pixels of a fading tab depend on the clock
}


async def scores(folder: Path, suite: MiniWob) -> list[float | None]:
    """Run the tasks into a folder; the verdicts."""
    config = parse(SETTINGS)

    def open_environments(task: Task) -> AbstractAsyncContextManager[EnvironmentFactory]:
        return suite.environments(config.browser)

    run = create(folder, tuple(suite.task(f"miniwob/{task}") for task in TASKS), config)
    lines = await Runner(folder=run, config=config, open_environments=open_environments).run()
    return [line.score for line in lines]


def journals(folder: Path) -> list[bytes]:
    """Journals up to the verdict, but for when a lesson was learned."""
    texts = [path.read_bytes().partition(b'{"event":"scored"')[0] for path in sorted(folder.glob("tasks/*/journal.jsonl"))]
    return [re.sub(rb'"created":[\d.]+|"fences":"[0-9a-f]+"', b"", text) for text in texts]


async def test_flipped_rewards_change_no_byte_before_the_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two whole searches of four tasks in real browsers: twenty seconds."""
    monkeypatch.setattr(Journal.__init__, "__kwdefaults__", {"clock": lambda: 0.0})
    folders = [tmp_path / kind / "run" for kind in ("plain", "flipped")]  # a lesson names the run it is from
    suites = (MiniWob(), MiniWob(rewrite=flip_rewards))
    won, lost = await asyncio.gather(*(scores(folder, suite) for folder, suite in zip(folders, suites, strict=True)))
    plain, flipped = map(journals, folders)
    assert plain == flipped
    assert len(plain) == len(TASKS) and all(b'"committed"' in text for text in plain)
    assert b'"reflected"' in b"".join(plain) and b'"recalled"' in b"".join(plain), "lessons were learned and shown"
    assert all(one != other for one, other in zip(won, lost, strict=True)), "the pages did score differently"
