"""Leaks are told from what is held for a moment."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from exact.environments.check import check
from exact.task import Task
from tests.environments.check.specimen import Specimen, SpecimenFactory

TASK = Task(id="specimen", instruction="")


class Holding(SpecimenFactory):
    """Opens environments of which each leaves descriptors behind until `keep` more were opened."""

    def __init__(self, keep: int) -> None:
        super().__init__()
        self.keep, self.held = keep, list[int]()

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Specimen]:
        async with super().open(simulation=simulation) as environment:
            yield environment
        self.held.append(os.open(os.devnull, os.O_RDONLY))
        while len(self.held) > self.keep:
            os.close(self.held.pop(0))


@pytest.fixture
def opened() -> Iterator[list[Holding]]:
    made: list[Holding] = []
    yield made
    for environments in made:
        for descriptor in environments.held:
            os.close(descriptor)


@pytest.mark.parametrize(("keep", "quick", "passed"), [(2, True, True), (2, False, True), (1000, True, False), (1000, False, False)])
async def test_a_resource_closed_late_is_no_leak_and_one_never_closed_is(
    opened: list[Holding], keep: int, quick: bool, passed: bool
) -> None:
    environments = Holding(keep)
    opened.append(environments)
    found = (await check(environments, TASK, quick=quick, names=["nothing is left"]))[0]
    assert found.passed is passed
    assert ("200 cycles" if not quick else "8 cycles") in found.detail or "descriptors more" in found.detail


class Once(Holding):
    """Leaves two descriptors behind after the sixth environment, and none before or after it."""

    def __init__(self) -> None:
        super().__init__(0)
        self.environments = 0

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Specimen]:
        self.environments += 1
        async with super().open(simulation=simulation) as environment:
            yield environment
        if self.environments == 6:
            self.keep = 2
            self.held += [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]


async def test_descriptors_that_come_once_are_no_leak(opened: list[Holding]) -> None:
    opened.append(Once())
    found = (await check(opened[0], TASK, quick=True, names=["nothing is left"]))[0]
    assert found.passed and len(opened[0].held) == 2, found.detail


class Growing(SpecimenFactory):
    """MiB that each environment takes and does not release."""

    def __init__(self, *taken: int) -> None:
        super().__init__()
        self.taken, self.held = list(taken), list[bytearray]()

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Specimen]:
        async with super().open(simulation=simulation) as environment:
            yield environment
        if self.taken:
            self.held.append(bytearray(b"x") * (self.taken.pop(0) * 2**20))


@pytest.mark.parametrize(("taken", "passed"), [([24] * 8, False), ([0] * 5 + [64], True), ([0] * 8, True)])
async def test_memory_that_grows_with_every_environment_is_a_leak_and_that_grows_once_is_none(
    monkeypatch: pytest.MonkeyPatch, taken: list[int], passed: bool
) -> None:
    monkeypatch.setattr("exact.environments.check.suite._family", lambda: [os.getpid()])  # not the browser of tests before
    found = (await check(Growing(*taken), TASK, quick=True, names=["nothing is left"]))[0]
    assert found.passed is passed, found.detail
