"""What a selection may need, and what is journalled when it is met."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.action import Action, ActionSpace
from exact.agents.agent import Agent
from exact.agents.siblings import ValueComparator
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import Transition
from exact.environments.toy.factory import TOY_ACTIONS, ToyEnvironment, ToyFactory
from exact.environments.toy.known import ToyEdge, ToyGraph, ToyState, bandit, chain, form
from exact.observation import Observation
from exact.runs.journal import events as ev
from exact.runs.runner import Runner
from exact.search import registry
from exact.search.base import Decision, Done, Selection, Wait
from exact.search.rules.final import most_likely
from exact.search.tree import Tree
from exact.search.work import Work
from tests.runs.test_resume import journal, killed, repeated_facts, run
from tests.runs.toys import config, toy_runner

Ask = Callable[["Scripted", Tree], Selection]


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what a test registers."""
    monkeypatch.setattr(registry, "BUILTIN", dict(registry.BUILTIN))


class Scripted(Work):
    """Asks what a test wants, one after the other, then commits the likeliest action."""

    def __init__(self, *asks: Ask) -> None:
        super().__init__(k=4)
        self._asks = asks

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        if tree.open:
            return Wait()
        if tree.root.parent is not None or tree.selections >= len(self._asks):
            return Done("asked for all")
        return self._asks[tree.selections](self, tree)

    def decide(self, tree: Tree) -> Decision:
        return self.commit(tree, most_likely(tree.root), "the likeliest")


def at_root(*needs: Any, **more: Any) -> Ask:
    return lambda work, tree: work.select_state(tree, [], tree.root, *needs, **more)


def step(edge: int, **more: Any) -> Ask:
    return lambda work, tree: work.select_step(tree, [(tree.root, tree.root.edges[edge])], edge, **more)


class Recording:
    """An agent's parts, with what they were shown."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.proposed, self.judged = agent, list[tuple[Context, int]](), list[Context]()

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        self.proposed.append((context, k))
        return await self.agent.policy.propose(context, actions, k)

    async def evaluate(self, context: Context) -> Evaluation:
        self.judged.append(context)
        return await self.agent.value.evaluate(context)


def scripted(folder: Path, environment: ToyGraph, *asks: Ask, isolated: bool = True) -> tuple[Runner, list[Recording]]:
    """Return a runner whose search requests the given work and may commit one action, and its agent."""
    registry.BUILTIN["scripted"] = lambda config: Scripted(*asks)
    runner = toy_runner(folder, ToyFactory(environment, isolated=isolated), config(search={"algorithm": "scripted"}, limits={"actions": 1}))
    good, made = runner.build_agent, list[Recording]()
    assert good is not None

    def build(settings: Any, models: Any) -> Agent:
        agent = good(settings, models)
        made.append(Recording(agent))
        return replace(agent, policy=made[-1], value=made[-1])

    runner.build_agent = build
    return runner, made


def told(folder: Path) -> list[Any]:
    return [event.result for event in journal(folder) if isinstance(event, ev.Told)]


async def test_a_sample_is_one_action_drawn_by_its_number(tmp_path: Path) -> None:
    runner, made = scripted(tmp_path, bandit(3), *(at_root("sample", draw=draw) for draw in range(7)))
    await runner.run()
    assert [(context.draw, k) for context, k in made[0].proposed] == [(0, 6)] * 6 + [(1, 6)], "six draws are one question"
    drawn = [result.proposals[0].action.key for result in told(tmp_path)]
    assert all(len(result.proposals) == 1 for result in told(tmp_path)) and len(set(drawn)) > 1


async def test_a_confirmation_is_said_to_be_one(tmp_path: Path) -> None:
    runner, made = scripted(tmp_path, bandit(3), at_root("value"), at_root("value", draw=1, confirms=True), at_root("proposals"))
    await runner.run()
    assert [(context.draw, context.confirms) for context in made[0].judged][:2] == [(0, False), (1, True)]


async def test_siblings_are_compared_by_their_values_by_default(tmp_path: Path) -> None:
    environment = bandit(2, rewards=(0.75, 0.25))
    compare = lambda work, tree: work.select_state(tree, [], tree.root, "comparison", rivals=(0, 1))  # noqa: E731
    runner, _ = scripted(tmp_path, environment, at_root("proposals"), step(0), step(1), compare)
    (line,) = await runner.run()
    assert told(tmp_path)[-1].scores == (0.75, 0.25)
    assert line.evaluations == 4, "a comparison counts as a judgement of each"


@pytest.mark.parametrize("need", ["comparison", "batch"])
async def test_siblings_are_not_shown_what_was_tried_in_the_state_above_them(need: str, tmp_path: Path) -> None:
    ways = {"stay": ToyEdge(to="a", prior=3.0), "left": ToyEdge(to="b"), "right": ToyEdge(to="c")}
    ends = {"on": ToyEdge(to="won"), "back": ToyEdge(to="a")}
    states = {"a": ToyState(edges=ways), "b": ToyState(edges=ends), "c": ToyState(edges=ends), "won": ToyState(reward=1.0)}
    rate = at_root(need, rivals=(1, 2))
    steps = (step(i, needs=("step",)) for i in range(3))
    runner, made = scripted(tmp_path, ToyGraph(name="w", instruction="i", start="a", states=states), at_root("proposals"), *steps, rate)
    await runner.run()
    siblings = [context for context in made[0].judged if len(context.history) == 1]
    assert len(siblings) >= 2 and not any(context.tried for context in siblings)


@pytest.mark.parametrize("search", [{"algorithm": "beam", "batch": True}, {"algorithm": "tot_bfs", "options": {"rating": "vote"}}])
async def test_a_search_that_rates_siblings_together_ends_where_actions_change_nothing(search: dict[str, Any], tmp_path: Path) -> None:
    settings = config(search={"iterations": 40, "k": 4, **search})
    (line,) = await toy_runner(tmp_path, ToyFactory(form(3)), settings).run()
    assert line.status == "scored"


async def test_a_comparison_of_what_is_worth_nothing_is_even() -> None:
    class Nothing:
        async def evaluate(self, context: Context) -> Evaluation:
            return Evaluation(value=0.0)

    assert await ValueComparator(Nothing()).compare([None, None]) == (0.5, 0.5)  # type: ignore[list-item]


def rollout(depth: int) -> Ask:
    return at_root("rollout", depth=depth)


@pytest.mark.parametrize(("depth", "steps", "terminated", "value"), [(2, 2, False, 2 / 4), (9, 4, True, 1.0)])
async def test_a_rollout_goes_the_policys_way_and_is_judged_at_its_end(
    depth: int, steps: int, terminated: bool, value: float, tmp_path: Path
) -> None:
    runner, made = scripted(tmp_path, chain(4), at_root("proposals"), rollout(depth))
    await runner.run()
    rolled = told(tmp_path)[-1]
    assert (rolled.steps, rolled.terminated, rolled.evaluation.value) == (steps, terminated, value)
    assert [step.action for step in journal(tmp_path) if isinstance(step, ev.RolledStep)] == ['go "on"'] * steps
    assert len(made[0].judged[0].history) == steps, "it is judged where it ended"


async def test_notes_of_rollout_steps_are_shown_when_its_end_is_evaluated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    step = ToyEnvironment.step

    async def telling(environment: ToyEnvironment, action: Action) -> Transition:
        return msgspec.structs.replace(await step(environment, action), info={"refused": "half of it", "reward": "0.75"})

    monkeypatch.setattr(ToyEnvironment, "step", telling)
    runner, made = scripted(tmp_path, chain(4), at_root("proposals"), rollout(2))
    await runner.run()
    assert [taken.note for taken in made[0].judged[0].history] == ["half of it"] * 2


async def test_an_end_of_a_rollout_shows_what_the_environment_gave_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    step = ToyEnvironment.step

    async def showing(environment: ToyEnvironment, action: Action) -> Transition:
        came = await step(environment, action)
        return msgspec.structs.replace(came, observation=Observation(text="the end")) if came.terminated else came

    monkeypatch.setattr(ToyEnvironment, "step", showing)
    runner, made = scripted(tmp_path, chain(2), at_root("proposals"), rollout(9))
    await runner.run()
    judged = made[0].judged[0]
    assert judged.terminated and judged.end is not None and (judged.end.text, judged.observation.text == "the end") == ("the end", False)


async def test_a_killed_rollout_resumes_at_its_last_step(tmp_path: Path) -> None:
    registry.BUILTIN["scripted"] = lambda config: Scripted(at_root("proposals"), rollout(4))
    search: dict[str, Any] = {"algorithm": "scripted"}
    whole = await run(tmp_path / "whole", form(2), **search)
    assert len(rolled(whole)) > 1
    for nth in range(4, 14):
        events = await killed(tmp_path / str(nth), nth, form(2), **search)
        assert rolled(events) == rolled(whole) and repeated_facts(events) == []


def rolled(events: list[ev.AnyEvent]) -> list[str]:
    return [event.action for event in events if isinstance(event, ev.RolledStep)]


async def test_a_selection_says_which_of_several_policies_is_asked(tmp_path: Path) -> None:
    class Other:
        async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
            return (Proposal(action=TOY_ACTIONS.action("go", "arm 2"), prior=1.0),)

    runner, _ = scripted(tmp_path, bandit(3), at_root("proposals", policy=1))
    good = runner.build_agent
    assert good is not None
    runner.build_agent = lambda settings, models: replace(agent := good(settings, models), policies=(agent.policy, Other()))
    await runner.run()
    assert [event.action for event in journal(tmp_path) if isinstance(event, ev.Committed)] == ['go "arm 2"']


async def test_an_equal_question_has_the_answer_it_had_and_costs_nothing(tmp_path: Path) -> None:
    runner, made = scripted(tmp_path, bandit(3), at_root("value"), at_root("value"), at_root("value", draw=1), at_root("proposals"))
    (line,) = await runner.run()
    at_start = [context for context in made[0].judged if not context.history]
    assert [context.draw for context in at_start] == [0, 1], "another draw is another question"
    assert [event.reused for event in journal(tmp_path) if isinstance(event, ev.Told)] == [False, True, False, False]
    assert line.evaluations == len(made[0].judged)


async def test_a_result_for_what_was_dropped_is_late_and_kept(tmp_path: Path) -> None:
    """The value of one arm arrives after the other was committed: it is kept, and not given to the search."""
    began, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Recording):
        async def evaluate(self, context: Context) -> Evaluation:
            if context.history and context.history[-1].action.args == ("arm 1",):
                began.set()
                await go_on.wait()
            return await super().evaluate(context)

    class Hasty(Scripted):
        def ask(self, tree: Tree) -> Selection | Wait | Done:
            if go_on.is_set():
                return Done("proposed") if tree.root.expansions else at_root("proposals")(self, tree)
            return Done("enough") if began.is_set() else super().ask(tree)

        def advance(self, tree: Tree, edge: int, observed: Any) -> bool:
            go_on.set()
            return super().advance(tree, edge, observed)

    registry.BUILTIN["scripted"] = lambda config: Hasty(at_root("proposals"), step(1))
    runner = toy_runner(tmp_path, ToyFactory(two_ways()), config(search={"algorithm": "scripted", "workers": 2}))
    good = runner.build_agent
    assert good is not None
    runner.build_agent = lambda settings, models: replace(agent := good(settings, models), value=Slow(agent))
    await runner.run()
    late = [event for event in journal(tmp_path) if isinstance(event, ev.Late)]
    assert len(late) == 1 and late[0].key
    assert [type(result).__name__ for result in told(tmp_path)][:2] == ["Proposed", "Stepped"], "and its value was not"


def two_ways() -> ToyGraph:
    """Return a graph in which the likelier action continues and the other ends."""
    states = {
        "start": ToyState(text="two ways", edges={"arm 0": ToyEdge(to="mid", prior=2.0), "arm 1": ToyEdge(to="end")}),
        "mid": ToyState(text="on the way", edges={"arm 0": ToyEdge(to="end")}),
        "end": ToyState(reward=1.0),
    }
    return ToyGraph(name="two ways", instruction="Win.", start="start", states=states)


async def test_an_action_that_wrote_before_is_presumed_to_write_again(tmp_path: Path) -> None:
    runner, _ = scripted(tmp_path, form(2, write=True), at_root("proposals"), submit, at_root("proposals", draw=1), isolated=False)
    await runner.run()
    first, again = (result for result in told(tmp_path) if hasattr(result, "proposals"))
    assert not any(proposal.writes for proposal in first.proposals)
    assert [proposal.action.key for proposal in again.proposals if proposal.writes] == ['go "submit"']


def submit(work: Scripted, tree: Tree) -> Selection:
    """Take the edge that submits."""
    index = next(i for i, edge in enumerate(tree.root.edges) if "submit" in edge.action.key)
    return step(index)(work, tree)
