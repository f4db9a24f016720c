"""Pools of environments that attempts share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from exact.environments.base import EnvironmentFactory
from exact.environments.pool.capacity import PoolLimits
from exact.environments.toy.factory import ToyFactory, toy_task
from exact.errors import EnvironmentFailure
from exact.evaluation.local import KEPT, PooledFactory
from exact.task import Task
from tests.evaluation.toys import WORLD


class Opening:
    """A factory that counts the open kinds."""

    def __init__(self) -> None:
        self.opened, self.live = list[str](), set[str]()

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[EnvironmentFactory]:
        self.opened.append(task.id)
        self.live.add(task.id)
        yield ToyFactory(WORLD)
        self.live.discard(task.id)


def pooled(opening: Opening) -> PooledFactory:
    return PooledFactory(lambda task: task.id, opening, PoolLimits(environments=4))


TASK = toy_task(WORLD)


async def test_a_broken_factory_is_reopened_for_the_next_attempt_and_stays_for_running_ones() -> None:
    opening = Opening()
    async with pooled(opening) as environments, environments.at(TASK, "under way") as old:
        with pytest.raises(EnvironmentFailure):
            async with environments.at(TASK, "broken"):
                raise EnvironmentFailure("the browser is gone")
        async with environments.at(TASK, "next") as new:
            assert new is not old and len(opening.opened) == 2
        async with old.open(simulation=False) as environment:
            await environment.reset(TASK)
    assert not opening.live


@pytest.mark.parametrize("isolated", [True, False])
async def test_a_kind_is_asked_once_whether_it_keeps_what_is_done_and_the_environment_that_was_asked_is_used(isolated: bool) -> None:
    made = ToyFactory(WORLD, isolated=isolated)

    @asynccontextmanager
    async def opening(task: Task) -> AsyncIterator[EnvironmentFactory]:
        yield made

    async with PooledFactory(lambda task: "toy", opening, PoolLimits()) as environments:
        assert [await environments.persists(TASK), await environments.persists(toy_task(WORLD, 1))] == [not isolated] * 2
        assert (made.counts.opened, made.counts.resets) == (1, 0)
        async with environments.at(TASK, "attempt") as share, share.open(simulation=False):
            assert made.counts.opened == 1


async def test_kinds_without_users_are_closed_but_for_the_last_few() -> None:
    opening = Opening()
    async with pooled(opening) as environments:
        for seed in range(KEPT + 3):
            async with environments.at(toy_task(WORLD, seed), "tree"):
                assert len(opening.live) <= KEPT
        async with environments.at(toy_task(WORLD, KEPT + 2), "tree"):
            assert len(opening.opened) == KEPT + 3, "one that was used last is still open"
    assert not opening.live
