"""A slot is brought to a state and reports whether it arrived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from exact.action import Action
from exact.budget import Budget
from exact.environments.base import Capabilities, SideEffect, StateChanged, Transition
from exact.environments.restore.costs import Costs
from exact.environments.restore.slot import Slot, SlotContent
from exact.environments.restore.waypoint import Waypoint
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Task

TASK = Task(id="t", instruction="", start="")
LATE = SideEffect(kind="request", method="POST", url="u", late=True)
Behaviour = Callable[[int, str], str]
"""From the number of the reset and the letters typed since to what is seen: empty where the episode ends."""


def go(letter: str) -> Action:
    return Action("go", (letter,), f"go {letter}", ())


def path(text: str) -> list[Waypoint]:
    """Return the path to the state that shows a text, letter by letter; a final `.` ends the episode."""
    letters = text.rstrip(".")
    found = [Waypoint(None, "")] + [Waypoint(go(c), letters[: i + 1]) for i, c in enumerate(letters)]
    found[0] = Waypoint(None, "start")
    return [*found, Waypoint(go("."), "")] if text.endswith(".") else found


class Typed:
    """An environment that shows what was typed, or what a test makes of it."""

    def __init__(self, shows: Behaviour, deterministic: bool, log: list[str]) -> None:
        self.capabilities = Capabilities(fidelity="replay", isolated=True, deterministic=deterministic)
        self._shows, self._log, self._text, self._resets = shows, log, "", 0

    async def reset(self, task: Task) -> Observation:
        self._text, self._resets = "", self._resets + 1
        self._log.append("reset")
        shown = self._shows(self._resets, "")
        return Observation(text=shown, fingerprint=shown or "start", url="")

    async def step(self, action: Action) -> Transition:
        letter = str(action.args[0])
        self._log.append(letter)
        if letter == "!":
            raise ActionError("no")
        if letter == "?":
            raise EnvironmentFailure("gone")
        if letter in "=%" and self._log.count(letter) == 1:  # the state was drawn anew, or is another one now
            now = self._text if letter == "=" else "other"
            raise StateChanged("it changed", Transition(observation=Observation(text=now, fingerprint=now), effects=(LATE,)))
        if letter == "~":
            await asyncio.sleep(3600)
        self._text += letter
        shown = self._shows(self._resets, self._text)
        if not shown or letter == ".":
            return Transition(observation=None, terminated=True)
        return Transition(observation=Observation(text=shown, fingerprint=shown, url=""))


class EnvironmentFactory:
    """Opens them, and counts."""

    def __init__(self, shows: Behaviour = lambda resets, text: text, *, deterministic: bool = True) -> None:
        self.shows, self.deterministic, self.log, self.open_now = shows, deterministic, list[str](), 0

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Any]:
        assert simulation, "nothing else is opened by a slot"
        self.open_now += 1
        try:
            yield Typed(self.shows, self.deterministic, self.log)
        finally:
            self.open_now -= 1


def slot(environments: EnvironmentFactory) -> Slot:
    return Slot(environments, TASK)


async def test_a_state_of_a_journal_whose_masked_content_was_hashed_by_another_key_is_reached() -> None:
    here = slot(EnvironmentFactory(lambda resets, text: "a.ffffffff22" if text == "a" else text))
    assert (await here.arrive([Waypoint(None, "start"), Waypoint(go("a"), "a.0000000011"), Waypoint(go("b"), "ab")])).arrived
    assert not (await here.arrive([Waypoint(None, "start"), Waypoint(go("a"), "a.ffffffff33")])).arrived
    await here.close()


async def test_a_state_is_reached_by_reset_and_replay_and_then_reused() -> None:
    environments = EnvironmentFactory()
    here = slot(environments)
    arrival = await here.arrive(path("ab"))
    assert (arrival.route, arrival.match, arrival.transitions, arrival.resets) == ("replay", "exact", 2, 1)
    assert (await here.arrive(path("ab"))).route == "reuse"
    assert environments.log == ["reset", "a", "b"]
    await here.close()


async def test_a_slot_is_at_the_state_that_its_action_led_to() -> None:
    environments = EnvironmentFactory()
    here = slot(environments)
    await here.arrive(path("a"))
    await here.act(go("b"))
    assert here.is_at(path("ab")) and not here.is_at(path("a"))
    await here.act(go("."))
    assert here.is_at(path("ab."))
    await here.close()


async def test_the_end_of_an_episode_can_be_reached() -> None:
    here = slot(EnvironmentFactory())
    assert (await here.arrive(path("ab."))).match == "exact"
    await here.close()


async def test_another_reset_state_is_a_drift_and_no_outcome() -> None:
    here = slot(EnvironmentFactory(lambda resets, text: text or f"start {resets}"))
    arrival = await here.arrive(path("ab"))
    assert (arrival.match, arrival.resets, arrival.divergence) == ("drifted", 2, None)
    assert "after reset" in arrival.reason
    await here.close()


async def test_a_refusal_on_the_way_is_a_drift() -> None:
    here = slot(EnvironmentFactory())
    arrival = await here.arrive([*path("a"), Waypoint(go("!"), "a!")])
    assert (arrival.match, arrival.divergence) == ("drifted", None)
    await here.close()


async def test_a_healthy_environment_that_goes_elsewhere_every_time_has_diverged() -> None:
    here = slot(EnvironmentFactory(lambda resets, text: text.replace("ab", "aX")))
    arrival = await here.arrive(path("abc"))
    assert (arrival.match, arrival.resets, arrival.transitions) == ("diverged", 2, 4)
    assert arrival.divergence is not None
    assert (arrival.divergence.waypoint, arrival.divergence.fingerprint) == (2, "aX")
    await here.close()


async def test_an_environment_that_goes_elsewhere_once_has_not_diverged() -> None:
    here = slot(EnvironmentFactory(lambda resets, text: text.replace("ab", "aX") if resets == 1 else text))
    arrival = await here.arrive(path("abc"))
    assert (arrival.match, arrival.resets) == ("exact", 2)
    await here.close()


async def test_an_environment_that_should_not_vary_but_does_has_drifted() -> None:
    here = slot(EnvironmentFactory(lambda resets, text: text.replace("ab", f"a{resets}")))
    arrival = await here.arrive(path("abc"))
    assert (arrival.match, arrival.divergence) == ("drifted", None)
    await here.close()


async def test_one_replay_is_enough_for_an_environment_that_varies() -> None:
    here = slot(EnvironmentFactory(lambda resets, text: text.replace("ab", f"a{resets}"), deterministic=False))
    arrival = await here.arrive(path("abc"))
    assert (arrival.match, arrival.resets) == ("diverged", 1)
    assert arrival.divergence is not None and arrival.divergence.fingerprint == "a1"
    await here.close()


async def test_an_end_that_came_early_is_an_outcome_too() -> None:
    here = slot(EnvironmentFactory(lambda resets, text: "" if text == "ab" else text))
    arrival = await here.arrive(path("abc"))
    assert arrival.match == "diverged" and arrival.divergence is not None
    assert arrival.divergence.transition.terminated and arrival.divergence.fingerprint == ""
    await here.close()


async def test_no_further_replay_is_made_where_it_may_not_be() -> None:
    here = slot(EnvironmentFactory(lambda resets, text: text.replace("ab", "aX")))
    budget = Budget({"transitions": 5})
    arrival = await here.arrive(path("abc"), reserve=lambda steps: budget.reserve({}).__enter__().add({"transitions": steps}))
    assert (arrival.match, arrival.resets) == ("drifted", 1)
    await here.close()


async def test_steps_are_counted_until_the_environment_broke() -> None:
    environments = EnvironmentFactory()
    here = slot(environments)
    with pytest.raises(EnvironmentFailure):
        await here.arrive([*path("ab"), Waypoint(go("?"), "ab?")])
    assert (here.take_step_count(), here.take_step_count(), environments.open_now) == (3, 0, 0)
    await here.arrive(path("a"))
    with pytest.raises(EnvironmentFailure):
        await here.act(go("?"))
    assert (here.take_step_count(), environments.open_now) == (2, 0)


async def test_an_environment_that_was_interrupted_in_a_step_is_not_used_again() -> None:
    environments = EnvironmentFactory()
    here = slot(environments)
    await here.arrive(path("a"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await here.act(go("~"))
    assert environments.open_now == 0 and not here.is_at(path("a"))
    await here.arrive(path("a"))
    assert environments.open_now == 1
    await here.close()


async def test_slots_exchange_their_environments() -> None:
    environments = EnvironmentFactory()
    one, other = slot(environments), slot(environments)
    await one.arrive(path("a"))
    await other.arrive(path("b"))
    theirs: SlotContent = other.exchange(one.exchange(SlotContent(*_standing(other))))
    assert theirs.path == tuple(path("b")) and one.is_at(path("b")) and other.is_at(path("a"))
    await one.close()
    assert environments.open_now == 1
    await other.close()
    assert environments.open_now == 0


def _standing(slot: Slot) -> Any:
    return slot._stack, slot._environment, slot._path


class Renewed(Typed):
    """An environment whose reset replaces its process by another one, which then has used more CPU time than the one before."""

    pid, processor = 1, 1.0

    async def reset(self, task: Task) -> Observation:
        self.pid, self.processor = self.pid + 1, self.processor + 0.5
        return await super().reset(task)


async def test_the_processor_time_of_a_reset_is_all_that_the_process_has_used_which_replaced_another() -> None:
    class Renewing(EnvironmentFactory):
        @asynccontextmanager
        async def open(self, *, simulation: bool) -> AsyncIterator[Any]:
            yield Renewed(self.shows, self.deterministic, self.log)

    costs = Costs(workers=8, cores=1)
    here = Slot(Renewing(), TASK, costs=costs)
    await here.arrive(path("a"))
    await here.arrive(path("b"))
    assert costs.of("reset") == 8 * 2.0
    await here.close()


async def test_an_action_in_a_state_that_was_drawn_anew_is_taken_there() -> None:
    slot = Slot(environments := EnvironmentFactory(), TASK)
    await slot.arrive(path("ab"))
    came = await slot.act(go("="))
    assert came.observation is not None and came.observation.text == "ab=" and came.effects == (LATE,)
    assert environments.log == ["reset", "a", "b", "=", "="] and slot.is_at(path("ab="))


async def test_an_environment_whose_state_changed_by_itself_is_not_where_it_was_and_is_brought_there_again() -> None:
    slot = Slot(environments := EnvironmentFactory(), TASK)
    await slot.arrive(path("ab"))
    with pytest.raises(StateChanged):
        await slot.act(go("%"))
    assert not slot.is_at(path("ab")) and (await slot.arrive(path("ab"))).arrived
    assert environments.log == ["reset", "a", "b", "%", "reset", "a", "b"]
