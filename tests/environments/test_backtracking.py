"""An agent's own steps back: by snapshots, by replay, and refused where a write would stay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from exact.environments.backtracking import ELSEWHERE, BacktrackingEnvironment, BacktrackingFactory
from exact.environments.base import Environment, Snapshot
from exact.environments.toy.factory import Counts, Faults, ToyFactory
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState
from exact.environments.toy.known import toy_task
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation

ROAD = ToyGraph(
    name="road",
    instruction="Go on.",
    start="a",
    states={
        "a": ToyState(text="a", edges={"on": ToyEdge(to="b"), "post": ToyEdge(to="b", write=True)}),
        "b": ToyState(text="b", edges={"on": ToyEdge(to="c"), "post": ToyEdge(to="c", write=True)}),
        "c": ToyState(text="c", edges={"on": ToyEdge(to="d")}),
        "d": ToyState(reward=1.0),
    },
)
TASK = toy_task(ROAD)


@asynccontextmanager
async def road(**settings: Any) -> AsyncIterator[tuple[BacktrackingEnvironment, Counts]]:
    """Open the road, at its start."""
    factory = ToyFactory(ROAD, **settings)
    async with BacktrackingFactory(factory).open(simulation=False) as environment:
        assert isinstance(environment, BacktrackingEnvironment)
        await environment.reset(TASK)
        yield environment, factory.counts


async def take(environment: Environment, *written: str) -> str:
    """Take actions and return the text of the last state."""
    seen: Observation | None = None
    for each in written:
        seen = (await environment.step(environment.actions.parse(each))).observation
    return seen.elements[0].name if seen else ""


@pytest.mark.parametrize("fidelity", ["full", "replay"])
async def test_a_step_back_and_a_restart_return_to_where_the_path_was(fidelity: str) -> None:
    async with road(fidelity=fidelity) as (environment, counts):
        assert (await take(environment, 'go "on"', 'go "on"', "step_back"), await take(environment, "step_back")) == ("b", "a")
        assert (await take(environment, 'go "on"', 'go "on"', "restart"), await take(environment, 'go "on"')) == ("a", "b")
        assert (counts.restores, counts.resets) == ((3, 1) if fidelity == "full" else (0, 4))


async def test_a_step_back_after_the_end_goes_on_before_it() -> None:
    async with road() as (environment, _):
        assert await take(environment, 'go "on"', 'go "on"', 'go "on"', "step_back") == "c"


async def test_there_is_no_way_back_from_the_start() -> None:
    async with road() as (environment, _):
        for name in ("step_back", "restart"):
            with pytest.raises(ActionError, match="nothing to step back from"):
                await take(environment, name)


@pytest.mark.parametrize("fidelity", ["full", "replay"])
async def test_a_write_outside_is_neither_taken_back_nor_repeated(fidelity: str) -> None:
    async with road(isolated=False, fidelity=fidelity) as (environment, counts):
        await take(environment, 'go "post"')
        with pytest.raises(ActionError, match="cannot be taken back"):
            await take(environment, "step_back")
        await take(environment, 'go "on"')
        if fidelity == "full":
            assert await take(environment, "step_back") == "b"
        else:
            with pytest.raises(ActionError, match="cannot be repeated"):
                await take(environment, "step_back")
        with pytest.raises(ActionError, match="cannot be taken back"):
            await take(environment, "restart")
        assert counts.writes == ['a: go "post"']


@pytest.mark.parametrize(("restored", "resets"), [("full", 1), ("page", 2)])
async def test_a_write_that_a_reset_undoes_is_taken_back_by_what_holds_the_server(restored: str, resets: int) -> None:
    class Keeping(BacktrackingEnvironment):
        async def _keep(self) -> None:
            await super()._keep()
            self._path[-1].snapshot = msgspec.structs.replace(self._path[-1].snapshot, fidelity=restored)  # type: ignore[type-var]

    factory = ToyFactory(ROAD, isolated=True)
    async with factory.open(simulation=False) as inner:
        environment = Keeping(inner, factory)
        await environment.reset(TASK)
        assert await take(environment, 'go "on"', 'go "post"', "step_back") == "b"
        assert factory.counts.resets == resets


async def test_a_lost_snapshot_is_replaced_by_a_replay() -> None:
    async with road() as (environment, counts):
        await take(environment, 'go "on"', 'go "on"')
        for each in environment._path:
            if each.snapshot:
                environment._snapshots.drop(each.snapshot)  # type: ignore[union-attr]
        assert (await take(environment, "step_back"), counts.resets) == ("b", 2)


async def test_a_way_back_that_leads_elsewhere_is_told_and_gone_on_from() -> None:
    async with road(fidelity="replay", faults=Faults(drift_after=1)) as (environment, _):
        await take(environment, 'go "on"', 'go "on"')
        transition = await environment.step(environment.actions.action("step_back"))
        assert transition.info == {"refused": ELSEWHERE}
        assert await environment.step(environment.actions.action("step_back"))


async def test_snapshots_are_dropped_with_the_states_that_were_left() -> None:
    factory = ToyFactory(ROAD)
    async with BacktrackingFactory(factory).open(simulation=False) as environment:
        await environment.reset(TASK)
        await take(environment, 'go "on"', 'go "on"', "restart", 'go "on"')
        assert len(factory._shared.snapshots) == 1
        await environment.close()
        assert not factory._shared.snapshots


async def test_others_get_no_snapshots_of_it() -> None:
    async with road() as (environment, _):
        assert environment.capabilities.fidelity == "replay"
        with pytest.raises(EnvironmentFailure, match="gives no snapshots"):
            await environment.snapshot()
        with pytest.raises(EnvironmentFailure, match="gives no snapshots"):
            await environment.restore(Snapshot(id="0.0", fidelity="full", fingerprint=""))


async def test_what_a_person_did_is_not_repeated() -> None:
    async with road(fidelity="replay") as (environment, _):
        inner = environment._inner

        async def look() -> object:
            return await inner.step(inner.actions.parse('go "on"'))

        inner.look = look  # type: ignore[attr-defined]
        await environment.look()
        await take(environment, 'go "on"')
        with pytest.raises(ActionError, match="cannot be repeated"):
            await take(environment, "step_back")
        assert await take(environment, "restart") == "a"
