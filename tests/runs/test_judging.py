"""Which judge a run asks, about what, how often: cascades, batches, and what was judged before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from exact.agents.agent import Agent
from exact.agents.value.build import CascadeValue
from exact.context import Context, Evaluation
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState, chain, deceptive_chain
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import fold
from exact.runs.runner import Runner
from exact.search.base import Batched, Rolled, Selection
from tests.runs.test_needs import at_root, journal, scripted, step, told
from tests.runs.toys import config, toy_runner

MODELS: dict[str, object] = {"policy": {"model": "m", "base_url": "http://127.0.0.1:9/v1"}}


class Recorded:
    """A judge with what it was asked about."""

    def __init__(self, values: dict[str, float] | ToyValue) -> None:
        self._values, self.asked = values, list[Context]()

    async def evaluate(self, context: Context) -> Evaluation:
        self.asked.append(context)
        if isinstance(self._values, ToyValue):
            return await self._values.evaluate(context)
        value = self._values.get(context.observation.fingerprint, 0.5)
        return Evaluation(value=value, samples=(value,) * 6, within=0.01)


def corridors() -> ToyGraph:
    """Two corridors that look alike to a cheap judge; only the second leads to the prize."""
    states = {"start": ToyState(text="start", edges={"left": ToyEdge(to="l0", prior=2.0), "right": ToyEdge(to="r0")}, looks=0.5)}
    for side, prize in (("l", 0.0), ("r", 1.0)):
        for i in range(6):
            on = f"{side}{i + 1}" if i < 5 else f"{side}end"
            states[f"{side}{i}"] = ToyState(text=f"{side}{i}", edges={"on": ToyEdge(to=on)}, looks=0.5)
        states[f"{side}end"] = ToyState(reward=prize)
    return ToyGraph(name="corridors", instruction="Win.", start="start", states=states)


def cascading(folder: Path, environment: ToyGraph, dear: Recorded, cheap: Recorded, **search: object) -> Runner:
    settings = config(
        search={"algorithm": "mcts", "iterations": 12, "k": 4, **search}, value={"kind": "cascade"}, models=MODELS, limits={"actions": 1}
    )  # fmt: skip
    runner = toy_runner(folder, ToyFactory(environment), settings)
    runner.build_agent = lambda settings, models: Agent(policy=ToyPolicy(environment), value=CascadeValue(cheap, dear))
    return runner


async def test_close_candidates_of_the_cheap_judge_go_to_the_expensive_one(tmp_path: Path) -> None:
    environment = corridors()
    cheap = Recorded({})
    looked = Recorded({})
    await cascading(tmp_path / "look", environment, looked, cheap).run()
    states = {context.history[-1].action.key: context.observation.fingerprint for context in looked.asked if context.history}
    assert set(states) == {'go "left"', 'go "right"'}, "the two candidates, and nothing else"
    dear = Recorded({states['go "left"']: 0.1, states['go "right"']: 0.9})
    await (runner := cascading(tmp_path / "run", environment, dear, Recorded({}))).run()
    events = journal(tmp_path / "run")
    asked = [event.answer for event in events if isinstance(event, ev.Asked) and isinstance(event.answer, Selection)]
    assert sum(selection.reevaluates for selection in asked) == len(dear.asked) == 2 <= 12 // 4
    assert [event.action for event in events if isinstance(event, ev.Committed)] == ['go "right"']
    decided = next(event.decision for event in events if isinstance(event, ev.Decided))
    assert decided.reason == "the best of the close candidates after re-evaluation"
    folded = fold(runner.config, read_journal(next((tmp_path / "run" / "tasks").iterdir()) / "journal.jsonl"))
    assert {len(values) for values in folded.search.tree.reevaluations.values()} == {1}


async def test_ends_and_confirmations_go_to_the_expensive_judge_and_the_rest_to_the_cheap_one(tmp_path: Path) -> None:
    environment = chain(2)
    cheap, dear = Recorded(ToyValue(environment)), Recorded(ToyValue(environment))
    await cascading(tmp_path / "run", environment, dear, cheap, enough=0.9, reevaluations=0).run()
    assert cheap.asked and not any(context.terminated or context.confirms for context in cheap.asked)
    assert any(context.confirms for context in dear.asked)
    assert all(context.terminated for context in dear.asked)


async def test_without_a_cascade_no_iteration_is_kept_for_contests(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path / "run", ToyFactory(corridors()), config(search={"algorithm": "mcts", "iterations": 12, "k": 4}))
    await runner.run()
    assert not any(isinstance(e, ev.Asked) and getattr(e.answer, "reevaluates", False) for e in journal(tmp_path / "run"))


class Together(Recorded):
    """Judges siblings in one question."""

    def __init__(self, environment: ToyGraph) -> None:
        super().__init__(ToyValue(environment))
        self.batches = list[int]()

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        self.batches.append(len(contexts))
        return tuple([await self.evaluate(context) for context in contexts])


async def test_siblings_are_judged_in_one_batch_where_the_search_wants_it(tmp_path: Path) -> None:
    environment = deceptive_chain(3)
    value = Together(environment)
    settings = config(search={"algorithm": "tot_bfs", "iterations": 20, "k": 4, "batch": True})
    runner = toy_runner(tmp_path / "run", ToyFactory(environment), settings)
    runner.build_agent = lambda settings, models: Agent(policy=ToyPolicy(environment), value=value)
    (line,) = await runner.run()
    batches = [event.result for event in journal(tmp_path / "run") if isinstance(event, ev.Told) and isinstance(event.result, Batched)]
    assert line.score == 1.0 and len(batches) == len(value.batches) > 0 and set(value.batches) == {2}
    assert line.evaluations == len(value.asked)


async def test_a_rollout_that_ends_in_an_evaluated_state_reuses_its_evaluation(tmp_path: Path) -> None:
    asks = at_root("proposals"), step(0, needs=("step", "value")), at_root("rollout", depth=1), at_root("rollout", depth=2)
    runner, made = scripted(tmp_path, chain(4), *asks)
    (line,) = await runner.run()
    rolled = [result for result in told(tmp_path) if isinstance(result, Rolled)]
    ways = [len(context.history) for context in made[0].judged]
    assert [each.steps for each in rolled] == [1, 2] and ways.count(1) == 1 and ways.count(2) == 1
    assert line.evaluations == len(ways)
