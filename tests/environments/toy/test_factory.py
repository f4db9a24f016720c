"""Toy environments: the contract, and faults on demand."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.toy.factory import (
    WORLDS,
    Faults,
    ToyEdge,
    ToyEnvironment,
    ToyState,
    ToyWorld,
    ToyWorlds,
    chain,
    form,
    maze,
    toy_task,
    toy_world,
)
from exact.errors import ActionError, EnvironmentError_, UsageError
from exact.observation import Observation
from exact.task import Outcome

TASK = toy_task("chain")
OUTCOME = Outcome(actions=())


async def go(world: ToyEnvironment, *names: str) -> Observation | None:
    seen = None
    for name in names:
        seen = (await world.step(world.actions.action("go", name))).observation
    return seen


async def test_the_winning_path_scores_and_a_wrong_one_does_not() -> None:
    async with ToyWorlds(chain(2)).open(speculative=False) as world:
        await world.reset(TASK)
        assert not (await world.evaluate(OUTCOME)).success
        await go(world, "on", "on")
        assert (await world.evaluate(OUTCOME)).value == 1.0
        await world.reset(TASK)
        await go(world, "on", "off")
        assert (await world.evaluate(OUTCOME)).value == 0.0


async def test_an_ended_episode_shows_nothing_and_takes_no_action() -> None:
    async with ToyWorlds(chain(1)).open(speculative=False) as world:
        await world.reset(TASK)
        last = await world.step(world.actions.parse('go "on"'))
        assert (last.observation, last.terminated) == (None, True)
        with pytest.raises(ActionError, match="ended"):
            await go(world, "on")
        with pytest.raises(EnvironmentError_, match="ended"):
            await world.snapshot()


async def test_a_stop_scores_by_its_answer() -> None:
    asked = ToyWorld(name="sum", instruction="2 + 2?", start="q", states={"q": ToyState(answers={"4": 1.0, "four": 0.5})})
    async with ToyWorlds(asked).open(speculative=False) as world:
        for answer, value in (("4", 1.0), ("four", 0.5), ("5", 0.0)):
            await world.reset(toy_task(asked))
            assert (await world.step(world.actions.action("stop", answer))).terminated
            assert (await world.evaluate(OUTCOME)).value == value


async def test_an_unknown_link_is_refused_with_the_valid_ones_and_changes_nothing() -> None:
    async with ToyWorlds(chain(3)).open(speculative=False) as world:
        await world.reset(TASK)
        with pytest.raises(ActionError, match='go "on"'):
            await go(world, "up")
        assert "Step 1" in (await go(world, "on") or pytest.fail()).text


@given(st.data())
async def test_restoring_returns_to_exactly_what_was_seen_and_branches_do_not_touch_each_other(data: st.DataObject) -> None:
    async with ToyWorlds(maze(4, 4, seed=1)).open(speculative=True) as world:
        here = await world.reset(TASK)
        seen = [(await world.snapshot(), here)]
        for _ in range(data.draw(st.integers(1, 20))):
            if data.draw(st.booleans()):
                snapshot, then = data.draw(st.sampled_from(seen))
                here = await world.restore(snapshot)
                assert here == then and here.fingerprint == snapshot.fingerprint
            links = [e.name for e in here.elements if e.role == "link"]
            moved = await go(world, data.draw(st.sampled_from(links)))
            if moved is None:
                here = await world.restore(seen[0][0])
            else:
                here = moved
                seen.append((await world.snapshot(), here))
        for snapshot, then in seen:
            assert await world.restore(snapshot) == then


async def test_replaying_gives_what_a_snapshot_gives() -> None:
    worlds = ToyWorlds(form(3))
    async with worlds.open(speculative=True) as one, worlds.open(speculative=True) as other:
        for world in (one, other):
            await world.reset(TASK)
        seen = await go(one, "toggle A", "toggle C", "toggle A")
        assert seen == await go(other, "toggle A", "toggle C", "toggle A")


async def test_a_world_has_only_its_own_snapshots_and_a_replay_world_has_none() -> None:
    worlds = ToyWorlds(chain(3))
    async with worlds.open(speculative=True) as one, worlds.open(speculative=True) as other:
        await one.reset(TASK)
        await other.reset(TASK)
        foreign = await one.snapshot()
        assert foreign.fingerprint == (await other.snapshot()).fingerprint
        with pytest.raises(EnvironmentError_, match="gone"):
            await other.restore(foreign)
    async with ToyWorlds(chain(3), fidelity="replay").open(speculative=True) as world:
        await world.reset(TASK)
        assert world.capabilities.fidelity == "replay"
        with pytest.raises(EnvironmentError_, match="no snapshots"):
            await world.snapshot()


async def test_every_nth_step_breaks_the_world_until_it_is_reset() -> None:
    worlds = ToyWorlds(chain(9), faults=Faults(fail_every=3))
    async with worlds.open(speculative=True) as world:
        await world.reset(TASK)
        snapshot = await world.snapshot()
        await go(world, "on", "on")
        with pytest.raises(EnvironmentError_, match="step 3"):
            await go(world, "on")
        with pytest.raises(EnvironmentError_, match="broken"):
            await world.restore(snapshot)
        assert "Step 0" in (await world.reset(TASK)).text
        with pytest.raises(EnvironmentError_, match="gone"):
            await world.restore(snapshot)
        assert await go(world, "on")


async def test_drift_shows_in_fingerprints_of_replays_but_not_of_snapshots() -> None:
    worlds = ToyWorlds(chain(3), faults=Faults(drift_after=1))
    async with worlds.open(speculative=True) as one, worlds.open(speculative=True) as other:
        first = await one.reset(TASK)
        snapshot = await one.snapshot()
        again, third = await other.reset(TASK), await other.reset(TASK)
        assert len({first.fingerprint, again.fingerprint, third.fingerprint}) == 3
        assert await one.restore(snapshot) == first
        assert not one.capabilities.deterministic


@pytest.mark.parametrize(
    "sealed, speculative, kind, ended, reached",
    [(False, True, "blocked", False, 0), (False, False, "request", True, 1), (True, True, "request", True, 0)],
)
async def test_a_write_is_blocked_in_a_try_done_for_real_and_undone_where_the_world_is_sealed(
    sealed: bool, speculative: bool, kind: str, ended: bool, reached: int
) -> None:
    worlds = ToyWorlds(form(2, write=True), sealed=sealed)
    async with worlds.open(speculative=speculative) as world:
        before = await world.reset(TASK)
        moved = await world.step(world.actions.parse('go "submit"'))
        assert [(e.kind, e.is_write) for e in moved.effects] == [(kind, kind == "request")]
        assert (moved.terminated, len(worlds.counts.writes)) == (ended, reached)
        assert moved.observation == (None if ended else before)


async def test_latency_is_awaited_before_the_effect_and_a_second_call_meanwhile_is_refused() -> None:
    gate, entered = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        entered.set()
        await gate.wait()

    async with ToyWorlds(chain(3), latency=wait).open(speculative=True) as world:
        await world.reset(TASK)
        step = asyncio.create_task(go(world, "on"))
        await entered.wait()
        with pytest.raises(UsageError, match="one call at a time"):
            await world.snapshot()
        gate.set()
        assert "Step 1" in (await step or pytest.fail()).text


async def test_counts_tell_what_was_done_and_leaving_closes() -> None:
    worlds = ToyWorlds(chain(3))
    async with worlds.open(speculative=True) as world:
        with pytest.raises(EnvironmentError_, match="call reset first"):
            await go(world, "on")
        await world.reset(TASK)
        await go(world, "on")
    await world.close()
    with pytest.raises(EnvironmentError_, match="closed"):
        await world.reset(TASK)
    counts = worlds.counts
    assert (counts.opened, counts.closed, counts.resets, counts.steps) == (1, 1, 1, 2)


@pytest.mark.parametrize("name", WORLDS)
def test_a_ready_made_world_is_the_same_from_the_same_seed_and_its_task_says_so(name: str) -> None:
    assert toy_world(name, 3) == toy_world(name, 3)
    task = toy_task(name, 3)
    assert (task.id, task.instruction, task.seed) == (f"toy/{name}?seed=3", toy_world(name, 3).instruction, 3)


def test_an_unknown_world_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="'bandit'"):
        toy_task("bandid")


SENSELESS = [
    ("x", ToyState()),
    ("s", ToyState(reward=1.0)),
    ("s", ToyState(edges={"a": ToyEdge(to="x")})),
    ("s", ToyState(edges={"a": ToyEdge(to="s", prior=0.0)})),
    ("s", ToyState(looks=1.5)),
]


@pytest.mark.parametrize("start, state", SENSELESS)
def test_a_world_that_makes_no_sense_is_refused(start: str, state: ToyState) -> None:
    with pytest.raises(UsageError):
        ToyWorld(name="w", instruction="", start=start, states={"s": state})
