"""The checker finds each of the shipped mutants, and nothing wrong with what is right."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import msgspec
import pytest

from exact.action import Action
from exact.environments.base import Snapshot, Transition
from exact.environments.check import CHECKS, Finding, check
from exact.environments.check.base import Subject
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import ToyFactory, deceptive_chain, form, maze, toy_task
from exact.task import Task
from tests.environments.check.specimen import MUTANTS, Mutant, Specimen, SpecimenFactory

TASK = Task(id="specimen", instruction="Save a row.")


async def failed(mutant: Mutant | None, *, quick: bool = True) -> dict[str, Finding]:
    environments = SpecimenFactory(mutant)
    found = await check(environments, TASK, quick=quick, limit=0.5)
    for descriptor in environments.spilt:
        os.close(descriptor)
    assert [finding.name for finding in found] == list(CHECKS)
    return {finding.name: finding for finding in found if not finding.passed}


@pytest.mark.parametrize("quick", [True, False])
async def test_a_faithful_environment_passes_every_check(quick: bool) -> None:
    assert await failed(None, quick=quick) == {}


@pytest.mark.parametrize(
    "mutant, found",
    [
        ("stale tree", "snapshots are states"),
        ("shared server row", "environments are independent"),
        ("lost focus", "snapshots are states"),
        ("leak", "nothing is left"),
        ("nondeterministic reset", "resets alike"),
        ("hung step", "snapshots are states"),
    ],
)
async def test_each_mutant_is_found_by_the_check_that_it_breaks(mutant: Mutant, found: str) -> None:
    findings = await failed(mutant)
    assert found in findings, findings
    assert findings[found].detail


async def test_a_call_counts_as_hung_after_the_seconds_that_the_environment_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Specimen, "capabilities", msgspec.structs.replace(Specimen.capabilities, call_seconds=0.25))
    (finding,) = await check(SpecimenFactory("hung step"), TASK, quick=True, names=["snapshots are states"])
    assert "did not return within 0.25 s" in finding.detail and "`call_seconds`" in finding.detail


def test_all_mutants_are_checked() -> None:
    assert len(MUTANTS) == 6


@pytest.mark.parametrize("environment", [form(3), maze(), deceptive_chain(3)], ids=lambda environment: environment.name)
async def test_toy_environments_keep_the_contract(environment: object) -> None:
    found = await check(ToyFactory(environment), toy_task("form"), quick=True)  # type: ignore[arg-type]
    assert [finding for finding in found if not finding.passed] == []


async def test_checks_that_do_not_apply_are_skipped_with_the_reason() -> None:
    found = await check(ToyFactory(form(2), fidelity="replay"), toy_task("form"), quick=True, names=["snapshots are states"])
    assert found[0].skipped and "reset and replay" in found[0].detail


async def test_a_fork_in_another_state_or_with_a_shared_environment_is_found() -> None:
    class Elsewhere(ToyFactory):
        """Forks begin at the start."""

        @asynccontextmanager
        async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
            async with self.open(simulation=simulation) as environment:
                await environment.reset(toy_task("form"))
                yield environment

    class Shared(ToyFactory):
        """All forks are one environment."""

        @asynccontextmanager
        async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
            if not hasattr(self, "one"):
                self.one = await AsyncExitStack().enter_async_context(super().fork(snapshot, simulation=simulation))
            yield self.one

    for kind, words in ((ToyFactory, "2 forks"), (Elsewhere, "in another state"), (Shared, "seen in its sibling")):
        found = (await check(kind(maze()), toy_task("maze"), quick=True, names=["forks are independent"]))[0]
        assert words in found.detail and found.passed is (kind is ToyFactory)


class Ending(SpecimenFactory):
    """Environment in which some actions end the episode."""

    def __init__(self, ends: tuple[str, ...]) -> None:
        super().__init__()
        self.ends = ends

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Specimen]:
        async with super().open(simulation=simulation) as environment:
            step = environment.step

            async def brittle(action: Action) -> Transition:
                return Transition(observation=None, terminated=True) if action.name in self.ends else await step(action)

            environment.step = brittle  # type: ignore[method-assign]
            yield environment


@pytest.mark.parametrize(("ends", "gone"), [(("focus",), True), (("focus", "key", "save"), False)])
async def test_where_a_first_action_ends_the_episode_another_is_tried(ends: tuple[str, ...], gone: bool) -> None:
    for finding in await check(Ending(ends), TASK, quick=True, names=["repeats", "environments are independent"]):
        assert finding.passed
        assert (not finding.skipped and " 0 " not in f" {finding.detail}") if gone else "ends the episode" in finding.detail


class Slow(SpecimenFactory):
    """Each step takes seconds, by a clock of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Specimen]:
        async with super().open(simulation=simulation) as environment:
            step = environment.step

            async def tardy(action: Action) -> Transition:
                self.seconds += 2.0
                return await step(action)

            environment.step = tardy  # type: ignore[method-assign]
            yield environment


async def test_a_quick_check_of_a_slow_environment_does_less_of_everything_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    environments = Slow()
    monkeypatch.setattr("exact.environments.check.suite.Subject", partial(Subject, now=lambda: environments.seconds))
    found = {each.name: each for each in await check(environments, TASK, quick=True)}
    assert all(each.passed for each in found.values()) and environments.seconds < 90
    assert found["nothing is left"].detail == "4 cycles" and found["snapshots are states"].detail == "depths 1 to 1"
    assert (
        found["elements can be acted on"].detail == "3 of 3 accepted" and "2 actions each" in found["environments are independent"].detail
    )
    environments.seconds = 0.0
    await check(environments, TASK)
    assert environments.seconds > 1000
