"""Slots with environments that fork, on a clock that only the environments' operations move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.base import Snapshot
from exact.environments.restore.costs import Costs
from exact.environments.restore.slot import Slot
from exact.environments.restore.snapshots import SnapshotStore
from exact.environments.restore.waypoint import Arrival, Waypoint
from exact.environments.toy.environment import Operation
from exact.environments.toy.factory import TOY_ACTIONS, Faults, ToyEnvironment, ToyFactory, chain, form, toy_task
from exact.errors import BudgetExceeded, EnvironmentFailure

SANDBOX = {"reset": 1.0, "step": 1.0, "snapshot": 0.5, "restore": 0.5, "fork": 0.5}
TASK = toy_task("chain")


class Site:
    """Environments of a chain whose operations take so many seconds each, and slots for them."""

    def __init__(self, seconds: Mapping[str, float] = SANDBOX, slots: int = 1, n: int = 12, **environments: Any) -> None:
        self.now, self._seconds = 0.0, seconds
        self.environments = self.kind(chain(n), wait=self._wait, **environments)
        self.store, self.costs = SnapshotStore(self.environments), Costs(cores=64)
        for name, each in seconds.items():
            self.costs.add(name, each)  # type: ignore[arg-type]
        self.slots = [Slot(self.environments, TASK, store=self.store, costs=self.costs, clock=lambda: self.now) for _ in range(slots)]

    kind: type[ToyFactory] = ToyFactory

    async def _wait(self, operation: Operation) -> None:
        self.now += self._seconds.get(operation, 0.0)
        await asyncio.sleep(0)

    async def path(self, depth: int, *, off: bool = False) -> list[Waypoint]:
        """Return a path with that many steps, the last one off it where that is wanted."""
        clean = ToyFactory(self.environments.graph)
        async with clean.open(simulation=True) as environment:
            found = [Waypoint(None, (await environment.reset(TASK)).fingerprint)]
            for step in range(depth):
                action = TOY_ACTIONS.action("go", "off" if off and step == depth - 1 else "on")
                seen = (await environment.step(action)).observation
                found.append(Waypoint(action, seen.fingerprint if seen else ""))
        return found

    async def snapshot_at(self, depth: int) -> None:
        """Take a snapshot at a state with the first slot, which then goes elsewhere."""
        await self.slots[0].arrive(await self.path(depth))
        assert await self.slots[0].snapshot_if_worth(returns=5) is not None
        await self.slots[0].arrive(await self.path(0))


@asynccontextmanager
async def site(*args: Any, **more: Any) -> AsyncIterator[Site]:
    """Return a toy factory that is checked at the end for open environments."""
    found = Site(*args, **more)
    yield found
    for slot in found.slots:
        await slot.close()
    assert found.environments.counts.live == 0


def summary(arrival: Arrival) -> tuple[str, str, int]:
    return arrival.route, arrival.match, arrival.transitions


async def test_the_environment_that_took_a_snapshot_restores_it_and_others_fork_it() -> None:
    async with site(slots=2) as here:
        await here.snapshot_at(6)
        one, other = here.slots
        assert summary(await one.arrive(await here.path(6))) == ("restore", "exact", 0)
        assert summary(await other.arrive(await here.path(6))) == ("fork", "exact", 0)
        assert (here.environments.counts.restores, here.environments.counts.forks, here.environments.counts.live) == (1, 1, 2)


async def test_below_a_snapshot_only_the_rest_is_replayed() -> None:
    async with site(slots=2) as here:
        await here.snapshot_at(6)
        assert summary(await here.slots[0].arrive(await here.path(8))) == ("restore+replay", "exact", 2)
        assert summary(await here.slots[1].arrive(await here.path(7))) == ("fork+replay", "exact", 1)


async def test_an_environment_on_the_way_continues_and_one_beyond_it_does_not() -> None:
    async with site() as here:
        await here.slots[0].arrive(await here.path(3))
        assert summary(await here.slots[0].arrive(await here.path(5))) == ("advance", "exact", 2)
        assert summary(await here.slots[0].arrive(await here.path(4))) == ("replay", "exact", 4)


async def test_where_replay_is_cheaper_it_is_chosen_and_nothing_is_kept() -> None:
    async with site({**SANDBOX, "reset": 0.05, "step": 0.05}) as here:
        await here.slots[0].arrive(await here.path(5))
        assert await here.slots[0].snapshot_if_worth(returns=5) is None
        assert summary(await here.slots[0].arrive(await here.path(4))) == ("replay", "exact", 4)
        assert here.environments.counts.snapshots == 0


async def test_costs_that_are_measured_change_the_route() -> None:
    async with site({"reset": 1.0, "step": 1.0, "snapshot": 0.1, "restore": 0.5, "fork": 0.5}) as here:
        await here.snapshot_at(3)
        assert (await here.slots[0].arrive(await here.path(3))).route == "restore"
        here._seconds = {"reset": 0.01, "step": 0.01, "restore": 9.0, "fork": 9.0, "snapshot": 0.5}
        for _ in range(40):
            await here.slots[0].arrive(await here.path(2))
            await here.slots[0].arrive(await here.path(1))
        await here.slots[0].arrive(await here.path(1, off=True))
        assert (await here.slots[0].arrive(await here.path(3))).route == "replay"


async def test_an_image_that_gave_way_to_others_falls_through_to_the_next_route() -> None:
    async with site() as here:
        await here.snapshot_at(6)
        await here.snapshot_at(3)
        here.environments.drop(next(kept.snapshot for index, kept in here.store.along(await here.path(6))))
        assert summary(await here.slots[0].arrive(await here.path(6))) == ("restore+replay", "exact", 3)
        assert not here.store.has(tuple(await here.path(6)))


class Damaged(ToyFactory):
    """Its images are there and cannot be restored."""

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
        if True:
            raise EnvironmentFailure(f"{snapshot.id} is damaged")
        yield


class DamagedSite(Site):
    kind = Damaged


async def test_a_damaged_image_falls_through_to_the_next_route_and_is_not_tried_again() -> None:
    here = DamagedSite(slots=2)
    await here.snapshot_at(6)
    arrival = await here.slots[1].arrive(await here.path(6))
    assert (summary(arrival), arrival.failed) == (("replay", "exact", 6), ("fork",))
    assert not here.store.has(tuple(await here.path(6))) and here.environments.counts.live == 2
    await here.slots[0].close(), await here.slots[1].close()
    assert here.environments.counts.live == 0


async def test_a_damaged_image_that_was_the_only_way_is_a_fault_of_the_infrastructure_and_no_drift() -> None:
    here = DamagedSite(slots=2)
    await here.snapshot_at(6)
    with pytest.raises(EnvironmentFailure, match="is damaged"):
        await here.slots[1].arrive(await here.path(6), since=6)
    arrival = await here.slots[1].arrive(await here.path(6), since=6)
    assert arrival.match == "drifted" and "no snapshot leads here" in arrival.reason, "the image is gone for good"
    await here.slots[0].close(), await here.slots[1].close()
    assert here.environments.counts.live == 0


class Elsewhere(ToyFactory):
    """Branches of its snapshots are one step further than they should be."""

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
        async with super().fork(snapshot, simulation=simulation) as environment:
            await environment.step(TOY_ACTIONS.action("go", "on"))
            yield environment


class ElsewhereSite(Site):
    kind = Elsewhere


async def test_a_fork_in_another_state_is_never_acted_in() -> None:
    here = ElsewhereSite(slots=2)
    await here.snapshot_at(6)
    arrival = await here.slots[1].arrive(await here.path(7))
    assert (summary(arrival), arrival.failed) == (("replay", "exact", 7), ("fork+replay",))
    await here.slots[0].close(), await here.slots[1].close()


async def test_a_step_that_may_not_be_repeated_is_not() -> None:
    async with site(slots=2) as here:
        await here.snapshot_at(6)
        arrival = await here.slots[1].arrive(await here.path(7), since=7)
        assert (arrival.match, arrival.transitions) == ("drifted", 0) and "not repeated" in arrival.reason
        assert (await here.slots[1].arrive(await here.path(6), since=6)).route == "fork"
        assert (await here.slots[1].arrive(await here.path(8), since=6)).route == "advance", "what came after the write may be repeated"


async def test_a_slower_route_with_fewer_steps_is_taken_when_the_budget_is_short() -> None:
    def at_most(steps: int) -> None:
        if steps > 3:
            raise BudgetExceeded("search", "transitions", 3, wanted=steps)

    async with site({**SANDBOX, "step": 0.01, "reset": 0.01, "snapshot": 0.0, "restore": 0.001}) as here:
        await here.snapshot_at(6)
        here.costs.add("restore", 100.0), here.costs.add("fork", 300.0)
        assert (await here.slots[0].arrive(await here.path(6), reserve=at_most)).route == "restore"
        with pytest.raises(BudgetExceeded):
            await here.slots[0].arrive(await here.path(4), reserve=at_most)


async def test_no_snapshot_is_taken_of_a_state_that_has_one_or_whose_environment_is_busy() -> None:
    async with site() as here:
        await here.snapshot_at(6)
        await here.slots[0].arrive(await here.path(6))
        assert await here.slots[0].snapshot_if_worth(returns=5) is None
        await here.slots[0].act(TOY_ACTIONS.action("go", "on"))
        environment = here.slots[0]._environment
        environment.obstacle = "a page is loading"  # type: ignore[union-attr]
        assert await here.slots[0].snapshot_if_worth(returns=5) is None
        environment.obstacle = ""  # type: ignore[union-attr]
        assert await here.slots[0].snapshot_if_worth(returns=5) is not None


async def test_only_one_of_two_slots_at_a_state_takes_the_snapshot() -> None:
    async with site(slots=2) as here:
        for each in here.slots:
            await each.arrive(await here.path(6))
        taken = await asyncio.gather(*(each.snapshot_if_worth(returns=5) for each in here.slots))
        assert [snapshot is not None for snapshot in taken] == [True, False]


async def test_a_snapshot_that_fails_leaves_the_environment_where_it_stood() -> None:
    async with site() as here:
        await here.slots[0].arrive(await here.path(12))
        assert here.slots[0].is_at(await here.path(12))
        assert await here.slots[0].snapshot_if_worth(returns=5) is None, "the episode has ended"
        assert here.slots[0].opened


async def test_snapshots_outside_the_subtree_are_dropped_and_those_on_the_way_to_the_root_stay() -> None:
    async with site() as here:
        for depth in (3, 5, 8):
            await here.snapshot_at(depth)
        here.store.retain_below(await here.path(5))
        assert len(here.store) == 3
        here.store.retain_below(await here.path(6, off=True))
        assert [index for index, _ in here.store.along(await here.path(9))] == [5, 3]


async def test_a_slot_that_is_cancelled_in_a_fork_leaves_no_environment() -> None:
    async with site(slots=2) as here:
        await here.snapshot_at(6)
        hanging = asyncio.Event()

        async def hang(operation: Operation) -> None:
            hanging.set()
            await asyncio.sleep(3600)

        here.environments._shared.__dict__["wait"] = hang
        moving = asyncio.ensure_future(here.slots[1].arrive(await here.path(6)))
        await hanging.wait()
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)
        assert here.environments.counts.live == 1 and not here.slots[1].opened


@given(st.data())
async def test_a_healthy_environment_arrives_after_any_sequence_of_saves_drops_and_faults(data: st.DataObject) -> None:
    here = Site(slots=2, n=6)
    for _ in range(data.draw(st.integers(1, 12))):
        slot, depth = data.draw(st.sampled_from(here.slots)), data.draw(st.integers(0, 6))
        path = await here.path(depth)
        arrival = await slot.arrive(path)
        assert arrival.match == "exact" and slot.is_at(path)
        assert arrival.transitions <= depth
        match data.draw(st.sampled_from(["keep", "drop", "close", "nothing"])):
            case "keep":
                await slot.snapshot_if_worth(returns=data.draw(st.integers(0, 5)))
            case "drop" if here.environments._shared.snapshots:
                here.environments._shared.snapshots.pop(data.draw(st.sampled_from(sorted(here.environments._shared.snapshots))))
            case "close":
                await slot.close()
    for slot in here.slots:
        await slot.close()
    assert here.environments.counts.live == 0


async def test_drift_of_resets_does_not_affect_restores_from_a_snapshot() -> None:
    async with site(faults=Faults(drift_after=2), slots=2) as here:
        await here.snapshot_at(6)
        assert summary(await here.slots[1].arrive(await here.path(6))) == ("fork", "exact", 0)
        assert (await here.slots[1].arrive(await here.path(2))).match == "drifted"


def test_boxes_are_environments_too() -> None:
    assert SnapshotStore(ToyFactory(form(2))).forks is not None


class Ticking(ToyFactory):
    """A clock on every page shows another time at each look; it is masked."""

    looks = 0

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
        async with super().open(simulation=simulation) as environment:
            real = environment._observe

            def observed(slot: Any) -> Any:
                Ticking.looks += 1
                return msgspec.structs.replace(real(slot), volatile=str(Ticking.looks))

            environment._observe = observed  # type: ignore[method-assign]
            yield environment


class TickingSite(Site):
    kind = Ticking


async def test_a_state_that_differs_in_volatile_parts_only_is_equivalent() -> None:
    here = TickingSite()
    first = await here.slots[0].arrive(await here.path(3))
    await here.slots[0].arrive(await here.path(0))
    again = await here.slots[0].arrive(await here.path(3))
    assert [each.match for each in (first, again)] == ["exact", "equivalent"] and again.arrived
    await here.slots[0].close()


async def test_a_snapshot_that_left_the_server_behind_is_gone_once_something_was_written_outside() -> None:
    here = Site(slots=1)
    await here.snapshot_at(6)
    (kept,) = [kept for _, kept in here.store.along(await here.path(6))]
    here.store.drop_outdated()
    assert len(here.store) == 1
    here.store.add(kept._replace(snapshot=msgspec.structs.replace(kept.snapshot, fidelity="client")))
    here.store.drop_outdated()
    assert len(here.store) == 0
    await here.slots[0].close()


async def leaves(here: Site, count: int = 12) -> list[str]:
    """Return the routes to states below one state, each of which the search comes to once and acts in."""
    found = []
    for depth in range(2, count):
        arrival = await here.slots[depth % len(here.slots)].arrive(await here.path(depth, off=True))
        await here.slots[depth % len(here.slots)].snapshot_if_worth(returns=0.2)
        found.append(arrival.route)
        assert arrival.arrived
    return found


@pytest.mark.parametrize("slots", [1, 4])
async def test_where_a_reset_takes_long_a_snapshot_is_taken_on_the_way_to_states_that_are_visited_once(slots: int) -> None:
    """Costs as recorded with an application whose start page takes 8 s; it was replayed 21 times and forked once."""
    async with site({"reset": 8.0, "step": 0.9, "snapshot": 0.8, "restore": 1.3, "fork": 1.6}, slots=slots) as here:
        here.costs = Costs(cores=64)
        for slot in here.slots:
            slot._costs = here.costs
        routes = await leaves(here)
        assert routes.count("replay") <= slots + 1
        assert here.now < 0.7 * sum(8.0 + 0.9 * depth for depth in range(2, 12))


async def test_where_a_reset_is_quick_none_is_taken_on_the_way() -> None:
    async with site({"reset": 0.3, "step": 0.02, "snapshot": 0.8, "restore": 1.3, "fork": 1.6}) as here:
        assert set(await leaves(here)) == {"replay"} and here.environments.counts.snapshots == 0


async def test_a_snapshot_on_the_way_is_reported_with_its_waypoint() -> None:
    async with site({"reset": 8.0, "step": 1.0, "snapshot": 0.5, "restore": 1.0, "fork": 1.0}) as here:
        await here.slots[0].arrive(await here.path(2, off=True))
        (passed,) = (await here.slots[0].arrive(await here.path(3, off=True))).snapshots
        assert (passed.waypoint, passed.seconds, passed.snapshot.fingerprint) == (1, 0.5, (await here.path(1))[-1].fingerprint)
