"""Models and environments that are out of order for a while: an attempt that failed of it is gone on with once they are back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from exact.context import Context, Evaluation
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import Faults, ToyFactory
from exact.environments.toy.known import ToyGraph, bandit, chain
from exact.errors import EnvironmentFailure, ModelError
from exact.runs.journal import events as ev
from exact.runs.journal.state import fold
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner
from tests.runs.test_resume import journal
from tests.runs.toys import config, toy_runner

LOOKING = ("mcts", "gumbel", "flat_halving", "abmcts", "greedy", "best_first", "best_of_n", "beam", "tot_bfs", "tot_dfs")
ALL = (*LOOKING, "react")


class Judge:
    """A value function, or a policy, that is out of order at some of its calls."""

    def __init__(self, part: object, down: Callable[[int], bool]) -> None:
        self._part, self._down, self.calls = part, down, 0

    def _call(self) -> None:
        self.calls += 1
        if self._down(self.calls):
            raise ModelError("503")

    async def evaluate(self, context: Context) -> Evaluation:
        self._call()
        return await self._part.evaluate(context)  # type: ignore[attr-defined, no-any-return]

    async def propose(self, *args: object) -> object:
        self._call()
        return await self._part.propose(*args)  # type: ignore[attr-defined]


async def attempt(
    folder: Path, name: str, down: Callable[[int], bool], environment: ToyGraph, *, parts: Collection[str] = ("value",), **search: object
) -> ResultLine:
    settings = config(search={"algorithm": name, "iterations": 12, "k": 4, "depth": 4, "breadth": 12, **search})
    runner = toy_runner(folder, ToyFactory(environment), settings)
    return await run(runner, down, parts)


async def run(runner: Runner, down: Callable[[int], bool], parts: Collection[str] = ("value",)) -> ResultLine:
    good = runner.build_agent
    assert good is not None

    def build(settings: object, models: object) -> object:
        agent = good(settings, models)  # type: ignore[arg-type]
        return replace(agent, **{part: Judge(getattr(agent, part), down) for part in parts})

    runner.build_agent = build  # type: ignore[assignment]
    (line,) = await runner.run()
    return line


def never(call: int) -> bool:
    return False


def always(call: int) -> bool:
    return True


@pytest.mark.parametrize("name", ALL)
async def test_an_attempt_that_failed_of_an_outage_is_gone_on_with_once_it_is_over(name: str, tmp_path: Path) -> None:
    for _ in range(2):
        line = await attempt(tmp_path, name, always, chain(2), parts=("value", "policy"))
        assert (line.status, line.score, line.actions) == ("failed", None, 0)
    line = await attempt(tmp_path, name, never, chain(2))
    whole = await attempt(tmp_path / "whole", name, never, chain(2))
    assert (line.status, line.score) == ("scored", whole.score)
    assert (line.actions, line.evaluations) == (whole.actions, whole.evaluations), "the outage took no iteration"


async def test_states_exhausted_by_an_outage_are_searched_after_it(tmp_path: Path) -> None:
    first = await attempt(tmp_path, "mcts", lambda call: call > 2, chain(3), iterations=30)
    assert first.status == "failed"
    line = await attempt(tmp_path, "mcts", never, chain(3), iterations=30)
    assert line.score == 1.0
    settings = config(search={"algorithm": "mcts", "iterations": 30, "k": 4, "depth": 4})
    tree = fold(settings, journal(tmp_path)).search.tree
    assert not tree.outages and not [node for node in tree.walk() if node.closed.startswith("model")]


async def test_a_journal_from_before_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Earlier versions kept closed what an outage had closed when an attempt was resumed."""
    await attempt(tmp_path, "mcts", always, chain(2))
    settings = config(search={"algorithm": "mcts", "iterations": 12, "k": 4, "depth": 4})
    closed = [fold(settings, [*journal(tmp_path), ev.Resumed(repaired=mended)]).search.tree.root.closed for mended in (False, True)]
    assert closed == ["model: 503", ""]


async def test_environments_that_broke_are_gone_on_with_in_new_ones(tmp_path: Path) -> None:
    settings = config(search={"algorithm": "mcts", "iterations": 12, "k": 4, "retries": 0})
    broken = toy_runner(tmp_path, ToyFactory(chain(2), faults=Faults(fail_every=1)), settings)
    assert (await run(broken, never)).status == "failed"
    assert (await run(toy_runner(tmp_path, ToyFactory(chain(2)), settings), never)).score == 1.0
    assert [event.repaired for event in journal(tmp_path) if isinstance(event, ev.Resumed)][-1]


@pytest.mark.parametrize("name", LOOKING)
async def test_where_nothing_of_what_was_proposed_could_be_judged_nothing_is_committed(name: str, tmp_path: Path) -> None:
    """The root is evaluated; then no state is, until the attempt resumes."""
    rooted = name not in ("greedy", "flat_halving", "abmcts", "best_of_n")
    line = await attempt(tmp_path, name, lambda call: call > rooted, bandit(3, rewards=(0.0, 1.0, 0.0)))
    assert (line.status, line.score, line.actions, line.reason) == ("failed", None, 0, "503")
    line = await attempt(tmp_path, name, never, bandit(3, rewards=(0.0, 1.0, 0.0)))
    assert (line.status, line.score) == ("scored", 1.0)


class Shut(ToyFactory):
    """Only the live environment opens."""

    @asynccontextmanager
    async def open(self, *, simulation: bool = True) -> AsyncIterator[ToyEnvironment]:
        if simulation:
            raise EnvironmentFailure("no room for another browser")
        async with super().open(simulation=simulation) as environment:
            yield environment


@pytest.mark.parametrize("name", LOOKING)
async def test_where_no_environment_to_search_in_opens_nothing_is_committed(name: str, tmp_path: Path) -> None:
    environment = bandit(3, rewards=(0.0, 1.0, 0.0))
    settings = config(search={"algorithm": name, "iterations": 12, "k": 4})
    (line,) = await toy_runner(tmp_path, Shut(environment), settings).run()
    assert (line.status, line.score, line.actions, line.reason) == ("failed", None, 0, "no room for another browser")
    (line,) = await toy_runner(tmp_path, ToyFactory(environment), settings).run()
    assert (line.status, line.score) == ("scored", 1.0)


async def test_where_one_action_could_be_judged_there_is_a_choice(tmp_path: Path) -> None:
    line = await attempt(tmp_path, "greedy", lambda call: call > 1, bandit(3, rewards=(0.0, 1.0, 0.0)))
    assert line.status == "scored" and line.actions == 1


@pytest.mark.parametrize("name", LOOKING)
async def test_a_cap_on_one_piece_of_work_is_no_outage(name: str, tmp_path: Path) -> None:
    line = await attempt(tmp_path, name, never, bandit(3), iteration={"transitions": 0})
    assert line.status == "scored" and line.actions == 1
