"""One attempt: search, commit, be judged; and what happens when environments misbehave."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from exact.action import ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import Faults, ToyFactory
from exact.environments.toy.known import chain, deceptive_chain, form, maze, toy_task
from exact.runs.journal import events as ev
from exact.runs.journal.file import Journal
from exact.runs.runner import create
from exact.task import Outcome, Score
from tests.runs.test_resume import Killed, journal, kill_at
from tests.runs.toys import config, toy_runner


async def test_search_finds_what_the_prior_does_not(tmp_path: Path) -> None:
    (react,) = await toy_runner(tmp_path / "react", ToyFactory(deceptive_chain(3)), config(search={"algorithm": "react"})).run()
    (mcts,) = await toy_runner(tmp_path / "mcts", ToyFactory(deceptive_chain(3))).run()
    assert (react.score, mcts.score) == (0.0, 1.0)


async def test_react_takes_no_speculative_step(tmp_path: Path) -> None:
    environments = ToyFactory(chain(3))
    (line,) = await toy_runner(tmp_path, environments, config(search={"algorithm": "react"})).run()
    assert line.transitions == line.actions == environments.counts.steps == 3


async def test_the_environment_is_evaluated_once_and_after_the_last_commit(tmp_path: Path) -> None:
    environments = ToyFactory(maze())
    await toy_runner(tmp_path, environments).run()
    kinds = [type(event) for event in journal(tmp_path)]
    assert environments.counts.evaluations == kinds.count(ev.Scored) == 1
    assert kinds.index(ev.Scored) > max(i for i, kind in enumerate(kinds) if kind in (ev.Committed, ev.Told, ev.Judged))


@pytest.mark.parametrize("value", [7.0, -0.5, math.nan])
async def test_an_invalid_score_is_a_failure_and_no_score(value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def evaluate(self: ToyEnvironment, outcome: Outcome) -> Score:
        return Score(value=value, success=True)

    monkeypatch.setattr(ToyEnvironment, "evaluate", evaluate)
    (line,) = await toy_runner(tmp_path, ToyFactory(maze())).run()
    assert (line.status, line.score) == ("failed", None)
    assert line.reason.endswith(f"ToyEnvironment returned the score {value}: expected one in [0, 1]")
    assert not any(isinstance(event, ev.Scored) for event in journal(tmp_path))


async def test_every_commit_has_its_intent_on_disk_first(tmp_path: Path) -> None:
    await toy_runner(tmp_path, ToyFactory(maze())).run()
    phases = [type(event) for event in journal(tmp_path) if isinstance(event, ev.Decided | ev.Committed)]
    assert phases == [ev.Decided, ev.Committed] * (len(phases) // 2)


async def test_the_count_of_transitions_is_that_of_the_environments(tmp_path: Path) -> None:
    environments = ToyFactory(form(3))
    (line,) = await toy_runner(tmp_path, environments).run()
    assert line.transitions == environments.counts.steps


async def test_an_environment_that_drifts_is_reported_and_never_searched(tmp_path: Path) -> None:
    environments = ToyFactory(maze(), faults=Faults(drift_after=2))
    (line,) = await toy_runner(tmp_path, environments).run()
    events = journal(tmp_path)
    drifted = [event for event in events if isinstance(event, ev.Arrived) and event.match == "drifted"]
    assert drifted and line.drifted == len(drifted)
    after = {type(events[events.index(event) + 1]) for event in drifted}
    assert after == {ev.Told}, "something was done in a drifted environment"


async def test_environments_that_break_cost_tries_and_never_a_score(tmp_path: Path) -> None:
    environments = ToyFactory(chain(3), faults=Faults(fail_every=7))
    (line,) = await toy_runner(tmp_path, environments).run()
    assert line.status == "scored" and line.score == 1.0
    assert line.failures > 0


async def test_environments_that_always_break_end_as_failed_without_a_score(tmp_path: Path) -> None:
    environments = ToyFactory(chain(3), faults=Faults(fail_every=1))
    (line,) = await toy_runner(tmp_path, environments).run()
    assert (line.status, line.score) == ("failed", None)
    assert line.reason


@pytest.mark.parametrize("fail_every", [0, 1])
async def test_a_line_has_the_seed_of_its_task_and_not_that_of_the_run(tmp_path: Path, fail_every: int) -> None:
    create(tmp_path, (toy_task(chain(3), 4),), config(seed=7))
    (line,) = await toy_runner(tmp_path, ToyFactory(chain(3), faults=Faults(fail_every=fail_every))).run()
    assert (line.status, line.seed) == ("failed" if fail_every else "scored", 4)


async def test_a_write_outside_isolation_is_blocked_in_search_and_sent_once_at_commit(tmp_path: Path) -> None:
    environments = ToyFactory(form(2, write=True), isolated=False)
    await toy_runner(tmp_path, environments).run()
    events = journal(tmp_path)
    assert not [event for event in events if isinstance(event, ev.Acted) and any(effect.is_write for effect in event.effects)]
    sent = [event for event in events if isinstance(event, ev.Committed) and any(effect.is_write for effect in event.effects)]
    assert len(sent) == len(environments.counts.writes) == 1


async def test_after_a_crash_in_a_commit_an_open_environment_stops_and_asks(tmp_path: Path) -> None:
    environments = ToyFactory(chain(3), isolated=False)
    whole = ToyFactory(chain(3), isolated=False)
    await toy_runner(tmp_path / "whole", whole).run()
    nth = next(i for i, event in enumerate(journal(tmp_path / "whole"), 1) if isinstance(event, ev.Decided))
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, nth, written=True)
        with pytest.raises(Killed):
            await toy_runner(tmp_path / "run", environments).run()
    (line,) = await toy_runner(tmp_path / "run", environments).run()
    assert (line.status, line.missing) == ("failed", "commit") and "before the crash" in line.reason
    runner = toy_runner(tmp_path / "run", environments)
    runner.repeat_uncertain = True
    (line,) = await runner.run()
    assert line.status == "scored"


@pytest.mark.parametrize("kind", ["actions", "transitions", "evaluations"])
async def test_no_budget_is_ever_passed(kind: str, tmp_path: Path) -> None:
    for limit in (1, 2, 5, 9):
        settings = config(limits={kind: limit})
        (line,) = await toy_runner(tmp_path / str(limit), ToyFactory(maze()), settings).run()
        spent = getattr(line, kind) - (line.actions if kind == "transitions" else 0)
        assert spent <= limit
        assert line.status == "scored", "the best answer so far is given"


async def test_a_cancelled_attempt_closes_its_environments(tmp_path: Path) -> None:
    environments = ToyFactory(maze())
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, 12, written=True)
        with pytest.raises(Killed):
            await toy_runner(tmp_path, environments).run()
    assert environments.counts.opened == environments.counts.closed > 0


async def test_equal_runs_write_equal_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal.__init__, "__kwdefaults__", {"clock": lambda: 0.0})
    for name in ("one", "two"):
        await toy_runner(tmp_path / name, ToyFactory(maze())).run()
    one, two = (next((tmp_path / name).glob("tasks/*/journal.jsonl")).read_text() for name in ("one", "two"))
    keys = [re.search(r'"fences":"(\w{32})"', text)[1] for text in (one, two)]  # a random key, which a page must not know
    assert keys[0] != keys[1] and one.replace(keys[0], "") == two.replace(keys[1], "")


class Broken:
    """A value function that cannot count."""

    async def evaluate(self, context: Context) -> Evaluation:
        return Evaluation(value=float("nan"))


async def test_an_invalid_value_ends_the_attempt_and_leaves_the_journal_usable_for_a_resume(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(chain(3)))
    good = runner.build_agent
    assert good is not None
    runner.build_agent = lambda config, models: replace(good(config, models), value=Broken())
    (line,) = await runner.run()
    assert line.status == "failed" and "Broken returned the value nan" in line.reason
    (line,) = await toy_runner(tmp_path, ToyFactory(chain(3))).run()
    assert line.score == 1.0


class Speechless:
    """A policy without ideas."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        return ()


async def test_a_policy_without_proposals_ends_the_attempt_not_the_run(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(chain(3)))
    good = runner.build_agent
    assert good is not None
    runner.build_agent = lambda config, models: replace(good(config, models), policy=Speechless())
    (line,) = await runner.run()
    assert line.status == "scored" and line.score == 0.0
    assert "proposes nothing" in line.reason
