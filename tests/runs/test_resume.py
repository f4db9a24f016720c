"""An interrupted attempt goes on where its journal ends, wherever that is."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path

import pytest

from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import ToyGraph, chain, deceptive_chain, form, maze
from exact.runs.journal import events as ev
from exact.runs.journal.file import Journal, read_journal
from tests.runs.toys import config, toy_runner


class Killed(BaseException):
    """Stands for kill -9: nothing may catch it."""


def kill_at(monkeypatch: pytest.MonkeyPatch, nth: int, *, written: bool) -> None:
    """End the process's doings at the n-th journal write: after the line is on disk, or just before. Nothing is written after it."""
    count, real = 0, Journal.write

    def write(self: Journal, event: ev.AnyEvent) -> ev.AnyEvent:
        nonlocal count
        count += 1
        if count > nth or (count == nth and not written):
            raise Killed
        stamped = real(self, event)
        if count == nth:
            raise Killed
        return stamped

    monkeypatch.setattr(Journal, "write", write)


def journal(folder: Path) -> list[ev.AnyEvent]:
    (path,) = folder.glob("tasks/*/journal.jsonl")
    return list(read_journal(path))


def committed(events: list[ev.AnyEvent]) -> list[str]:
    return [event.action for event in events if isinstance(event, ev.Committed)]


def moves(events: list[ev.AnyEvent]) -> list[object]:
    """Return the search's work without times."""
    kinds = ev.Asked | ev.Told | ev.Released | ev.Decided | ev.Committed
    found = [event for event in events if isinstance(event, kinds)]
    return [{key: value for key, value in each.__rich_repr__() if key not in ("t", "seconds")} for each in found]


async def run(folder: Path, environment: ToyGraph, *, isolated: bool = True, forks: bool = False, **search: object) -> list[ev.AnyEvent]:
    """`forks`: whether its environments have snapshots; then what is journalled of routes hangs on measured times."""
    settings = config(search={"algorithm": "mcts", "iterations": 10, "k": 4, **search})
    latency = None if search.get("workers", 1) == 1 else lambda: asyncio.sleep(0)
    await toy_runner(
        folder, ToyFactory(environment, isolated=isolated, latency=latency, fidelity="full" if forks else "replay"), settings, noise=0.1
    ).run()
    return journal(folder)


async def killed(folder: Path, nth: int, environment: ToyGraph, *, written: bool = True, **search: object) -> list[ev.AnyEvent]:
    """Kill a run at a write, and resume it."""
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, nth, written=written)
        with pytest.raises(Killed):
            await run(folder, environment, **search)
    return await run(folder, environment, **search)


WORLDS = [chain(3), deceptive_chain(3), maze(), form(2)]


@pytest.mark.parametrize("environment", WORLDS, ids=lambda environment: environment.name)
@pytest.mark.parametrize("written", [True, False], ids=["after the line", "before the line"])
async def test_a_kill_between_any_two_writes_leads_to_the_same_commits(environment: ToyGraph, written: bool, tmp_path: Path) -> None:
    whole = await run(tmp_path / "whole", environment)
    for nth in range(1, len(whole) + 1, 2 if written else 3):
        resumed = await killed(tmp_path / str(nth), nth, environment, written=written)
        assert moves(resumed) == moves(whole), f"killed at write {nth}"
        assert isinstance(resumed[-1], ev.Finished)
        assert repeated_facts(resumed) == [], f"killed at write {nth}"
        assert tree(tmp_path / str(nth)) == tree(tmp_path / "whole"), "with one worker the tree is the same to the bit"


@pytest.mark.parametrize("workers", [1, 4])
async def test_where_environments_fork_snapshots_are_lost_with_the_process_and_nothing_else(workers: int, tmp_path: Path) -> None:
    """The routes depend on measured times, so the number of lines may differ. The work of the search may not."""
    search: dict[str, object] = {"forks": True, "workers": workers, "order": "selection"}
    whole = await run(tmp_path / "whole", form(2), **search)  # type: ignore[arg-type]
    for nth in range(2, len(whole), 6):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, nth, written=True)
            with contextlib.suppress(Killed):
                await run(tmp_path / str(nth), form(2), **search)  # type: ignore[arg-type]
        resumed = await run(tmp_path / str(nth), form(2), **search)  # type: ignore[arg-type]
        assert moves(resumed) == moves(whole) and repeated_facts(resumed) == [], f"killed at write {nth}"


def tree(folder: Path) -> bytes:
    (path,) = folder.glob("tasks/*/tree.json")
    return path.read_bytes()


def repeated_facts(events: list[ev.AnyEvent]) -> list[object]:
    """Return the steps and calls that are in the journal more than once."""
    steps = Counter((event.node, event.edge) for event in events if isinstance(event, ev.Acted))
    rolled = Counter((event.node, event.policy, event.draw, event.index) for event in events if isinstance(event, ev.RolledStep))
    calls = Counter(event.key for event in events if isinstance(event, ev.Called))
    commits = Counter(event.step for event in events if isinstance(event, ev.Committed))
    scores = Counter("score" for event in events if isinstance(event, ev.Scored))
    return [key for counter in (steps, rolled, calls, commits, scores) for key, n in counter.items() if n > 1]


WAYS: dict[str, dict[str, object]] = {
    "serial": {},
    "plan": {"commit": "plan"},
    "promote": {"commit_by": "fork"},
    "speculative": {"expansion": "speculative"},
    "four workers": {"workers": 4},
    "four workers that plan and promote": {"workers": 4, "commit": "plan", "commit_by": "fork", "expansion": "speculative"},
}


@pytest.mark.parametrize("way", WAYS)
async def test_kills_at_random_moments_of_every_way_to_search_are_gone_on_from(way: str, tmp_path: Path) -> None:
    """Forty kills of each way. With several workers the order of events may be another, but the best action is clear here."""
    search, dice = {"iterations": 24, **WAYS[way]}, random.Random(way)
    whole = {environment.name: await run(tmp_path / environment.name, environment, **search) for environment in WORLDS}
    for i in range(40):
        environment = dice.choice(WORLDS)
        events = whole[environment.name]
        nth = dice.randint(1, len(events) * 2 // 3 if search.get("workers") else len(events))
        resumed = await killed(tmp_path / str(i), nth, environment, written=dice.random() < 0.5, **search)
        assert isinstance(resumed[-1], ev.Finished) and resumed[-1].status == "scored"
        assert repeated_facts(resumed) == [], f"{environment.name} killed at write {nth}"
        assert committed(resumed) == committed(events), f"{environment.name} killed at write {nth}"


async def test_killed_again_and_again_it_still_ends(tmp_path: Path) -> None:
    environment = maze()
    whole = await run(tmp_path / "whole", environment)
    for nth in (5, 9, 4, 12, 6, 3):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, nth, written=True)
            with pytest.raises(Killed):
                await run(tmp_path / "run", environment)
    resumed = await run(tmp_path / "run", environment)
    assert committed(resumed) == committed(whole)
    assert repeated_facts(resumed) == []


@pytest.mark.parametrize("workers", [1, 4])
async def test_a_torn_last_line_is_as_if_it_had_not_been_written(workers: int, tmp_path: Path) -> None:
    whole = await run(tmp_path, maze(), workers=workers)
    tear(tmp_path)
    resumed = await run(tmp_path, maze(), workers=workers)
    assert committed(resumed) == committed(whole)


def tear(folder: Path) -> None:
    """Leave half a journal, which ends in the middle of a line."""
    (path,) = folder.glob("tasks/*/journal.jsonl")
    data = path.read_bytes()
    (folder / "results.jsonl").unlink()
    path.write_bytes(data[: data.index(b"\n", len(data) // 2) - 5])


async def test_a_finished_run_is_not_touched_by_resuming_it(tmp_path: Path) -> None:
    before = await run(tmp_path, chain(3))
    assert await run(tmp_path, chain(3)) == before
