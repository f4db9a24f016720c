"""Parts that raise and return anything: it ends at most its own attempt, by a typed failure of one line that names the part."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from exact.agents.agent import Agent
from exact.config import parse
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import maze
from exact.errors import PartError
from exact.library.search import search
from exact.library.solve import solve
from exact.observation import Observation
from exact.parts import calling
from exact.reflection.contrast import BuiltinReflector
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create
from exact.search.mcts import MCTS
from exact.task import Task

ENVIRONMENT = ("open", "reset", "step", "evaluate", "close")
AGENT = ("propose", "value", "reflect")
SPARED = {"close", "reflect"}
"""Parts without which an attempt goes on. Their failures are journalled."""


class Unsayable(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise ValueError("no text")


RAISED: tuple[BaseException, ...] = (
    KeyError("backendNodeId"), TypeError("two\nlines"), RecursionError(), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
    OSError(5, "no"), ValueError("half \ud800 a character"), TimeoutError(), asyncio.CancelledError(), AssertionError(),
    StopAsyncIteration(), Unsayable(), ExceptionGroup("group", [ExceptionGroup("inner", [KeyError("x")])]),
)  # fmt: skip
RETURNED: tuple[object, ...] = (
    None, 7, "text", math.nan, [None], {"a": 1}, Observation(text=5), Observation(text="half \ud800 a character"),
)  # fmt: skip


class Odd:
    """A part of which one method does something odd, in the first task alone."""

    def __init__(self, inner: Any, method: str, does: object, flag: list[bool]) -> None:
        self._inner, self._method, self._does, self._flag = inner, method, does, flag

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name != self._method or not self._flag[0]:
            return found

        async def odd(*_: object, **__: object) -> object:
            if isinstance(self._does, BaseException):
                raise self._does
            return self._does

        return odd


class OddFactory:
    """A factory of environments of which one method does something odd."""

    def __init__(self, factory: ToyFactory, method: str, does: object, flag: list[bool]) -> None:
        self._factory, self._method, self._does, self._flag = factory, method, does, flag

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Any]:
        self._odd("open")
        async with self._factory.open(simulation=simulation) as environment:
            yield Odd(environment, self._method, self._does, self._flag)
        self._odd("close")

    def _odd(self, method: str) -> None:
        if method == self._method and self._flag[0] and isinstance(self._does, BaseException):
            raise self._does


async def two_tasks(folder: Path, method: str, does: object, algorithm: str = "mcts") -> tuple[list[ResultLine], list[ev.AnyEvent]]:
    """Run two tasks, the first one with a part that does something odd. Return both results and the first one's journal."""
    graph, flag = maze(), [True]
    tasks = tuple(Task(id=f"toy/{name}", instruction=graph.instruction) for name in ("first", "second"))
    config = parse(
        {
            "search": {"algorithm": algorithm, "iterations": 3, "k": 2, "depth": 2},
            "reflection": {"kind": "builtin", "threshold": 0.0},
            "limits": {"actions": 1},
        }
    )
    policy: Any = Odd(ToyPolicy(graph, noise=0.0), method, does, flag)
    value: Any = Odd(ToyValue(graph, noise=0.0), "evaluate" if method == "value" else "", does, flag)
    reflector: Any = Odd(BuiltinReflector(run="r"), method, does, flag)
    run = create(folder, tasks, config, benchmark=False)
    runner = Runner(
        folder=run,
        config=config,
        open_environments=lambda task: nullcontext(OddFactory(ToyFactory(graph, isolated=algorithm != "greedy"), method, does, flag)),
        build_agent=lambda *_: Agent(policy=policy, value=value, reflector=reflector),
        finished=lambda *_: flag.__setitem__(0, False),
    )
    lines = await runner.run()
    assert [line.task for line in run.results()] == [task.id for task in tasks]
    return lines, list(read_journal(run.task_folder(tasks[0]) / "journal.jsonl"))


def check(method: str, first: ResultLine, second: ResultLine, events: list[ev.AnyEvent]) -> None:
    said = [event.reason for event in events if isinstance(event, ev.Failed)]
    if method in SPARED:
        assert first.status == "scored"
    else:
        assert first.status == "failed" and first.score is None and first.missing in ("environment", "part", "commit")
        said.append(first.reason)
    named = {"propose": "policy.propose", "value": "value.evaluate", "reflect": "reflector.reflect"}.get(method, f"environment.{method}")
    assert [reason for reason in said if named in reason and "\n" not in reason]
    assert second.status == "scored" and second.failures == 0


@pytest.mark.parametrize("method", [*ENVIRONMENT, *AGENT])
async def test_whatever_a_part_raises_ends_its_own_attempt_alone(tmp_path: Path, method: str) -> None:
    for i, error in enumerate(RAISED):
        lines, events = await two_tasks(tmp_path / str(i), method, error)
        check(method, *lines, events)


@pytest.mark.parametrize("method", ["reset", "step", "evaluate", *AGENT])
async def test_whatever_a_part_returns_ends_its_own_attempt_alone(tmp_path: Path, method: str) -> None:
    for i, given in enumerate(each for each in RETURNED if each is not None or method != "reflect"):  # no lesson is a result
        lines, events = await two_tasks(tmp_path / str(i), method, given)
        check(method, *lines, events)


async def test_a_commit_that_broke_in_an_environment_that_rolls_nothing_back_ends_its_own_attempt_alone(tmp_path: Path) -> None:
    (first, second), _ = await two_tasks(tmp_path, "step", KeyError("x"), "greedy")
    assert (first.status, first.missing, second.status) == ("failed", "commit", "scored")
    assert "environment.step: Odd raised KeyError: 'x'" in first.reason and "--repeat-uncertain" in first.reason
    assert "KeyError: 'x'" in (tmp_path / "errors.log").read_text()


async def test_an_algorithm_that_raises_ends_its_own_attempt_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = MCTS.ask
    odd = iter([True])
    monkeypatch.setattr(MCTS, "ask", lambda self, tree: {}["x"] if next(odd, False) else asked(self, tree))
    (first, second), _ = await two_tasks(tmp_path, "", None)
    assert (first.status, first.missing, second.status) == ("failed", "part", "scored")
    assert "KeyError: 'x' (test_odd_parts.py, line " in first.reason


@pytest.mark.parametrize("does", RAISED[:3] + RETURNED[:3])
async def test_search_and_solve_raise_an_error_of_this_package_that_names_the_part(does: object) -> None:
    graph, flag = maze(), [True]
    policy, value = ToyPolicy(graph, noise=0.0), Odd(ToyValue(graph, noise=0.0), "evaluate", does, flag)
    with pytest.raises(PartError, match=r"value\.evaluate: "):
        await search(ToyFactory(graph), policy=policy, value=value, iterations=3)
    with pytest.raises(PartError, match=r"value\.evaluate: "):
        await solve(Task(id="t", instruction="Go."), agent=Agent(policy=policy, value=value), environments=ToyFactory(graph))


@pytest.mark.parametrize("error", [MemoryError(), SystemExit(3)])
async def test_what_ends_the_process_ends_the_run(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)), calling("part"):
        raise error


async def test_a_cancellation_from_outside_ends_the_run_whatever_the_part_makes_of_it() -> None:
    begun = asyncio.Event()

    async def call() -> None:
        with calling("part"):
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                raise KeyError("while it cleaned up")

    task = asyncio.create_task(call())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
