"""What may be spent, in nested scopes, and what happens when it is."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from exact.agents.base import ValueFunction
from exact.agents.siblings import LLMValue
from exact.config import ValueConfig
from exact.context import Context, Evaluation
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import form
from exact.models.base import ChatAnswer, ChatRequest, Choice, Price, Sampling, Usage
from exact.runs.journal import events as ev
from exact.runs.journal.state import fold
from exact.runs.runner import Runner
from tests.runs.test_resume import committed, journal
from tests.runs.toys import config, toy_runner

SEARCH = {"algorithm": "mcts", "iterations": 24, "k": 4}


async def yielding() -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("kind", ["transitions", "evaluations", "iterations"])
async def test_no_cap_of_a_task_is_ever_passed(kind: str, workers: int, tmp_path: Path) -> None:
    for limit in (1, 3, 7, 20):
        settings = config(search={**SEARCH, "workers": workers}, limits={kind: limit})
        (line,) = await toy_runner(tmp_path / str(limit), ToyFactory(form(3), latency=yielding), settings).run()
        spent = fold(settings, journal(tmp_path / str(limit))).spending.task.spent.get(kind, 0)  # type: ignore[call-overload]
        assert spent - (line.actions if kind == "transitions" else 0) <= limit
        assert line.status == "scored" and line.actions > 0, "the best answer so far is given"


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("kind", ["transitions", "evaluations"])
async def test_a_search_has_its_own_caps_renewed_for_each_commit(kind: str, workers: int, tmp_path: Path) -> None:
    settings = config(search={**SEARCH, "workers": workers, "limits": {kind: 6}})
    await toy_runner(tmp_path, ToyFactory(form(3), latency=yielding), settings).run()
    spent, stopped = [0.0], []
    for event in journal(tmp_path):
        match event:
            case ev.Acted() if kind == "transitions":
                spent[-1] += 1
            case ev.Arrived() if kind == "transitions":
                spent[-1] += event.transitions
            case ev.Told() if kind == "evaluations":
                spent[-1] += type(event.result).__name__ == "Valued" and not event.reused
            case ev.Decided():
                stopped.append(event.stopped)
                spent.append(0)
    assert len(spent) > 2 and max(spent) <= 6 and sum(spent) > 6
    assert any(f"the search's budget of 6 {kind}" in reason for reason in stopped)


async def test_work_over_its_budget_is_closed_and_the_search_continues(tmp_path: Path) -> None:
    settings = config(search={**SEARCH, "iteration": {"transitions": 2}})
    (line,) = await toy_runner(tmp_path, ToyFactory(form(3)), settings).run()
    events = journal(tmp_path)
    failed = [event for event in events if isinstance(event, ev.Failed)]
    assert failed and {event.what for event in failed} == {"budget"}
    assert "the iteration's budget of 2 transitions" in failed[0].reason
    assert line.failures == 0, "nothing was broken"
    assert any("iterations" in event.stopped for event in events if isinstance(event, ev.Decided))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("where", ["limits", "search"])
async def test_when_time_is_up_waiting_ends_and_the_best_so_far_is_committed(where: str, workers: int, tmp_path: Path) -> None:
    """States two steps away are never evaluated: only the clock can end the waiting."""

    class Hanging:
        def __init__(self, value: ValueFunction) -> None:
            self._value = value

        async def evaluate(self, context: Context) -> Evaluation:
            if len(context.history) > 1:
                await asyncio.get_running_loop().create_future()
            return await self._value.evaluate(context)

    sections: dict[str, dict[str, object]] = {"search": {**SEARCH, "workers": workers}, "limits": {"actions": 1}}
    sections[where]["seconds" if where == "limits" else "limits"] = 1.5 if where == "limits" else {"seconds": 1.5}
    runner = toy_runner(tmp_path, environments := ToyFactory(form(3)), config(**sections))
    good = runner.build_agent
    assert good is not None
    runner.build_agent = lambda settings, models: replace(agent := good(settings, models), value=Hanging(agent.value))
    (line,) = await runner.run()
    assert line.status == "scored"
    events = journal(tmp_path)
    decided = next(event for event in events if isinstance(event, ev.Decided))
    scope = "task" if where == "limits" else "search"
    assert f"the {scope}'s budget of 1.5 seconds is used up" in decided.stopped
    assert len(committed(events)) == 1 and environments.counts.opened == environments.counts.closed


class Priced:
    """A model that counts: each answer takes 10 tokens in and 5 out, and 0.001 dollars."""

    name = "toy/priced"
    price = Price(input=50.0, output=100.0)

    def __init__(self, *, tells_usage: bool = True) -> None:
        self.asked: list[ChatRequest] = []
        self.inside = self.most = 0
        self._tells = tells_usage

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        self.asked.append(request)
        self.inside += 1
        self.most = max(self.most, self.inside)
        for _ in range(3):
            await asyncio.sleep(0)
        self.inside -= 1
        usage = Usage(input_tokens=10, output_tokens=5, cost=0.001) if self._tells else Usage()
        return ChatAnswer(choices=(Choice(text="Verdict: C"),) * request.sampling.n, usage=usage, model="priced", raw="{}")

    async def close(self) -> None: ...


def judged_by_model(folder: Path, monkeypatch: pytest.MonkeyPatch, model: Priced, boxes: int = 4, **sections: dict[str, object]) -> Runner:
    """Run a toy task whose value function asks a journalled model."""
    environments = ToyFactory(form(boxes), latency=yielding)
    runner = toy_runner(folder, environments, config(**sections))
    good = runner.build_agent
    assert good is not None
    monkeypatch.setattr("exact.runs.runner.open_models", lambda settings, models: {"value": model})
    sampling = Sampling(max_tokens=10)
    runner.build_agent = lambda settings, models: replace(
        good(settings, models), value=LLMValue(models("value"), ValueConfig(samples=1), sampling=sampling)
    )
    return runner


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(("kind", "limit"), [("calls", 5), ("money", 0.1), ("tokens", 3000)])
async def test_money_tokens_and_calls_are_reserved_before_they_are_spent(
    kind: str, limit: float, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Priced()
    settings = {"search": {**SEARCH, "workers": workers}, "limits": {kind: limit}}
    (line,) = await judged_by_model(tmp_path, monkeypatch, model, **settings).run()
    spent = {"calls": line.calls, "money": line.cost or 0.0, "tokens": line.tokens}[kind]
    assert 0 < spent <= limit and line.calls == len(model.asked)
    assert f"the task's budget of {limit:g} {kind}" in str([e.stopped for e in journal(tmp_path) if isinstance(e, ev.Decided)])


async def test_the_reservation_counts_where_no_usage_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = judged_by_model(tmp_path, monkeypatch, Priced(tells_usage=False), search=SEARCH, limits={"tokens": 3000})
    (line,) = await runner.run()
    held = sum(event.reserved_tokens for event in journal(tmp_path) if isinstance(event, ev.Called))
    assert line.tokens == held and 0 < held <= 3000


async def test_work_that_waits_for_others_reservations_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Money for one call at a time at its worst price, but for many at their real one: four workers share it."""
    whole = Priced()
    await judged_by_model(tmp_path / "whole", monkeypatch, whole, search={**SEARCH, "workers": 4}).run()
    worst = max(event.reserved for event in journal(tmp_path / "whole") if isinstance(event, ev.Called))
    model, cap = Priced(), worst + 0.001 * (len(whole.asked) + 2)
    (line,) = await judged_by_model(tmp_path / "run", monkeypatch, model, search={**SEARCH, "workers": 4}, limits={"money": cap}).run()
    assert line.cost is not None and line.cost <= cap
    assert whole.most > 1 and len(model.asked) >= len(whole.asked) // 2
    assert not [e for e in journal(tmp_path / "run") if isinstance(e, ev.Decided) and "budget" in e.stopped]


async def test_draws_of_one_state_are_calls_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Priced()
    await judged_by_model(tmp_path, monkeypatch, model, boxes=2, search={**SEARCH, "evaluations": 3}).run()
    called = [event for event in journal(tmp_path) if isinstance(event, ev.Called)]
    draws = Counter(event.draw for event in called)
    assert draws[1] > 0 and len({event.key for event in called}) == len(called)
    same = [event for event in called if event.node == next(each.node for each in called if each.draw == 1)]
    assert len({event.sampling.seed for event in same}) == len(same)
