"""Several goals in one environment: state, history, cap and journal are the session's, and what its user may do is said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import exact
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import ToyEdge, ToyFactory, ToyGraph, ToyState
from exact.models.scripted import Question, ScriptedServer
from exact.runs.journal.session import GoalGiven, OpenedAgain, PointTaken, Returned
from exact.runs.journal.store import RunFolder

SETTINGS: dict[str, Any] = {"name": "mine", "search": {"algorithm": "react", "k": 1}, "reflection": {"kind": "none"}}


def rooms(*, isolated: bool = True) -> ToyGraph:
    """A hall with a room on each side. Going to the right one writes."""
    hall = ToyState(text="Hall", edges={"left": ToyEdge(to="left"), "right": ToyEdge(to="right", write=True)})
    left, right = (ToyState(text=name, edges={"hall": ToyEdge(to="hall")}) for name in ("Left", "Right"))
    return ToyGraph(name="rooms", instruction="", start="hall", states={"hall": hall, "left": left, "right": right}, isolated=isolated)


class Walker:
    """Goes to the room that the goal names, and says where it began."""

    def __init__(self) -> None:
        self.seen, self.asked = list[exact.Context](), asyncio.Event()
        self.waits: asyncio.Event | None = None

    async def propose(self, context: exact.Context, actions: exact.ActionSpace, k: int) -> Sequence[str]:
        self.seen.append(context)
        self.asked.set()
        if self.waits:
            await self.waits.wait()
        began = (context.history[0].observation if context.history else context.observation).url.rpartition("/")[2]
        if context.observation.url.endswith(f"/{context.instruction}"):
            return [f'stop "began in {began}"']
        return [f'go "{context.instruction if context.observation.url.endswith("/hall") else "hall"}"']

    async def evaluate(self, context: exact.Context) -> float:
        return 0.5


def arguments(**more: Any) -> dict[str, Any]:
    walker = Walker()
    own = {"agent": exact.Agent(policy=walker, value=walker), "config": exact.Config.parse(SETTINGS), "environments": ToyFactory(rooms())}
    return own | more


async def test_a_goal_begins_where_the_one_before_it_ended_and_is_told_of_it() -> None:
    walker, factory = Walker(), ToyFactory(rooms())
    async with exact.session(**arguments(agent=exact.Agent(policy=walker, value=walker), environments=factory)) as session:
        await session.solve("left")
        solution = await session.solve("right")
    assert (solution.answer, solution.actions[:2], solution.run) == ("began in left", ('go "hall"', 'go "right"'), None)
    [told] = walker.seen[-1].earlier
    assert (told.instruction, told.answer, told.undone) == ("left", "began in hall", False)
    assert told.actions == ('go "left"', 'stop "began in hall"') and factory.counts.resets == 1
    assert factory.counts.opened == factory.counts.closed


@pytest.mark.parametrize("algorithm", ["react", "mcts"])
async def test_a_point_brings_the_environment_and_what_later_goals_are_told_back(algorithm: str, tmp_path: Path) -> None:
    walker, search = Walker(), {"algorithm": algorithm, "k": 1, **({"iterations": 3} if algorithm == "mcts" else {})}
    given = arguments(agent=exact.Agent(policy=walker, value=walker), config=exact.Config.parse(SETTINGS | {"search": search}))
    async with exact.session(out=tmp_path, **given) as session:
        await session.solve("left")
        point = await session.snapshot()
        await session.solve("right")
        await session.restore(point)
        solution = await session.solve("left")
    assert (solution.answer, solution.result.drifted) == ("began in left", 0)
    assert [each.undone for each in walker.seen[-1].earlier] == [False, True]
    kinds = [type(event) for event in RunFolder.open(tmp_path).session()]
    assert kinds == [GoalGiven, PointTaken, GoalGiven, Returned, GoalGiven]


async def test_an_environment_that_does_not_fork_says_so_in_a_sentence() -> None:
    async with exact.session(**arguments(environments=ToyFactory(rooms(), fidelity="replay"))) as session:
        await session.solve("left")
        with pytest.raises(exact.UsageError, match="takes no point to return to, since the site would keep what was written since"):
            await session.snapshot()
        with pytest.raises(exact.UsageError, match="is of another session"):
            await session.restore(exact.Point(3, None))


async def test_an_environment_without_a_page_says_so_and_one_that_cannot_go_on_too() -> None:
    class Old(ToyEnvironment):
        @property
        def go_on(self) -> None:  # type: ignore[override]
            raise AttributeError("go_on")

    async with exact.session(**arguments()) as session:
        with pytest.raises(exact.UsageError, match="ToyEnvironment has no page"):
            await session.page.title()
    shared = ToyFactory(rooms())._shared
    async with exact.session(**arguments(environments=lambda: Old(shared, simulation=False))) as session:
        with pytest.raises(exact.UsageError, match="Old cannot go on after a goal: give it the coroutine go_on"):
            await session.solve("left")


async def test_calls_do_not_overlap() -> None:
    walker = Walker()
    walker.waits = asyncio.Event()
    async with exact.session(**arguments(agent=exact.Agent(policy=walker, value=walker))) as session:
        first = asyncio.ensure_future(session.solve("left"))
        await walker.asked.wait()
        with pytest.raises(exact.UsageError, match="solve: solve is under way in this session: await it first"):
            await session.solve("right")
        walker.waits.set()
        assert (await first).answer == "began in hall"
    with pytest.raises(exact.UsageError, match="the session is closed"):
        await session.solve("right")


async def test_one_cap_holds_for_all_goals_and_the_prompt_tells_of_earlier_ones_in_a_fence(tmp_path: Path) -> None:
    asked = list[str]()

    def answers(question: Question, sample: int) -> str:
        asked.append(question.messages[-1][1])
        return f'Action: stop "answer {len(asked)}"'

    async with ScriptedServer(answers) as server:
        model = {"model": "small", "base_url": server.base_url, "price": {"input": 0, "output": 0}}
        more = {"models": {"policy": model}, "policy": {"kind": "llm", "samples": 1}, "value": {"kind": "constant"}, "limits": {"calls": 2}}
        given = {"config": None, "agent": exact.Config.parse(SETTINGS | more), "environments": ToyFactory(rooms())}
        async with exact.session(out=tmp_path, **given) as session:
            for goal in ("the first", "the second"):
                await session.solve(goal)
            with pytest.raises(exact.BudgetExceeded, match=r"^the session's budget of 2 calls is used up$"):
                await session.solve("the third")
    assert len(asked) == 2 and "earlier" not in asked[0]
    fenced = asked[1].partition("⟦earlier ")[2].partition("⟦/earlier ")[0]
    assert "1. the first -- the agent stopped" in fenced and "answer: answer 1" in fenced
    assert [line["calls"] for line in exact.open_run(tmp_path).results()] == [1, 1]
    assert [each.instruction for each in exact.open_run(tmp_path).tasks] == ["the first", "the second"]


async def test_a_goal_that_exceeds_the_cap_on_the_way_ends_with_the_session_s_sentence() -> None:
    def answers(question: Question, sample: int) -> str:
        return 'Action: go "left"' if "Hall" in question.messages[-1][1].rpartition("observation")[0] else 'Action: go "hall"'

    async with ScriptedServer(answers) as server:
        model = {"model": "small", "base_url": server.base_url, "price": {"input": 0, "output": 0}}
        more = {"models": {"policy": model}, "policy": {"kind": "llm", "samples": 1}, "value": {"kind": "constant"}}
        limits = {"limits": {"calls": 5, "actions": 3}}
        async with exact.session(agent=exact.Config.parse(SETTINGS | more | limits), environments=ToyFactory(rooms())) as session:
            first, second = [await session.solve(goal) for goal in ("walk", "walk on")]
    assert (first.result.calls, second.result.calls) == (3, 2)
    assert second.result.reason.endswith("the session's budget of 5 calls is used up")


async def test_a_resumed_session_returns_ended_goals_and_goes_on_at_its_place(tmp_path: Path) -> None:
    async with exact.session(out=tmp_path, **arguments()) as session:
        before = await session.solve("left")
    given = arguments()
    del given["config"]
    async with exact.session(resume=tmp_path, **given) as session:
        assert session.behind
        with pytest.raises(exact.UsageError, match=r"stands behind goal 1, which its journal has"):
            await session.snapshot()
        again = await session.solve("left")
        assert again.result == before.result and not session.behind and given["environments"].counts.opened == 0
        assert (await session.solve("right")).answer == "began in left"
    [opened] = [event for event in RunFolder.open(tmp_path).session() if isinstance(event, OpenedAgain)]
    assert (opened.url, opened.lost) == ("toy://rooms/left", "")


async def test_another_goal_in_the_place_of_a_journalled_one_is_refused(tmp_path: Path) -> None:
    async with exact.session(out=tmp_path, **arguments()) as session:
        await session.solve("left")
    async with exact.session(resume=tmp_path, **{**arguments(), "config": None}) as session:
        with pytest.raises(exact.UsageError, match=r"goal 1 of the session in .* is 'left' .* and not 'right'"):
            await session.solve("right")


async def test_what_wrote_outside_is_not_repeated_and_what_is_lost_is_said(tmp_path: Path) -> None:
    first, second = (ToyFactory(rooms(isolated=False)) for _ in range(2))
    async with exact.session(out=tmp_path, **arguments(environments=first)) as session:
        await session.solve("right")
    async with exact.session(resume=tmp_path, **{**arguments(environments=second), "config": None}) as session:
        await session.solve("right")
        assert (await session.solve("left")).answer == "began in hall"
        assert session.lost.startswith(
            "the earlier browser is gone, and it was opened again at toy://rooms/hall, in place of toy://rooms/right"
        )
    assert (len(first.counts.writes), second.counts.writes) == (1, [])


async def test_a_cancelled_goal_is_gone_on_with_or_left(tmp_path: Path) -> None:
    walker = Walker()
    walker.waits = asyncio.Event()
    async with exact.session(out=tmp_path, **arguments(agent=exact.Agent(policy=walker, value=walker))) as session:
        for _ in range(2):
            attempt = asyncio.ensure_future(session.solve("left"))
            await walker.asked.wait()
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                await attempt
            walker.asked.clear()
        walker.waits.set()
        assert (await session.solve("right")).answer == "began in hall"
    assert [line["status"] for line in exact.open_run(tmp_path).results()] == ["stopped", "judged"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "a session begins at one place: give url, or a Task as start"),
        ({"url": "http://localhost/", "start": exact.Task(id="a", instruction="")}, "a session begins at one place"),
        ({"url": "localhost"}, "invalid url 'localhost'"),
        ({"url": "http://localhost/", "profile": "x", "config": exact.Config.parse({"browser": {"cdp_url": "http://a"}})}, "profile 'x': "),
    ],
)
async def test_a_wrong_argument_is_named(given: dict[str, Any], says: str) -> None:
    walker = Walker()
    with pytest.raises(exact.UsageError, match=says):
        async with exact.session(agent=exact.Agent(policy=walker, value=walker), **given):
            raise AssertionError("it was opened")


async def test_a_run_is_no_session_and_a_session_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from exact.cli.main import main

    async with exact.session(out=tmp_path / "session", **arguments()) as session:
        await session.solve("left")
    with pytest.raises(exact.UsageError, match="has the settings of its session"):
        async with exact.session(resume=tmp_path / "session", **arguments()):
            raise AssertionError("it was opened")
    with pytest.raises(exact.UsageError, match="holds a run already: go on with a session by resume="):
        async with exact.session(out=tmp_path / "session", **arguments()):
            raise AssertionError("it was opened")
    assert main(["resume", str(tmp_path / "session")]) == 2
    assert "is a session, which its program goes on with" in capsys.readouterr().err
