"""Algorithms, memories and models of a user's own, with faults: as tests/library/test_own_parts.py for the other parts."""

import asyncio

import pytest

import exact
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain
from tests.library.number import Both, Near, Number

TASKS = [exact.Task(id=f"number/{name}", instruction="Reach 5.") for name in ("one", "two")]
MODULE = "tests.library.own_algorithms"


async def attempted(out=None, **sections):
    config = exact.Config.parse({"reflection": {"kind": "none"}, **sections})
    async with asyncio.timeout(20):
        return await exact.solve_many(TASKS, agent=exact.Agent(policy=Both(), value=Near()), environments=Number, config=config, out=out)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ask_raises", "ask: Mine raised ValueError: boom (own_algorithms.py, line "),
        ("ask_none", "ask: Mine returned None: expected a Selection, Wait or Done"),
        ("ask_awaitable", "ask: Mine returned a coroutine that was not awaited: expected a Selection, Wait or Done"),
        ("ask_strange", "ask: Mine returned Selection 7 of state 99: expected one that it has opened in the tree"),
        ("tell_raises", "tell: Mine raised ValueError: boom (own_algorithms.py, line "),
        ("tell_awaitable", "tell: Mine returned a coroutine that was not awaited: expected a plain function"),
        ("tell_idle", "tell: Mine left selection 0 as it was: it has to take in the result"),
        ("decide_raises", "decide: Mine raised ValueError: boom (own_algorithms.py, line "),
        ("decide_none", "decide: Mine returned None: expected a Decision"),
        ("decide_strange", "decide: Mine returned a Decision for (9,): expected indices of edges"),
        ("advance_raises", "advance: Mine raised ValueError: boom (own_algorithms.py, line "),
        ("advance_none", "advance: Mine returned None: expected whether the subtree was kept"),
    ],
)
async def test_a_faulty_algorithm_fails_each_attempt_with_its_report(name, says, workers, tmp_path):
    for each in await attempted(search={"algorithm": f"{MODULE}:{name}", "iterations": 4, "workers": workers}, out=tmp_path):
        assert (each.result.status, each.score) == ("failed", None) and f"algorithm.{says}" in each.result.reason
    for number in "12":
        run = exact.open_run(tmp_path / number)
        assert says in run.results()[0]["reason"] and run.report().exists() and run.tree().root.id == 0


async def test_a_forecast_that_is_none_ends_a_search_that_follows_it():
    graph = chain(3)
    with pytest.raises(exact.PartError, match=r"^algorithm\.forecast: Mine returned None: expected a list of nodes"):
        await exact.search(ToyFactory(graph), policy=ToyPolicy(graph), value=ToyValue(graph), algorithm=f"{MODULE}:forecast_none")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gives_none", "gives None, which has no ask"),
        ("gives_class", r"gives the class Mine: give an instance of it, such as Mine\(\)"),
        ("gives_unset", "whose simulates is not set: set it to True or False"),
        ("gives_error", r"cannot be made from a SearchConfig: ValueError: boom \(own_algorithms.py, line "),
        ("Mine", "cannot be made from a SearchConfig: TypeError: "),
    ],
)
async def test_what_is_not_an_algorithm_is_refused_before_work_begins(name, says):
    with pytest.raises(exact.UsageError, match=f"^search.algorithm: {MODULE}:{name} .*{says}"):
        await attempted(search={"algorithm": f"{MODULE}:{name}"})


async def test_an_algorithm_that_cannot_be_repeated_is_told_to_use_the_seed():
    with pytest.raises(exact.JournalError, match=r"or by an algorithm that draws random numbers without the seed of its tree$"):
        await attempted(search={"algorithm": f"{MODULE}:dice"})


def remembered(name):
    return attempted(search={"iterations": 3}, reflection={"kind": "builtin", "threshold": 0.0, "memory": f"{MODULE}:{name}"})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("retrieve_raises", "retrieve: Odd raised ValueError: boom (own_algorithms.py, line "),
        ("retrieve_none", "retrieve: Odd returned None: expected a sequence of Reflection"),
        ("retrieve_awaitable", "retrieve: Odd returned a coroutine that was not awaited: expected a sequence of Reflection"),
        ("version_raises", "version: Odd raised ValueError: boom (own_algorithms.py, line "),
        ("version_none", "version: Odd returned None: expected str"),
    ],
)
async def test_a_faulty_memory_fails_each_attempt(name, says):
    for each in await remembered(name):
        assert (each.result.status, each.score) == ("failed", None) and f"memory.{says}" in each.result.reason


@pytest.mark.parametrize("name", ["close_raises", "close_awaitable", "used_awaitable", "add_raises", "add_awaitable"])
async def test_a_memory_that_does_not_learn_or_close_costs_no_attempt(name, caplog):
    assert [each.result.status for each in await remembered(name)] == ["scored", "scored"]
    assert name[:5] != "close" or f"memory.close: Odd {'raised' if name == 'close_raises' else 'returned a coroutine'}" in caplog.text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("memory_class", r"gives the class Notes: give an instance of it, such as Notes\(\)"),
        ("Mine", "cannot be made .*TypeError"),
        ("nothing", "gives None, which has no add"),
        ("boom", r"cannot be made \(ValueError: boom"),
    ],
)
async def test_what_is_not_a_memory_is_refused_before_work_begins(name, says):
    with pytest.raises(exact.UsageError, match=f"^reflection.memory: {MODULE}:{name} .*{says}"):
        await remembered(name)


async def asked(name):
    model = {"model": "small", "provider": f"{MODULE}:{name}"}
    sections = {"policy": {"kind": "llm", "samples": 1}, "value": {"kind": "constant"}, "models": {"policy": model}}
    config = exact.Config.parse({"search": {"iterations": 2}, "reflection": {"kind": "none"}, **sections})
    return await exact.solve_many(TASKS, agent=config, environments=Number)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Chat", "complete: Chat returned None: expected ChatAnswer"),
        ("complete_raises", "complete: Odd raised ValueError: boom (own_algorithms.py, line "),
        ("complete_plain", "complete: Odd returned None from a plain function: write `async def`"),
        ("hang_up", "complete: Odd returned None: expected ChatAnswer"),
    ],
)
async def test_a_faulty_model_fails_each_attempt(name, says, caplog):
    for each in await asked(name):
        assert (each.result.status, each.score) == ("failed", None) and f"model.{says}" in each.result.reason
    assert ("model.close: Odd raised ValueError: boom" in caplog.text) == (name == "hang_up")


@pytest.mark.parametrize(
    ("name", "says"), [("model_class", "gives the class Chat"), ("Notes", "cannot be made"), ("ask_none", "cannot be made")]
)
async def test_what_is_not_a_model_is_refused_before_work_begins(name, says):
    with pytest.raises(exact.UsageError, match=says):
        await asked(name)
