"""An attempt as a stream of typed events, and several attempts under one cap on money."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from exact.environments.own import AnyEnvironment
from exact.errors import PartError, UncertainCommit, UsageError
from exact.library.solve import Approve, Assignment, Solution
from exact.library.tasks import AnyTask
from exact.runs.attempt.ending import NEEDS_USER
from exact.runs.journal import events as ev
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import ResultLine
from exact.search.base import Batched, Proposed, Rolled, Valued
from exact.search.tree import Tree
from exact.task import Task

Happening = Literal["proposed", "simulated", "valued", "committed", "refused", "needs_user", "answered", "ended"]


class SolvingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of an attempt, of the kind that `kind` names."""

    kind: Happening
    """proposed: the policy named actions. simulated: one was tried in a simulated environment. valued: a state was valued. committed: an
    action was carried out in the live environment. refused: the live environment refused one. needs_user: a person is asked, or has to go
    on. answered: the agent has answered. ended: the attempt is over, and this is the last event."""
    seconds: float
    """Seconds of the attempt until the event."""
    actions: tuple[str, ...] = ()
    """Texts of the actions that the event is about."""
    value: float | None = None
    """Value in [0, 1] of a state that was valued."""
    text: str = ""
    """Reason of a refusal, question to a person, or answer."""
    calls: int = 0
    """Model calls until the event."""
    tokens: int = 0
    """Tokens in and out until the event."""
    money: float = 0.0
    """US dollars until the event, of calls whose price is known."""
    solution: Solution[Any] | None = None
    """Outcome of an attempt that has ended."""


async def solving(task: AnyTask, **arguments: Any) -> AsyncIterator[SolvingEvent]:
    """Attempt one task as `solve` does, and yield what happens. The last event has the solution.

        async for event in exact.solving("Find the opening hours", url="https://museum.example", model="gpt-4o"):
            print(event.kind, *event.actions)

    Args:
        task: A Task, the id of a benchmark's task, or with `url` a goal in words.
        arguments: Those of `solve`.

    A reader who is slow holds up nothing. An iteration that ends early, or is cancelled, cancels the attempt and closes its environments;
    where a loop is left by `break`, wrap the iterator in `contextlib.aclosing`, so that this happens at once. Raises what `solve` raises.
    """
    environments, approve, out = (arguments.pop(name, None) for name in ("environments", "approve", "out"))
    goal, events = _goal(task, arguments), asyncio.Queue[SolvingEvent | None]()

    def watch(task: Task, state: AttemptState, event: ev.AnyEvent) -> None:
        for each in _happenings(state, event):
            events.put_nowait(each)

    attempt = asyncio.ensure_future(goal.attempt(environments, approve, out, watch))
    attempt.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        solution = await attempt
        line = solution.result
        yield SolvingEvent(
            kind="ended", seconds=line.seconds, actions=solution.actions, value=line.value, text=line.reason, calls=line.calls,
            tokens=line.tokens, money=line.cost or 0.0, solution=solution,
        )  # fmt: skip
    finally:
        attempt.cancel()
        await asyncio.wait([attempt])


def _happenings(state: AttemptState, event: ev.AnyEvent) -> Iterator[SolvingEvent]:
    """Yield what a journal's event tells a reader. The state is the one before it."""
    tree, spent = state.search.tree, state.spending.task.spent

    def happened(kind: Happening, *actions: str, value: float | None = None, text: str = "") -> SolvingEvent:
        calls, tokens = int(spent.get("calls", 0)), int(spent.get("tokens", 0))
        money = spent.get("money", 0.0)
        return SolvingEvent(kind=kind, seconds=event.t, actions=actions, value=value, text=text, calls=calls, tokens=tokens, money=money)

    match event:
        case ev.Told(result=Proposed(proposals=proposals)):
            yield happened("proposed", *(each.action.key for each in proposals))
        case ev.Told(result=Valued(evaluation=evaluation) | Rolled(evaluation=evaluation)):
            yield happened("valued", value=evaluation.value)
        case ev.Told(result=Batched(evaluations=evaluations)):
            yield from (happened("valued", value=each.value) for each in evaluations)
        case ev.Acted():
            yield happened("simulated", tree.nodes[event.node].edges[event.edge].action.key, text=event.refused)
        case ev.Committed():
            yield happened("refused" if event.refused else "committed", tree.root.edges[event.edge].action.key, text=event.refused)
        case ev.PersonAsked():
            yield happened("needs_user", text=event.question.text)
        case ev.Ended() if event.reason.startswith(NEEDS_USER):
            yield happened("needs_user", text=event.reason)
        case ev.Ended() if event.answer is not None:
            yield happened("answered", text=event.answer)


async def solve_many(goals: Sequence[AnyTask], *, parallel: int = 2, money: float | None = None, **arguments: Any) -> list[Solution[Any]]:
    """Attempt several tasks, some at the same time, and return their outcomes in order.

    Args:
        goals: Tasks, ids of benchmarks' tasks, or with `url` goals in words.
        parallel: Attempts at the same time, at least 1. Each has environments of its own.
        money: Cap in US dollars on the model calls of all attempts together. An attempt begins with what is left as its own cap at most;
            one for which nothing is left is not begun, and has the status `stopped`. None: each attempt has its own cap alone.
        arguments: Those of `solve`. `out` gets a run folder for each attempt: 1, 2, ...

    An attempt that a part or the environment ends has the status `failed`, and ends none of the others. Raises UsageError.
    """
    if parallel < 1:
        raise UsageError(f"parallel is {parallel}: give at least 1")
    environments, approve, out = (arguments.pop(name, None) for name in ("environments", "approve", "out"))
    made, turns, purse = [_goal(each, arguments) for each in goals], asyncio.Semaphore(parallel), _Purse(money)
    tasks = [each.checked(environments)[0] for each in made]  # a goal that cannot be worked at is an error before any is begun

    async def attempt(number: int) -> Solution[Any]:
        async with turns:
            place = None if out is None else Path(out) / str(number + 1)
            return await _attempt(made[number], tasks[number], purse, environments, approve, place)

    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(attempt(number)) for number in range(len(made))]
    except ExceptionGroup as failed:  # of arguments that all attempts share
        raise failed.exceptions[0] from None
    return [each.result() for each in running]


async def _attempt(
    goal: Assignment, task: Task, purse: _Purse, environments: AnyEnvironment | None, approve: Approve | None, out: Path | None
) -> Solution[Any]:
    cap = await purse.take(goal.cap)
    if cap is not None and cap <= 0:
        return _without(task, "stopped", f"the {purse.total:g} dollars for all goals are used up: give more money")
    spent = cap
    try:
        solution = await (goal if cap is None else goal.capped(cap)).attempt(environments, approve, out)
        spent = cap if solution.result.cost is None else solution.result.cost
    except (PartError, UncertainCommit) as error:
        solution = _without(task, "failed", str(error))
    finally:
        await purse.put_back(cap, spent)
    return solution


class _Purse:
    """Money that attempts share. Each takes what it may spend at most, and puts back what it did not."""

    def __init__(self, total: float | None) -> None:
        self.total, self._left, self._taken = total, total, 0.0
        self._changed = asyncio.Condition()

    async def take(self, most: float | None) -> float | None:
        """Take the cap of an attempt, or what is left of it. `most` None: all that is left. Return None without a total.

        An attempt for which nothing is left waits as long as others may put something back.
        """
        async with self._changed:
            if self._left is None:
                return None
            wanted = self._left if most is None else most
            await self._changed.wait_for(lambda: not self._taken or (self._left or 0.0) >= wanted)
            taken = min(wanted, self._left)
            self._left, self._taken = self._left - taken, self._taken + taken
            return taken

    async def put_back(self, taken: float | None, spent: float | None) -> None:
        """Put back what was taken and not spent."""
        if taken is None or self._left is None:
            return
        async with self._changed:
            self._left, self._taken = self._left + taken - (spent or 0.0), self._taken - taken
            self._changed.notify_all()


def _without(task: Task, status: Literal["stopped", "failed"], reason: str) -> Solution[Any]:
    """Return the outcome of an attempt that left no run."""
    return Solution(ResultLine(task=task.id, seed=task.seed, agent="", status=status, reason=reason, began=False), Tree(seed=0), None)


def _goal(task: AnyTask, arguments: dict[str, Any]) -> Assignment:
    """Return the goal of `solve`'s arguments. Raises UsageError for one that it does not have."""
    try:
        return Assignment(task=task, **arguments)
    except TypeError as error:
        raise UsageError(f"{str(error).rpartition('()')[2].strip()}: see the arguments of exact.solve") from None
