"""The way of an earlier run is carried out again without an agent, and searched for where a state differs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import PersonQuestion, SideEffect
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState
from exact.environments.toy.known import chain, toy_task
from exact.errors import UsageError
from exact.library.rerun import approved, earlier_way, listed_writes
from exact.observation import Observation
from exact.runs.attempt.guide import Guide
from exact.runs.journal import events as ev
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create
from exact.runs.way import Way, WayStep
from tests.runs.test_resume import journal
from tests.runs.toys import config


class Counted:
    """Policy and value function of a toy graph that count how often they are asked."""

    def __init__(self, graph: ToyGraph) -> None:
        self.policy, self.value, self.asked = ToyPolicy(graph), ToyValue(graph), 0

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        self.asked += 1
        return await self.policy.propose(context, actions, k)

    async def evaluate(self, context: Context) -> Evaluation:
        self.asked += 1
        return await self.value.evaluate(context)


async def attempt(folder: Path, factory: ToyFactory, earlier: Path | None = None, **settings: Any) -> tuple[ResultLine, int]:
    """Attempt the task of a graph, with the way of an earlier run, and return the result and how often the agent was asked."""
    task, agent, chosen, ways = toy_task(factory.graph), Counted(factory.graph), config(**settings), {}
    if earlier is not None:
        task, way, blobs = earlier_way(earlier, task, {})
        ways = approved({task.id: (way, blobs)})
    runner = Runner(
        folder=create(folder, (task,), chosen, benchmark=False, ways=ways), config=chosen,
        open_environments=lambda task: nullcontext(factory), build_agent=lambda *_: Agent(policy=agent, value=agent),
    )  # fmt: skip
    (line,) = await runner.run()
    return line, agent.asked


def changed(graph: ToyGraph, **states: ToyState) -> ToyGraph:
    """Return a graph with other or further states."""
    return msgspec.structs.replace(graph, states={**graph.states, **states})


def inserted() -> ToyGraph:
    """Return the chain with a notice between its steps 1 and 2."""
    first = chain().states["s1"]
    notice = ToyState(text="A notice", edges={"away": ToyEdge(to="s2"), "help": ToyEdge(to="lost")}, looks=0.3)
    return changed(chain(), s1=msgspec.structs.replace(first, edges={**first.edges, "on": ToyEdge(to="notice")}), notice=notice)


async def test_an_unchanged_way_asks_nothing_of_the_agent_and_ends_as_before(tmp_path: Path) -> None:
    fresh, asked = await attempt(tmp_path / "one", ToyFactory(chain()))
    again, none = await attempt(tmp_path / "two", ToyFactory(chain()), tmp_path / "one")
    assert (fresh.score, again.score, asked > 0, none) == (1.0, 1.0, True, 0)
    assert (again.followed, again.healed, again.value) == (4, (), fresh.value)
    [decided, *_] = [each for each in journal(tmp_path / "two") if isinstance(each, ev.Decided)]
    assert decided.decision.reason == "the earlier run went on so"


async def test_an_inserted_step_is_searched_for_and_the_healed_way_is_the_next_one(tmp_path: Path) -> None:
    await attempt(tmp_path / "one", ToyFactory(chain()))
    _, fresh = await attempt(tmp_path / "fresh", ToyFactory(inserted()))
    healed, asked = await attempt(tmp_path / "two", ToyFactory(inserted()), tmp_path / "one")
    assert (healed.score, healed.followed) == (1.0, 4) and 0 < asked < fresh / 3
    [line] = healed.healed
    assert line.startswith('before step 3, go "on": go "away"; the page differs: ')
    third, none = await attempt(tmp_path / "three", ToyFactory(inserted()), tmp_path / "two")
    assert (third.score, third.followed, none) == (1.0, 5, 0)


async def test_a_renamed_action_is_found_by_what_it_brings(tmp_path: Path) -> None:
    await attempt(tmp_path / "one", ToyFactory(chain()))
    renamed = changed(chain(), s2=ToyState(text="Step 2 of 4", edges={"off": ToyEdge(to="lost"), "next": ToyEdge(to="s3")}, looks=0.5))
    healed, asked = await attempt(tmp_path / "two", ToyFactory(renamed), tmp_path / "one")
    assert (healed.score, healed.followed, asked <= 6) == (1.0, 3, True), asked
    assert healed.healed[0].startswith('in place of step 3, go "on": go "next"')


def selling(**after: ToyEdge) -> ToyGraph:
    """Return an order outside: two steps, a write, and what comes after it."""
    states: Mapping[str, ToyState] = {
        "shop": ToyState(text="A shop", edges={"item": ToyEdge(to="item")}),
        "item": ToyState(text="An item", edges={"buy": ToyEdge(to="bought", write=True), "back": ToyEdge(to="shop")}, looks=0.6),
        "bought": ToyState(text="Thank you", edges=after or {"end": ToyEdge(to="done")}, looks=0.9),
        "more": ToyState(text="Rate us", edges={"end": ToyEdge(to="done"), "again": ToyEdge(to="item")}, looks=0.9),
        "done": ToyState(reward=1.0),
    }
    return ToyGraph(name="shop", instruction="Buy it.", start="shop", states=states, isolated=False)


async def test_a_write_of_the_way_is_sent_once_whatever_comes_after_it(tmp_path: Path) -> None:
    await attempt(tmp_path / "one", ToyFactory(selling()))
    factory = ToyFactory(selling(on=ToyEdge(to="more"), back=ToyEdge(to="item")))
    line, asked = await attempt(tmp_path / "two", factory, tmp_path / "one")
    assert (line.score, factory.counts.writes) == (1.0, ['item: go "buy"']) and asked > 0


async def test_the_writes_of_a_way_are_listed_and_a_way_of_a_failed_attempt_is_none(tmp_path: Path) -> None:
    await attempt(tmp_path / "one", ToyFactory(selling()))
    _, way, blobs = earlier_way(tmp_path / "one", toy_task(selling()), {})
    assert listed_writes({"shop": (way, blobs)}) == ['POST toy://shop/item, by step 2: go "buy"']
    await attempt(tmp_path / "bad", ToyFactory(chain()), limits={"actions": 1})
    with pytest.raises(UsageError, match=r"has no way: its attempt was scored 0; name a run that solved the task"):
        earlier_way(tmp_path / "bad", toy_task(chain()), {})
    other = msgspec.structs.replace(toy_task(selling()), instruction="Sell it.")
    with pytest.raises(UsageError, match=r"is for another goal: 'Buy it\.'"):
        earlier_way(tmp_path / "one", other, {})


@pytest.mark.parametrize(("method", "second"), [("POST", "POST https://shop.test/order was sent already, as often as"), ("GET", "")])
def test_a_second_request_is_refused_and_one_that_is_only_presumed_to_write_is_asked_about(method: str, second: str) -> None:
    sent = SideEffect(kind="request", method=method, url="https://shop.test/order", write=True)
    step = WayStep(action='go "buy"', observation="", fingerprint="", effects=(sent,))
    way = Way(run="one", instruction="Buy it.", approved=True, steps=(step,))
    asked = PersonQuestion(kind="write", text="", method=method, url=sent.url)
    state = SimpleNamespace(people=SimpleNamespace(granted=[asked]))
    reason = Guide(SimpleNamespace(state=state), way).grants(asked)  # type: ignore[arg-type]
    assert reason is None if not second else (reason or "").startswith(second)


class Placed(Guide):
    """The guide of an attempt that stands before a step of a way, on a page that holds the texts typed before it and no later ones."""

    place = 0

    @property
    def position(self) -> int:
        return self.place

    def _holds_typed(self, index: int, seen: Observation) -> bool:
        return index <= self.place

    def _seen_at(self, node: object) -> Observation:
        return Observation(text="", fingerprint="")


@pytest.mark.parametrize(
    ("late", "place", "asked"), [(True, 3, False), (True, 1, False), (True, 0, True), (False, 3, True), (False, 1, False), (False, 0, True)]
)
def test_a_draft_may_come_at_any_later_step_and_no_request_before_its_texts_are_typed(late: bool, place: int, asked: bool) -> None:
    sent = SideEffect(kind="request", method="POST", url="https://shop.test/draft", late=late)
    steps = tuple(WayStep(action="go", observation="", fingerprint="", effects=(sent,) if number == 1 else ()) for number in range(4))
    way = Way(run="one", instruction="Buy it.", approved=True, steps=steps)
    state = SimpleNamespace(people=SimpleNamespace(granted=[]), search=SimpleNamespace(tree=SimpleNamespace(root=None)))
    guide = Placed(SimpleNamespace(state=state), way)  # type: ignore[arg-type]
    guide.place = place
    assert (guide.grants(PersonQuestion(kind="write", text="", method="POST", url=sent.url)) is None) is asked


@pytest.mark.parametrize("cut", [0.3, 0.5, 0.7, 0.9])
async def test_an_attempt_that_was_killed_goes_on_along_the_way(cut: float, tmp_path: Path) -> None:
    await attempt(tmp_path / "one", ToyFactory(chain()))
    line, asked = await attempt(tmp_path / "two", ToyFactory(inserted()), tmp_path / "one")
    [path] = (tmp_path / "two").glob("tasks/*/journal.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: int(cut * len(lines))]))
    (tmp_path / "two" / "results.jsonl").unlink()
    from exact.runs.runner import reopen

    folder, chosen = reopen(tmp_path / "two")
    agent, factory = Counted(inserted()), ToyFactory(inserted())
    runner = Runner(
        folder=folder, config=chosen, open_environments=lambda task: nullcontext(factory),
        build_agent=lambda *_: Agent(policy=agent, value=agent),
    )  # fmt: skip
    [resumed] = await runner.run()
    assert (resumed.score, resumed.followed, resumed.healed) == (line.score, line.followed, line.healed)
    assert agent.asked <= asked
