"""Models whose answers cannot be read, however often they are shown why: the agent's own fault, which ends an attempt and is scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from exact.agents.agent import Agent
from exact.context import Context, Evaluation
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import ToyGraph, bandit, chain
from exact.errors import AnswerError, ModelError
from exact.runs.journal import events as ev
from exact.runs.journal.state import fold
from exact.runs.journal.store import ResultLine
from exact.search.base import Failure
from exact.search.rules.final import UNJUDGED, is_unjudged
from tests.runs.test_outage import ALL, LOOKING
from tests.runs.test_resume import journal
from tests.runs.toys import config, toy_runner

UNREAD = "m gave nothing for the policy that can be read, asked 3 times: there is no line that begins with `Action:`"


class Part:
    """A value function, or a policy, that fails at some of its calls: what `fails` gives is raised."""

    def __init__(self, part: object, fails: Callable[[int], ModelError | None]) -> None:
        self._part, self._fails, self.calls = part, fails, 0

    def _call(self) -> None:
        self.calls += 1
        if error := self._fails(self.calls):
            raise error

    async def evaluate(self, context: Context) -> Evaluation:
        self._call()
        return await self._part.evaluate(context)  # type: ignore[attr-defined, no-any-return]

    async def propose(self, *args: object) -> object:
        self._call()
        return await self._part.propose(*args)  # type: ignore[attr-defined]


def settings(name: str) -> object:
    return config(search={"algorithm": name, "iterations": 12, "k": 4, "depth": 4, "breadth": 12})


async def attempt(folder: Path, name: str, environment: ToyGraph, part: str, fails: Callable[[int], ModelError | None]) -> ResultLine:
    runner = toy_runner(folder, ToyFactory(environment), settings(name))  # type: ignore[arg-type]
    good = runner.build_agent
    assert good is not None

    def build(settings: object, models: object) -> Agent:
        agent = good(settings, models)  # type: ignore[arg-type]
        return replace(agent, **{part: Part(getattr(agent, part), fails)})

    runner.build_agent = build  # type: ignore[assignment]
    (line,) = await runner.run()
    return line


def unread(call: int) -> ModelError:
    return AnswerError(UNREAD)


@pytest.mark.parametrize("name", ALL)
async def test_an_unreadable_policy_ends_its_attempt_which_is_scored(name: str, tmp_path: Path) -> None:
    line = await attempt(tmp_path, name, chain(2), "policy", unread)
    assert (line.status, line.score, line.actions, line.missing) == ("scored", 0.0, 0, "") and UNREAD in line.reason
    events = journal(tmp_path)
    assert {event.what for event in events if isinstance(event, ev.Failed)} == {"answer"} and line.failures > 0
    assert await attempt(tmp_path, name, chain(2), "policy", unread) == line and journal(tmp_path) == events, "a score is final"


async def test_a_policy_that_is_not_read_any_more_keeps_what_was_done(tmp_path: Path) -> None:
    line = await attempt(tmp_path, "react", chain(3), "policy", lambda call: unread(call) if call > 1 else None)
    assert (line.status, line.score, line.actions) == ("scored", 0.0, 1) and UNREAD in line.reason


@pytest.mark.parametrize("name", LOOKING)
async def test_the_likeliest_action_is_committed_when_no_evaluation_is_readable(name: str, tmp_path: Path) -> None:
    """The agent acts as without a search; the unreadable judge costs no attempt."""
    environment = bandit(3, rewards=(0.0, 1.0, 1.0))
    line = await attempt(tmp_path, name, environment, "value", unread)
    assert (line.status, line.actions, line.missing) == ("scored", 1, "")
    (decided,) = [event.decision for event in journal(tmp_path) if isinstance(event, ev.Decided)]
    assert decided.reason == UNJUDGED
    assert decided.edges == (max(decided.alternatives, key=lambda each: (each.prior, -each.edge)).edge,)


async def test_where_one_action_could_be_judged_there_is_a_choice(tmp_path: Path) -> None:
    line = await attempt(tmp_path, "greedy", bandit(3, rewards=(0.0, 1.0, 0.0)), "value", lambda call: unread(call) if call > 1 else None)
    assert (line.status, line.actions) == ("scored", 1)


async def test_where_a_model_was_out_as_well_there_is_no_score_and_only_that_is_made_good(tmp_path: Path) -> None:
    """Of three actions the judge's answer is unreadable for two, and missing for the third."""
    environment, out = bandit(3, rewards=(0.0, 0.0, 1.0)), ModelError("503")
    line = await attempt(tmp_path, "greedy", environment, "value", lambda call: unread(call) if call <= 2 else out)
    assert (line.status, line.score, line.missing, line.reason) == ("failed", None, "model", "503")
    line = await attempt(tmp_path, "greedy", environment, "value", lambda call: None)
    assert (line.status, line.score) == ("scored", 1.0)
    edges = fold(settings("greedy"), journal(tmp_path)).search.tree.nodes[0].edges  # type: ignore[arg-type]
    assert [is_unjudged(edge.child) for edge in edges if edge.child] == [True, True, False] and not any(edge.closed for edge in edges)


async def test_a_journal_from_before_in_which_it_was_an_outage_is_gone_on_with(tmp_path: Path) -> None:
    """It folds to its recorded state: closed, and reopened by the resume; then it is scored."""
    await attempt(tmp_path, "react", chain(2), "policy", lambda call: ModelError(UNREAD))
    tree = fold(settings("react"), journal(tmp_path)).search.tree  # type: ignore[arg-type]
    assert tree.root.closed == f"model: {UNREAD}" and len(tree.outages) == 1
    line = await attempt(tmp_path, "react", chain(2), "policy", unread)
    assert (line.status, line.score) == ("scored", 0.0)
    told = [event.result.kind for event in journal(tmp_path) if isinstance(event, ev.Told) and isinstance(event.result, Failure)]
    assert told == ["model"] * 3 + ["answer"] * 3
