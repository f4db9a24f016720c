"""Runs in environments that fork, in virtual time: routes by cost, snapshots where they pay, and what is prepared while a model thinks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.config import BrowserConfig, Config
from exact.environments.base import Snapshot
from exact.environments.toy.factory import TOY_ACTIONS, ToyEnvironment, ToyFactory
from exact.errors import EnvironmentFailure
from exact.runs.journal import events as ev
from exact.runs.journal.state import fold
from tests.runs.test_resume import Killed, journal, kill_at
from tests.runs.toys import config
from tests.runs.virtual import SANDBOX, VirtualLoop, in_virtual_time, slow_environments, slow_runner

FAST = {"reset": 0.02, "step": 0.02, "snapshot": 0.5, "restore": 0.5, "fork": 0.5}
"""A small page: replay is cheap."""


def searched(**search: object) -> Config:
    return config(search={"algorithm": "mcts", "iterations": 40, "k": 4, "prefetch": 0, **search}, limits={"actions": 1})


def run(
    patch: pytest.MonkeyPatch, folder: Path, settings: Config, environments: ToyFactory | None = None, *, cores: int = 8
) -> list[ev.AnyEvent]:
    """Return the journal of a run in virtual time, and check that no environment is left open."""
    environments = environments or slow_environments()
    patch.setattr("os.cpu_count", lambda: cores)
    in_virtual_time(slow_runner(patch, folder, environments, settings).run())
    assert environments.counts.live == 0 and not environments._shared.snapshots, "environments and snapshots are gone"
    return journal(folder)


def arrivals(events: list[ev.AnyEvent]) -> list[ev.Arrived]:
    return [event for event in events if isinstance(event, ev.Arrived)]


def prepared(events: list[ev.AnyEvent]) -> list[ev.Prepared]:
    return [event for event in events if isinstance(event, ev.Prepared)]


def routes(events: list[ev.AnyEvent]) -> Counter[str]:
    return Counter(arrival.route for arrival in arrivals(events))


def moves(events: list[ev.AnyEvent]) -> list[Any]:
    """Return the search's work."""
    return [event.result if isinstance(event, ev.Told) else event.action for event in events if isinstance(event, ev.Told | ev.Committed)]


def test_where_the_server_is_slow_environments_are_restored_and_the_search_goes_the_same_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    forked = run(monkeypatch, tmp_path / "fork", searched())
    replayed = run(monkeypatch, tmp_path / "replay", searched(), slow_environments(fidelity="replay"))
    assert routes(forked)["fork"] + routes(forked)["restore"] > 5 and set(routes(replayed)) <= {"reuse", "advance", "replay"}
    assert moves(forked) == moves(replayed)
    assert forked[-1].t < 0.9 * replayed[-1].t
    assert {arrival.match for arrival in arrivals(forked)} == {"exact"}


def test_where_replay_is_cheaper_nothing_is_kept_and_nothing_restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    events = run(monkeypatch, tmp_path, searched(), slow_environments(FAST))
    assert set(routes(events)) <= {"reuse", "advance", "replay"}
    assert not any(isinstance(event, ev.SnapshotTaken) for event in events)


def test_a_snapshot_of_one_node_is_kept_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = [event.node for event in run(monkeypatch, tmp_path, searched(workers=4)) if isinstance(event, ev.SnapshotTaken)]
    assert kept and len(kept) == len(set(kept))


def test_steps_in_the_journal_are_the_steps_that_were_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environments, settings = slow_environments(), searched(workers=2, prefetch=2)
    events = run(monkeypatch, tmp_path, settings, environments)
    assert fold(settings, events).spending.task.spent["transitions"] == environments.counts.steps


def test_the_next_environment_is_prefetched_during_model_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = run(monkeypatch, tmp_path / "plain", searched())
    ahead = run(monkeypatch, tmp_path / "ahead", searched(prefetch=1))
    waited = [sum(arrival.seconds for arrival in arrivals(events)) for events in (plain, ahead)]
    assert moves(ahead) == moves(plain)
    assert waited[1] < 0.1 * waited[0] and ahead[-1].t < plain[-1].t
    hits = sum(arrival.prepared for arrival in arrivals(ahead))
    assert 0 < hits <= len(prepared(ahead)), "what was prepared and not used is counted by the difference"


def test_the_first_environment_is_opened_while_the_start_is_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    events = run(monkeypatch, tmp_path, searched(prefetch=1))
    first, acted = arrivals(events)[0], [event for event in events if isinstance(event, ev.Acted)][:2]
    assert (first.node, first.prepared, first.seconds) == (0, True, 0.0)
    assert [event.node for event in acted] == [0, 0] and acted[1].ahead and not acted[1].seconds


def test_an_agent_that_does_not_search_has_one_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environments = slow_environments()
    events = run(monkeypatch, tmp_path, config(search={"algorithm": "react", "prefetch": 2}, limits={"actions": 3}), environments)
    assert not prepared(events) and environments.counts.opened == 1


def test_no_environment_is_prefetched_while_workers_need_all_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    free, crowded = (run(monkeypatch, tmp_path / str(cores), searched(workers=4, prefetch=2), cores=cores) for cores in (8, 1))
    assert len(prepared(crowded)) < len(prepared(free)), "four workers leave one core little to spare"
    assert prepared(run(monkeypatch, tmp_path / "one", searched(prefetch=1), cores=1)), "one worker that thinks leaves it all"


def test_where_steps_are_capped_none_is_repeated_in_the_background_so_the_cap_of_steps_pays_for_as_much(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = config(search={"iterations": 40, "k": 4, "prefetch": 3}, limits={"transitions": 40, "actions": 1})
    environments = slow_environments()
    events = run(monkeypatch, tmp_path, settings, environments)
    assert environments.counts.steps <= 41 and prepared(events)
    assert not {each.route for each in prepared(events)} & {"advance", "restore+replay", "fork+replay"}


@pytest.mark.parametrize(("given", "most"), [(0, 3 + 2 + 2 + 1), (5, 3 + 2 + 1), (1, 3 + 2 + 1), (6, 3 + 2 + 1 + 1)])
def test_no_more_environments_are_open_than_workers_spares_and_those_that_may_stay_and_the_live_one(
    given: int, most: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environments = slow_environments()
    events = run(monkeypatch, tmp_path, searched(workers=3, prefetch=2, environments=given), environments)
    assert environments.counts.most_live <= most
    assert 4 <= max(arrival.environments for arrival in arrivals(events)) <= most


def test_environments_that_stay_where_they_were_left_save_restores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    few, more = (
        run(monkeypatch, tmp_path / str(count), searched(workers=4, environments=count), slow_environments()) for count in (4, 0)
    )  # fmt: skip
    assert routes(more)["reuse"] > routes(few)["reuse"] and more[-1].t < few[-1].t


@pytest.mark.parametrize("about", [{"isolated": False}, {"fidelity": "client"}])
def test_where_an_environment_may_hold_a_log_in_that_another_waits_for_none_stays(
    about: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environments = slow_environments(**about)
    run(monkeypatch, tmp_path, searched(workers=3), environments)
    assert environments.counts.most_live <= 4


@pytest.mark.parametrize("after", [3.0, 9.3, 20.1, 31.7])
def test_a_cancelled_run_leaves_no_environment_and_resumes_unchanged(after: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings, environments = searched(prefetch=2), slow_environments()

    async def cut_short() -> None:
        async with asyncio.timeout(after):
            await slow_runner(monkeypatch, tmp_path / "cut", environments, settings).run()

    with pytest.raises(TimeoutError), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(cut_short())
    assert environments.counts.live == 0
    whole = run(monkeypatch, tmp_path / "whole", settings)
    assert moves(run(monkeypatch, tmp_path / "cut", settings)) == moves(whole)


@pytest.mark.parametrize("written", [True, False], ids=["after the line", "before the line"])
def test_a_killed_run_loses_its_snapshots_and_resumes_unchanged(written: bool, tmp_path: Path) -> None:
    settings = config(search={"iterations": 12, "k": 4, "prefetch": 1}, limits={"actions": 2})
    with pytest.MonkeyPatch.context() as patch:
        whole = run(patch, tmp_path / "whole", settings)
    assert any(isinstance(event, ev.SnapshotTaken) for event in whole) and prepared(whole)
    for nth in range(1, len(whole), 9 if written else 11):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, nth, written=written)
            with pytest.raises(Killed):
                in_virtual_time(slow_runner(patch, tmp_path / str(nth), slow_environments(), settings).run())
        with pytest.MonkeyPatch.context() as patch:
            resumed = run(patch, tmp_path / str(nth), settings)
        assert moves(resumed) == moves(whole), f"killed at write {nth}"


def test_four_workers_are_faster_in_environments_that_fork(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seconds = {}
    for workers in (1, 4):
        events = run(monkeypatch, tmp_path / str(workers), searched(workers=workers), slow_environments(SANDBOX))
        seconds[workers] = events[-1].t
    assert seconds[1] > 2.5 * seconds[4]


class Failing(ToyFactory):
    """Every other branch of a snapshot breaks while it is made, or stands elsewhere."""

    forked = 0

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
        self.forked += 1
        async with super().fork(snapshot, simulation=simulation) as environment:
            if self.forked % 4 == 1:
                raise EnvironmentFailure("the image is truncated")
            if self.forked % 4 == 3:
                await environment.step(TOY_ACTIONS.action("go", "0"))
            yield environment


def test_forks_that_break_or_drift_cost_time_and_change_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = searched(workers=2, order="selection")
    well = run(monkeypatch, tmp_path / "well", settings)
    ill = run(monkeypatch, tmp_path / "ill", settings, slow_environments(kind=Failing))
    failed = [arrival for arrival in arrivals(ill) if "fork" in "".join(arrival.failed)]
    assert len(failed) > 3 and {arrival.match for arrival in arrivals(ill)} == {"exact"}
    assert moves(ill) == moves(well)


def test_one_worker_acts_at_a_time_where_writes_reach_a_shared_server_and_several_where_they_are_blocked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for mode, most in (("rollback", 4), ("free", 1)):
        settings = msgspec.structs.replace(searched(workers=4, prefetch=2), browser=BrowserConfig(speculation=mode))
        environments = slow_environments(isolated=False)
        run(monkeypatch, tmp_path / mode, settings, environments)
        assert (environments.counts.most_live - 1 == most) if mode == "free" else environments.counts.most_live > most


class FirstReturns(dict[str, float]):
    """Seconds of operations, of which the first returns to snapshots take longer: a busy machine, cold caches."""

    def __init__(self, seconds: Mapping[str, float], *, slow: float, count: int) -> None:
        super().__init__(seconds)
        self._slow, self._left = slow, count

    def get(self, operation: str, default: float = 0.0) -> float:  # type: ignore[override]
        if operation in ("restore", "fork") and self._left > 0:
            self._left -= 1
            return self._slow
        return super().get(operation, default)


@pytest.mark.parametrize(("workers", "most"), [(1, 7), (2, 7)])
def test_where_a_reset_takes_8_s_one_slow_restore_and_one_slow_fork_are_no_reason_to_replay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workers: int, most: int
) -> None:
    """Seconds as recorded. An attempt of one worker replayed 21 times, forked once and took 356 s; now it takes 242 s.

    The slow returns are the very first ones, since the search begins at a snapshot of the live environment.
    """
    recorded = {"open": 1.5, "reset": 8.0, "step": 0.9, "snapshot": 0.8, "restore": 1.3, "fork": 1.6}
    environments = slow_environments(FirstReturns(recorded, slow=12.0, count=2))
    events = run(monkeypatch, tmp_path, searched(workers=workers, iterations=30), environments, cores=2)
    routes = Counter(arrival.route for arrival in arrivals(events))
    assert routes["replay"] <= most and sum(routes[each] for each in ("restore", "fork", "fork+replay", "restore+replay")) >= 12


def test_where_returns_take_longer_than_a_reset_search_loses_little_by_trying_them_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorded = {"open": 1.5, "reset": 8.0, "step": 0.9, "snapshot": 0.8, "restore": 12.0, "fork": 12.0}
    events = run(monkeypatch, tmp_path, searched(workers=1, iterations=30), slow_environments(recorded), cores=2)
    assert Counter(arrival.route for arrival in arrivals(events))["replay"] >= 12 and events[-1].t < 1.06 * 356


@pytest.mark.parametrize("k", [2, 4])
def test_states_that_all_replays_pass_get_a_snapshot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, k: int) -> None:
    recorded = {"open": 1.5, "reset": 8.0, "step": 0.9, "snapshot": 0.8, "restore": 1.3, "fork": 1.6}
    events = run(monkeypatch, tmp_path, searched(workers=1, iterations=30, k=k), slow_environments(recorded), cores=2)
    assert Counter(arrival.route for arrival in arrivals(events))["replay"] <= 2
    taken = [event.node for event in events if isinstance(event, ev.SnapshotTaken)]
    assert len(set(taken)) == len(taken)


TRAC = {"open": 0.5, "reset": 4.0, "step": 0.5, "snapshot": 0.3, "restore": 0.5, "fork": 0.5}
"""Seconds of an application whose start needs a log-in, on a quiet machine."""


def test_the_first_returns_come_from_a_snapshot_of_the_live_environment_taken_while_the_start_is_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events = run(monkeypatch, tmp_path / "one", searched(prefetch=1, iterations=6), slow_environments(TRAC), cores=2)
    (first, *_), began = arrivals(events), next(event.t for event in events if isinstance(event, ev.Reset))
    assert (first.node, first.prepared, routes(events)["replay"]) == (0, True, 0)
    assert first.t == began + 4.0, "two answers of 2 s are all that the first return waited for"
    bare = run(monkeypatch, tmp_path / "bare", searched(iterations=6), slow_environments(TRAC), cores=2)
    assert routes(bare)["replay"] == 0 and moves(bare) == moves(events)


def test_the_likely_next_step_is_taken_while_a_model_thinks_and_the_search_goes_the_same_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain, ahead = (run(monkeypatch, tmp_path / str(spare), searched(prefetch=spare), slow_environments(TRAC), cores=2) for spare in (0, 1))
    assert moves(ahead) == moves(plain)
    acted = [event for event in ahead if isinstance(event, ev.Acted)]
    taken = [event for event in acted if event.ahead]
    assert len(taken) > len(acted) / 3 and all(event.seconds == 0.0 for event in taken)
    thought = sum(2.0 for event in ahead if isinstance(event, ev.Told) and type(event.result).__name__ in ("Valued", "Proposed"))
    began, ended = (next(event.t for event in ahead if isinstance(event, kind)) for kind in (ev.Reset, ev.Decided))
    assert ended - began <= 1.12 * thought, "1.25 without"
