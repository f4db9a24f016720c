"""A value function whose answers cannot be read: its states count as unjudged, and the agent goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from exact.context import Context, Evaluation
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain, maze
from exact.errors import AnswerError, PromptRefused
from exact.runs.journal import events as ev
from exact.search.base import Valued
from tests.runs.test_resume import journal
from tests.runs.toys import config, toy_runner


class Unreadable:
    """A value function that cannot be read in the states with a text in `where`; None: in any."""

    def __init__(self, good, where=None, error=AnswerError) -> None:
        self.good, self.where, self.error = good, where, error

    async def evaluate(self, context: Context) -> Evaluation:
        if self.where is None or any(each in context.observation.text for each in self.where):
            raise self.error("the judge gave nothing that can be read")
        return await self.good.evaluate(context)


def runner_with(folder: Path, environments: ToyFactory, settings=None, **unreadable):
    runner = toy_runner(folder, environments, settings)
    build = runner.build_agent

    def worse(config, models):
        agent = build(config, models)
        return replace(agent, value=Unreadable(agent.value, **unreadable))

    runner.build_agent = worse
    return runner


@pytest.mark.parametrize("error", [AnswerError, PromptRefused])
@pytest.mark.parametrize(
    "algorithm", ["mcts", "gumbel", "best_first", "beam", "tot_bfs", "tot_dfs", "greedy", "best_of_n", "flat_halving", "abmcts"]
)
async def test_an_agent_whose_judge_is_never_read_acts_by_its_policy(algorithm: str, error: type, tmp_path: Path) -> None:
    settings = config(search={"algorithm": algorithm, "iterations": 12, "k": 3})
    (line,) = await runner_with(tmp_path, ToyFactory(chain(3)), settings, error=error).run()
    decisions = [event.decision for event in journal(tmp_path) if isinstance(event, ev.Decided)]
    assert line.status == "scored" and decisions
    assert all(made.edges[0] == max(made.alternatives, key=lambda each: (each.prior, -each.edge)).edge for made in decisions)


async def test_an_unjudged_state_has_the_value_of_the_state_before_it(tmp_path: Path) -> None:
    environments = ToyFactory(maze())
    runner = toy_runner(tmp_path / "whole", environments)
    await runner.run()
    texts = [event for event in journal(tmp_path / "whole") if isinstance(event, ev.Told) and isinstance(event.result, Valued)]
    assert texts and not any(event.result.evaluation.unjudged for event in texts)
    runner = runner_with(tmp_path / "run", ToyFactory(maze()))
    (line,) = await runner.run()
    told = [
        event.result.evaluation for event in journal(tmp_path / "run") if isinstance(event, ev.Told) and isinstance(event.result, Valued)
    ]
    assert line.status == "scored" and told and all(each.unjudged and each.value == 0.5 for each in told)
    assert all("the judge gave nothing" in each.rationale for each in told)


async def test_a_state_that_a_filter_refuses_is_worth_nothing(tmp_path: Path) -> None:
    refused = {"Step 1 of 2"}
    (line,) = await runner_with(tmp_path, ToyFactory(chain(2)), where=refused, error=PromptRefused).run()
    told = [event.result.evaluation for event in journal(tmp_path) if isinstance(event, ev.Told) and isinstance(event.result, Valued)]
    assert line.status == "scored" and {each.value for each in told if each.unjudged} == {0.0}
    assert any(not each.unjudged for each in told)


async def test_a_judge_that_is_not_read_at_the_root_alone_changes_nothing_below(tmp_path: Path) -> None:
    (line,) = await runner_with(tmp_path, ToyFactory(chain(3)), where={"Step 0 of 3"}).run()
    assert (line.status, line.score) == ("scored", 1.0)


async def test_the_agents_own_evaluation_of_the_end_is_never_one_that_was_not_read(tmp_path: Path) -> None:
    await runner_with(tmp_path, ToyFactory(chain(3))).run()
    assert not any(isinstance(event, ev.Judged) for event in journal(tmp_path))


async def test_a_resumed_attempt_has_the_same_unjudged_states(tmp_path: Path) -> None:
    (first,) = await runner_with(tmp_path, ToyFactory(chain(3))).run()
    (again,) = await runner_with(tmp_path, ToyFactory(chain(3))).run()
    assert (first.score, first.actions) == (again.score, again.actions)
