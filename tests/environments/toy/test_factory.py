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
    ToyFactory,
    ToyGraph,
    ToyState,
    chain,
    form,
    maze,
    toy_graph,
    toy_task,
)
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.task import Outcome

TASK = toy_task("chain")
OUTCOME = Outcome(actions=())


async def go(environment: ToyEnvironment, *names: str) -> Observation | None:
    seen = None
    for name in names:
        seen = (await environment.step(environment.actions.action("go", name))).observation
    return seen


async def test_the_winning_path_scores_and_a_wrong_one_does_not() -> None:
    async with ToyFactory(chain(2)).open(simulation=False) as environment:
        await environment.reset(TASK)
        assert not (await environment.evaluate(OUTCOME)).success
        await go(environment, "on", "on")
        assert (await environment.evaluate(OUTCOME)).value == 1.0
        await environment.reset(TASK)
        await go(environment, "on", "off")
        assert (await environment.evaluate(OUTCOME)).value == 0.0


async def test_an_ended_episode_shows_nothing_and_takes_no_action() -> None:
    async with ToyFactory(chain(1)).open(simulation=False) as environment:
        await environment.reset(TASK)
        last = await environment.step(environment.actions.parse('go "on"'))
        assert (last.observation, last.terminated) == (None, True)
        with pytest.raises(ActionError, match="ended"):
            await go(environment, "on")
        with pytest.raises(EnvironmentFailure, match="ended"):
            await environment.snapshot()


async def test_a_stop_scores_by_its_answer() -> None:
    asked = ToyGraph(name="sum", instruction="2 + 2?", start="q", states={"q": ToyState(answers={"4": 1.0, "four": 0.5})})
    async with ToyFactory(asked).open(simulation=False) as environment:
        for answer, value in (("4", 1.0), ("four", 0.5), ("5", 0.0)):
            await environment.reset(toy_task(asked))
            assert (await environment.step(environment.actions.action("stop", answer))).terminated
            assert (await environment.evaluate(OUTCOME)).value == value


async def test_an_unknown_link_is_refused_with_the_valid_ones_and_changes_nothing() -> None:
    async with ToyFactory(chain(3)).open(simulation=False) as environment:
        await environment.reset(TASK)
        with pytest.raises(ActionError, match='go "on"'):
            await go(environment, "up")
        assert "Step 1" in (await go(environment, "on") or pytest.fail()).text


@given(st.data())
async def test_restoring_returns_to_exactly_what_was_seen_and_branches_do_not_touch_each_other(data: st.DataObject) -> None:
    async with ToyFactory(maze(4, 4, seed=1)).open(simulation=True) as environment:
        here = await environment.reset(TASK)
        seen = [(await environment.snapshot(), here)]
        for _ in range(data.draw(st.integers(1, 20))):
            if data.draw(st.booleans()):
                snapshot, then = data.draw(st.sampled_from(seen))
                here = await environment.restore(snapshot)
                assert here == then and here.fingerprint == snapshot.fingerprint
            links = [e.name for e in here.elements if e.role == "link"]
            moved = await go(environment, data.draw(st.sampled_from(links)))
            if moved is None:
                here = await environment.restore(seen[0][0])
            else:
                here = moved
                seen.append((await environment.snapshot(), here))
        for snapshot, then in seen:
            assert await environment.restore(snapshot) == then


async def test_replaying_gives_what_a_snapshot_gives() -> None:
    environments = ToyFactory(form(3))
    async with environments.open(simulation=True) as one, environments.open(simulation=True) as other:
        for environment in (one, other):
            await environment.reset(TASK)
        seen = await go(one, "toggle A", "toggle C", "toggle A")
        assert seen == await go(other, "toggle A", "toggle C", "toggle A")


async def test_an_environment_has_only_its_own_snapshots_and_a_replay_environment_has_none() -> None:
    environments = ToyFactory(chain(3))
    async with environments.open(simulation=True) as one, environments.open(simulation=True) as other:
        await one.reset(TASK)
        await other.reset(TASK)
        foreign = await one.snapshot()
        assert foreign.fingerprint == (await other.snapshot()).fingerprint
        with pytest.raises(EnvironmentFailure, match="gone"):
            await other.restore(foreign)
    async with ToyFactory(chain(3), fidelity="replay").open(simulation=True) as environment:
        await environment.reset(TASK)
        assert environment.capabilities.fidelity == "replay"
        with pytest.raises(EnvironmentFailure, match="no snapshots"):
            await environment.snapshot()


async def test_every_nth_step_breaks_the_environment_until_it_is_reset() -> None:
    environments = ToyFactory(chain(9), faults=Faults(fail_every=3))
    async with environments.open(simulation=True) as environment:
        await environment.reset(TASK)
        snapshot = await environment.snapshot()
        await go(environment, "on", "on")
        with pytest.raises(EnvironmentFailure, match="step 3"):
            await go(environment, "on")
        with pytest.raises(EnvironmentFailure, match="broken"):
            await environment.restore(snapshot)
        assert "Step 0" in (await environment.reset(TASK)).text
        with pytest.raises(EnvironmentFailure, match="gone"):
            await environment.restore(snapshot)
        assert await go(environment, "on")


async def test_drift_shows_in_fingerprints_of_replays_but_not_of_snapshots() -> None:
    environments = ToyFactory(chain(3), faults=Faults(drift_after=1))
    async with environments.open(simulation=True) as one, environments.open(simulation=True) as other:
        first = await one.reset(TASK)
        snapshot = await one.snapshot()
        again, third = await other.reset(TASK), await other.reset(TASK)
        assert len({first.fingerprint, again.fingerprint, third.fingerprint}) == 3
        assert await one.restore(snapshot) == first
        assert not one.capabilities.deterministic


@pytest.mark.parametrize(
    "isolated, simulation, kind, ended, reached",
    [(False, True, "blocked", False, 0), (False, False, "request", True, 1), (True, True, "request", True, 0)],
)
async def test_a_write_is_blocked_in_a_try_done_for_real_and_undone_where_the_environment_is_isolated(
    isolated: bool, simulation: bool, kind: str, ended: bool, reached: int
) -> None:
    environments = ToyFactory(form(2, write=True), isolated=isolated)
    async with environments.open(simulation=simulation) as environment:
        before = await environment.reset(TASK)
        moved = await environment.step(environment.actions.parse('go "submit"'))
        assert [(e.kind, e.is_write) for e in moved.effects] == [(kind, kind == "request")]
        assert (moved.terminated, len(environments.counts.writes)) == (ended, reached)
        assert moved.observation == (None if ended else before)


async def test_latency_is_awaited_before_the_effect_and_a_second_call_meanwhile_is_refused() -> None:
    gate, entered = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        entered.set()
        await gate.wait()

    async with ToyFactory(chain(3), latency=wait).open(simulation=True) as environment:
        await environment.reset(TASK)
        step = asyncio.create_task(go(environment, "on"))
        await entered.wait()
        with pytest.raises(UsageError, match="one call at a time"):
            await environment.snapshot()
        gate.set()
        assert "Step 1" in (await step or pytest.fail()).text


async def test_counts_tell_what_was_done_and_leaving_closes() -> None:
    environments = ToyFactory(chain(3))
    async with environments.open(simulation=True) as environment:
        with pytest.raises(EnvironmentFailure, match="call reset first"):
            await go(environment, "on")
        await environment.reset(TASK)
        await go(environment, "on")
    await environment.close()
    with pytest.raises(EnvironmentFailure, match="closed"):
        await environment.reset(TASK)
    counts = environments.counts
    assert (counts.opened, counts.closed, counts.resets, counts.steps) == (1, 1, 1, 2)


@pytest.mark.parametrize("name", WORLDS)
def test_a_ready_made_environment_is_the_same_from_the_same_seed_and_its_task_says_so(name: str) -> None:
    assert toy_graph(name, 3) == toy_graph(name, 3)
    task = toy_task(name, 3)
    assert (task.id, task.instruction, task.seed) == (f"toy/{name}?seed=3", toy_graph(name, 3).instruction, 3)


def test_an_unknown_environment_names_the_nearest() -> None:
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
def test_an_environment_that_makes_no_sense_is_refused(start: str, state: ToyState) -> None:
    with pytest.raises(UsageError):
        ToyGraph(name="w", instruction="", start=start, states={"s": state})
