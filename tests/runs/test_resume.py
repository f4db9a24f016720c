"""An interrupted attempt goes on where its journal ends, wherever that is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from exact.environments.toy import ToyWorlds
from exact.environments.toy_worlds import ToyWorld, chain, deceptive_chain, form, maze
from exact.runs import events as ev
from exact.runs.journal import Journal, read
from tests.runs.toys import config, toy_runner


class Killed(BaseException):
    """Stands for kill -9: nothing may catch it."""


def kill_at(monkeypatch: pytest.MonkeyPatch, nth: int, *, written: bool) -> None:
    """End the process's doings at the n-th journal write: after the line is on disk, or just before."""
    count, real = 0, Journal.write

    def write(self: Journal, event: ev.AnyEvent) -> ev.AnyEvent:
        nonlocal count
        count += 1
        if count == nth and not written:
            raise Killed
        stamped = real(self, event)
        if count == nth:
            raise Killed
        return stamped

    monkeypatch.setattr(Journal, "write", write)


def journal(folder: Path) -> list[ev.AnyEvent]:
    (path,) = folder.glob("tasks/*/journal.jsonl")
    return list(read(path))


def committed(events: list[ev.AnyEvent]) -> list[str]:
    return [event.action for event in events if isinstance(event, ev.Committed)]


async def run(folder: Path, world: ToyWorld, *, sealed: bool = True) -> list[ev.AnyEvent]:
    settings = config(search={"algorithm": "mcts", "iterations": 10, "k": 4})
    await toy_runner(folder, ToyWorlds(world, sealed=sealed), settings, noise=0.1).run()
    return journal(folder)


@pytest.mark.parametrize("world", [chain(3), deceptive_chain(3), maze(), form(2)], ids=lambda world: world.name)
@pytest.mark.parametrize("written", [True, False], ids=["after the line", "before the line"])
async def test_a_kill_between_any_two_writes_leads_to_the_same_commits(world: ToyWorld, written: bool, tmp_path: Path) -> None:
    whole = await run(tmp_path / "whole", world)
    for nth in range(1, len(whole) + 1, 2 if written else 3):
        folder = tmp_path / str(nth)
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, nth, written=written)
            with pytest.raises(Killed):
                await run(folder, world)
        resumed = await run(folder, world)
        assert committed(resumed) == committed(whole), f"killed at write {nth}"
        assert isinstance(resumed[-1], ev.Finished)
        assert repeated_facts(resumed) == [], f"killed at write {nth}"


def repeated_facts(events: list[ev.AnyEvent]) -> list[object]:
    """Steps and calls that stand in the journal more than once."""
    steps = Counter((event.node, event.edge) for event in events if isinstance(event, ev.Acted))
    calls = Counter(event.key for event in events if isinstance(event, ev.Called))
    commits = Counter(event.step for event in events if isinstance(event, ev.Committed))
    scores = Counter("score" for event in events if isinstance(event, ev.Scored))
    return [key for counter in (steps, calls, commits, scores) for key, n in counter.items() if n > 1]


async def test_killed_again_and_again_it_still_ends(tmp_path: Path) -> None:
    world = maze()
    whole = await run(tmp_path / "whole", world)
    for nth in (5, 9, 4, 12, 6, 3):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, nth, written=True)
            with pytest.raises(Killed):
                await run(tmp_path / "run", world)
    resumed = await run(tmp_path / "run", world)
    assert committed(resumed) == committed(whole)
    assert repeated_facts(resumed) == []


async def test_a_finished_run_is_not_touched_by_resuming_it(tmp_path: Path) -> None:
    before = await run(tmp_path, chain(3))
    assert await run(tmp_path, chain(3)) == before
