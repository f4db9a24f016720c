"""A user's code with the names of an earlier version still works, and is told the new ones."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from exact.deprecated import with_simulation
from exact.environments.base import Capabilities, Environment, ForkableFactory, Snapshot
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain, toy_task
from exact.runs.runner import Runner, create
from tests.runs.toys import config, toy_agent


class Earlier:
    """A factory that was written before `speculative` was renamed."""

    def __init__(self) -> None:
        self.inner, self.asked = ToyFactory(chain(2)), list[bool]()

    @asynccontextmanager
    async def open(self, *, speculative: bool) -> AsyncIterator[Environment]:
        self.asked.append(speculative)
        async with self.inner.open(simulation=speculative) as environment:
            yield environment


class EarlierForks(Earlier):
    def fork(self, snapshot: Snapshot, *, speculative: bool) -> AbstractAsyncContextManager[Environment]:
        return self.inner.fork(snapshot, simulation=speculative)

    def has(self, snapshot: Snapshot) -> bool:
        return self.inner.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        self.inner.drop(snapshot)


def test_capabilities_take_the_earlier_names() -> None:
    with (
        pytest.warns(DeprecationWarning, match="'sealed' is now 'isolated'"),
        pytest.warns(DeprecationWarning, match="'world' is now 'full'"),
    ):
        found = Capabilities(fidelity="world", sealed=True)  # type: ignore[arg-type, call-arg]
    assert found == Capabilities(fidelity="full", isolated=True)


async def test_a_runner_searches_in_environments_that_take_the_earlier_names(tmp_path: Path) -> None:
    factory, settings = Earlier(), config()
    run = create(tmp_path / "run", (toy_task(chain(2)),), settings)
    with pytest.warns(DeprecationWarning, match="'open_worlds' is now 'open_environments'"):
        runner = Runner(
            folder=run,
            config=settings,
            open_worlds=lambda task: nullcontext(factory),  # type: ignore[call-arg]
            build_agent=toy_agent(chain(2)),
        )
    with pytest.warns(DeprecationWarning, match="'speculative' is now 'simulation'"):
        (line,) = await runner.run()
    assert line.score == 1.0 and set(factory.asked) == {True, False}


async def test_a_factory_that_forks_is_one_still() -> None:
    with pytest.warns(DeprecationWarning, match="simulation"):
        factory = with_simulation(EarlierForks())
    assert isinstance(factory, ForkableFactory)
    async with factory.open(simulation=True) as environment:
        await environment.reset(toy_task(chain(2)))
        snapshot = await environment.snapshot()
        async with factory.fork(snapshot, simulation=True) as fork:
            assert fork.observation.fingerprint == snapshot.fingerprint
        factory.drop(snapshot)
        assert not factory.has(snapshot)


def test_a_factory_of_today_is_left_alone() -> None:
    factory = ToyFactory(chain(2))
    assert with_simulation(factory) is factory
