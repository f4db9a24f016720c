"""Pools of worlds that attempts share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from exact.environments.base import Worlds
from exact.environments.pool.slot import PoolLimits
from exact.environments.toy.factory import ToyWorlds, toy_task
from exact.errors import EnvironmentError_
from exact.evaluation.environments import KEPT, PooledWorlds
from exact.task import Task
from tests.evaluation.toys import WORLD


class Opening:
    """Counts which kinds are open."""

    def __init__(self) -> None:
        self.opened, self.live = list[str](), set[str]()

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[Worlds]:
        self.opened.append(task.id)
        self.live.add(task.id)
        yield ToyWorlds(WORLD)
        self.live.discard(task.id)


def pooled(opening: Opening) -> PooledWorlds:
    return PooledWorlds(lambda task: task.id, opening, PoolLimits(worlds=4))


TASK = toy_task(WORLD)


async def test_what_broke_is_opened_anew_for_the_next_and_stays_for_who_is_under_way() -> None:
    opening = Opening()
    async with pooled(opening) as worlds, worlds.at(TASK, "under way") as old:
        with pytest.raises(EnvironmentError_):
            async with worlds.at(TASK, "broken"):
                raise EnvironmentError_("the browser is gone")
        async with worlds.at(TASK, "next") as new:
            assert new is not old and len(opening.opened) == 2
        async with old.open(speculative=False) as world:
            await world.reset(TASK)
    assert not opening.live


@pytest.mark.parametrize("sealed", [True, False])
async def test_a_kind_is_asked_once_whether_it_keeps_what_is_done_and_the_world_that_was_asked_is_used(sealed: bool) -> None:
    made = ToyWorlds(WORLD, sealed=sealed)

    @asynccontextmanager
    async def opening(task: Task) -> AsyncIterator[Worlds]:
        yield made

    async with PooledWorlds(lambda task: "toy", opening, PoolLimits()) as worlds:
        assert [await worlds.keeps(TASK), await worlds.keeps(toy_task(WORLD, 1))] == [not sealed] * 2
        assert (made.counts.opened, made.counts.resets) == (1, 0)
        async with worlds.at(TASK, "attempt") as share, share.open(speculative=False):
            assert made.counts.opened == 1


async def test_kinds_that_nobody_uses_are_closed_but_for_the_last_few() -> None:
    opening = Opening()
    async with pooled(opening) as worlds:
        for seed in range(KEPT + 3):
            async with worlds.at(toy_task(WORLD, seed), "tree"):
                assert len(opening.live) <= KEPT
        async with worlds.at(toy_task(WORLD, KEPT + 2), "tree"):
            assert len(opening.opened) == KEPT + 3, "one that was used last is still open"
    assert not opening.live
