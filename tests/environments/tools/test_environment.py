"""An environment with tools: results belong to the state, reads are called once, writes at a commit alone, secrets get to none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import exact
from exact.environments.base import Environment, Person, PersonQuestion, Transition
from exact.environments.tools.environment import SHOWN, EquippedEnvironment, SecretCheck, fingerprint_with, tools_factory
from exact.environments.tools.tool import function_tool
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain, toy_task
from exact.errors import ActionError, EnvironmentFailure, SecretRefused, UncertainCommit, UsageError

CALLS: list[str] = []
TASK = toy_task(chain(3))


@pytest.fixture(autouse=True)
def _forget() -> None:
    CALLS.clear()


@exact.tool(effect="read")
async def look_up(name: str) -> str:
    """Look up a name."""
    CALLS.append(f"look_up {name}")
    if name == "nobody":
        raise LookupError("there is no nobody")
    return f'{name} is known\n[7] button "Pay"'


@exact.tool
def note(text: str) -> str:
    """Write a note."""
    CALLS.append(f"note {text}")
    match text:
        case "full":
            raise ActionError("the book is full")
        case "torn":
            raise OSError("the page is torn")
    return "written"


@exact.tool(confirm=True)
def sign(text: str) -> None:
    """Sign a text."""
    CALLS.append(f"sign {text}")


@exact.tool(seconds=0.05)
async def hang() -> None:
    """Hang."""
    CALLS.append("hang")
    await asyncio.Event().wait()


@exact.tool(effect="read", seconds=0.05)
async def hang_reading() -> None:
    """Hang."""
    await asyncio.Event().wait()


ALL = [function_tool(each) for each in (look_up, note, sign, hang, hang_reading)]


@asynccontextmanager
async def opened(*, simulation: bool = False, **settings: Any) -> AsyncIterator[EquippedEnvironment]:
    async with tools_factory(ToyFactory(chain(3)), ALL, **settings).open(simulation=simulation) as environment:
        assert isinstance(environment, EquippedEnvironment)
        await environment.reset(TASK)
        yield environment


async def take(environment: Environment, written: str) -> Transition:
    return await environment.step(environment.actions.parse(written))


def seen(transition: Transition) -> exact.Observation:
    assert transition.observation is not None
    return transition.observation


async def test_a_result_stands_before_the_page_and_no_line_of_it_reads_as_an_element() -> None:
    async with opened() as environment:
        came = await take(environment, 'look_up {"name": "Ann"}')
        lines = seen(came).text.splitlines()
        assert lines[:3] == ['Result of look_up {"name": "Ann"}:', "| Ann is known", '| [7] button "Pay"'] and seen(came).results == 3
        after = seen(await take(environment, 'go "on"'))
        assert after.text.startswith("Result of look_up") and "Step 1 of 3" in after.text
        assert after.element("7") is None and came.info == {"result": 'Ann is known\n[7] button "Pay"'}


async def test_a_result_belongs_to_the_identity_of_the_state_and_a_state_without_one_keeps_its_own() -> None:
    async with opened() as environment, ToyFactory(chain(3)).open(simulation=False) as plain:
        start = await environment.reset(TASK)
        assert start == await plain.reset(TASK)
        told = seen(await take(environment, 'look_up {"name": "Ann"}')).fingerprint
        twice = seen(await take(environment, 'look_up {"name": "Ann"}')).fingerprint
        assert len({start.fingerprint, told, twice}) == 3
        await environment.reset(TASK)
        assert seen(await take(environment, 'look_up {"name": "Ann"}')).fingerprint == told
        assert fingerprint_with("ab.key", ()) == "ab.key" and fingerprint_with("ab.key", environment._told).endswith(".key")


async def test_a_read_is_called_once_for_equal_arguments_in_a_state_whichever_environment_asks() -> None:
    factory = tools_factory(ToyFactory(chain(3)), ALL)
    async with factory.open(simulation=True) as one, factory.open(simulation=True) as other, factory.open(simulation=False) as live:
        for environment in (one, other, live):
            await environment.reset(TASK)
        came = await asyncio.gather(*(take(each, 'look_up {"name": "Ann"}') for each in (one, other, live)))
        assert CALLS == ["look_up Ann"] and len({seen(each).fingerprint for each in came}) == 1
        await take(one, 'look_up {"name": "Bob"}')
        await take(one, 'look_up {"name": "Ann"}')
        assert CALLS == ["look_up Ann", "look_up Bob", "look_up Ann"], "in another state it is called again"


async def test_a_write_is_held_back_while_searching_and_called_at_each_commit() -> None:
    async with opened(simulation=True) as environment:
        came = await take(environment, 'note {"text": "a"}')
        assert [each.is_blocked for each in came.effects] == [True] and CALLS == []
    async with opened() as environment:
        for _ in range(2):
            came = await take(environment, 'note {"text": "a"}')
        (effect,) = came.effects
        assert CALLS == ["note a"] * 2 and effect.is_write and not effect.is_repeated and effect.fields == ("text",)


async def test_what_was_written_is_remembered_on_the_way_back_and_called_no_more() -> None:
    factory = tools_factory(ToyFactory(chain(3)), ALL)
    async with factory.open(simulation=False) as live, factory.open(simulation=True) as other:
        await live.reset(TASK)
        there = seen(await take(live, 'note {"text": "a"}')).fingerprint
        await other.reset(TASK)
        assert seen(await take(other, 'note {"text": "a"}')).fingerprint == there
        await live.reset(TASK)
        with live.rebuilding():  # type: ignore[attr-defined]
            assert seen(await take(live, 'note {"text": "a"}')).fingerprint == there
            with pytest.raises(EnvironmentFailure, match="is not called twice, and its result is not in the journal"):
                await take(live, 'note {"text": "b"}')
    assert CALLS == ["note a"]


async def test_a_snapshot_remembers_the_results_and_a_fork_has_them() -> None:
    factory = tools_factory(ToyFactory(chain(3)), ALL)
    assert isinstance(factory, exact.ForkableFactory)
    async with factory.open(simulation=True) as environment:
        await environment.reset(TASK)
        there = seen(await take(environment, 'look_up {"name": "Ann"}'))
        snapshot = await environment.snapshot()
        await take(environment, 'look_up {"name": "Bob"}')
        assert snapshot.fingerprint == there.fingerprint
        assert await environment.restore(snapshot) == there
        async with factory.fork(snapshot, simulation=True) as fork:
            assert fork.observation == there and factory.has(snapshot)
            assert "Ann is known" in seen(await take(fork, 'go "on"')).text
        factory.drop(snapshot)
        assert not factory.has(snapshot)


async def test_a_read_that_raises_or_hangs_is_refused_in_words_and_changes_nothing() -> None:
    async with opened(simulation=True) as environment:
        with pytest.raises(exact.ToolError, match=r"look_up raised LookupError: there is no nobody \(test_environment.py, line \d+\)"):
            await take(environment, 'look_up {"name": "nobody"}')
        with pytest.raises(exact.ToolError, match=r"hang_reading gave no answer within 0.05 s"):
            await take(environment, "hang_reading")
        assert seen(await take(environment, 'go "on"')).results == 0


async def test_a_write_that_raises_may_have_written_so_its_error_is_the_result() -> None:
    async with opened() as environment:
        came = await take(environment, 'note {"text": "torn"}')
        assert "| failed, after it may have written: tool: note raised OSError: the page is torn" in seen(came).text
        assert came.effects[0].is_write


async def test_a_tool_that_says_that_nothing_was_done_is_refused() -> None:
    async with opened() as environment:
        with pytest.raises(ActionError, match=r"^the book is full$"):
            await take(environment, 'note {"text": "full"}')
        assert seen(await take(environment, 'go "on"')).results == 0


async def test_a_write_that_hangs_is_an_uncertain_commit() -> None:
    async with opened() as environment:
        with pytest.raises(UncertainCommit, match=r"hang gave no answer within 0.05 s, and may have written: .*--repeat-uncertain"):
            await take(environment, "hang")


async def test_no_secret_gets_to_a_tool_and_none_comes_back() -> None:
    check = SecretCheck(lambda text: "<secret:pin>" if "4711" in text else "", lambda text: text.replace("Ann", "<secret:name>"))
    async with opened(secrets=check) as environment:
        with pytest.raises(SecretRefused, match="<secret:pin> is a secret, which no tool gets"):
            await take(environment, 'note {"text": "4711"}')
        assert CALLS == []
        assert "| <secret:name> is known" in seen(await take(environment, 'look_up {"name": "Ann"}')).text


class Watcher:
    """A person who says one thing."""

    def __init__(self, says: str) -> None:
        self._says, self.asked = says, list[PersonQuestion]()

    async def allows(self, question: PersonQuestion) -> str:
        self.asked.append(question)
        return self._says

    async def answer(self, question: PersonQuestion) -> str | None:
        return None


@pytest.mark.parametrize("says", ["", "a person refused it"])
async def test_a_tool_that_wants_a_yes_is_called_after_one_alone(says: str) -> None:
    person: Person = (watcher := Watcher(says))
    async with opened() as environment:
        environment.attend(person)
        came = await take(environment, 'sign {"text": "yes"}')
        (asked,) = watcher.asked
        assert (asked.method, asked.url, asked.fields) == ("TOOL", "tool:sign", {"text": "yes"})
        assert came.info.get("declined", "") == says and len(CALLS) == (not says)


async def test_without_anybody_to_ask_it_is_not_called() -> None:
    async with opened() as environment:
        assert (await take(environment, 'sign {"text": "yes"}')).info["declined"] == "sign needs a person's yes, and nobody can be asked"


async def test_old_results_make_room_for_new_ones_and_stay_in_the_identity() -> None:
    @exact.tool(effect="read")
    def page(number: int) -> str:
        """Read a page."""
        return f"{number}" * 3000

    async with tools_factory(ToyFactory(chain(3)), [function_tool(page)]).open(simulation=True) as environment:
        await environment.reset(TASK)
        for number in range(4):
            last = seen(await take(environment, f'page {{"number": {number}}}'))
        assert len(last.text) < SHOWN + 500 and "(2 earlier results are not shown)" in last.text
        assert last.text.index("3333") < last.text.index("2222")


async def test_a_tool_with_the_name_of_an_action_is_refused() -> None:
    def go(name: str) -> None:
        """Go."""

    async with tools_factory(ToyFactory(chain(3)), [function_tool(go)]).open(simulation=True) as environment:
        with pytest.raises(UsageError, match="the tool go has the name of an action of the environment"):
            _ = environment.actions
