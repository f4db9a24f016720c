"""A lesson written after one task is shown in the next."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.context import Context, Evaluation, Proposal, Reflection
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import deceptive_chain, toy_task
from exact.errors import InfrastructureError, ModelError
from exact.reflection.base import Kind, Surprise
from exact.reflection.contrast import BuiltinReflector
from exact.reflection.memory.open import SQLiteMemory, StoredMemory
from exact.report.model.model import report
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import RunFolder
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.runs.toys import config, toy_agent

SHOWN: list[tuple[int, str, tuple[Reflection, ...]]] = []
"""What agents were shown: node, kind, reflections."""


CONFIRMED = 0.93
"""What a judgement says that is asked for once more."""


class Seeing:
    """A policy or a value function that notes what it is shown."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        SHOWN.append((context.node, "policy", context.reflections))
        return await self._inner.propose(context, actions, k)

    async def evaluate(self, context: Context) -> Evaluation:
        SHOWN.append((context.node, "value", context.reflections))
        return Evaluation(value=CONFIRMED) if context.confirms else await self._inner.evaluate(context)


async def run(folder: Path, memory: Path, reflector: type[BuiltinReflector] = BuiltinReflector, **reflection: object) -> list[ev.AnyEvent]:
    """Run one toy task with a shared memory and too few iterations to see the deception, and return its journal."""
    environment = deceptive_chain(3)
    settings = config(
        search={"algorithm": "mcts", "iterations": 2, "k": 2},
        reflection={
            "kind": "builtin",
            "memory": str(memory),
            "threshold": 0.2,
            "similarity": 0.1,
            "signals": ["edge"],
            "exclude_same_task": False,
            **reflection,
        },
    )
    agent = toy_agent(environment)(settings, {}.__getitem__)

    def build(*_: object) -> Agent:
        return Agent(policy=Seeing(agent.policy), value=Seeing(agent.value), reflector=reflector(run=folder.name))

    made = create(folder, (toy_task(environment),), settings)
    await Runner(folder=made, config=settings, open_environments=lambda task: nullcontext(ToyFactory(environment)), build_agent=build).run()
    return journal(folder)


class Refusing(BuiltinReflector):
    """A reflector whose model does not answer."""

    async def reflect(self, context: Context, surprise: Surprise, kind: Kind) -> Reflection:
        raise ModelError("no answer")


async def several(folder: Path, tasks: list[Task], *, new: bool = True, **reflection: object) -> list[list[ev.AnyEvent]]:
    """Run some tasks in one run, and return the journal of each."""
    environment = deceptive_chain(3)
    settings = config(
        search={"algorithm": "mcts", "iterations": 2, "k": 2},
        reflection={"kind": "builtin", "threshold": 0.2, "similarity": 0.1, "signals": ["edge"], "exclude_same_task": False, **reflection},
    )
    agent = toy_agent(environment)(settings, {}.__getitem__)

    def build(*_: object) -> Agent:
        return Agent(policy=agent.policy, value=agent.value, reflector=BuiltinReflector())

    made = create(folder, tuple(tasks), settings) if new else RunFolder.open(folder)
    await Runner(folder=made, config=settings, open_environments=lambda task: nullcontext(ToyFactory(environment)), build_agent=build).run()
    return [list(read_journal(made.task_folder(task) / "journal.jsonl")) for task in tasks]


def journal(folder: Path) -> list[ev.AnyEvent]:
    (path,) = folder.glob("tasks/*/journal.jsonl")
    return list(read_journal(path))


def recalled(events: list[ev.AnyEvent]) -> list[ev.Recalled]:
    """Return the events in which the memory gave reflections."""
    return [event for event in events if isinstance(event, ev.Recalled) and event.reflections]


async def test_a_surprise_becomes_one_reflection_that_the_next_task_is_shown(tmp_path: Path) -> None:
    first = await run(tmp_path / "first", tmp_path / "memory.sqlite")
    (written,) = [event.reflection for event in first if isinstance(event, ev.Reflected)]
    assert abs(written.surprise) >= 0.2 and written.run == "first" and written.signal == "edge"
    assert not recalled(first), "there was nothing to recall yet"
    second = await run(tmp_path / "second", tmp_path / "memory.sqlite")
    shown = recalled(second)
    assert shown and all(event.kind == "policy" and written in event.reflections for event in shown)
    assert shown[0].memory != "0:0", "the version of the memory is journalled"


async def test_by_default_nothing_learned_on_the_same_task_of_a_benchmark_is_shown_and_results_say_where_it_was(tmp_path: Path) -> None:
    await run(tmp_path / "first", tmp_path / "memory.sqlite")
    second = await run(tmp_path / "second", tmp_path / "memory.sqlite", exclude_same_task=None)
    assert not recalled(second)
    said = [next(iter(RunFolder.open(tmp_path / name).results())).same_task for name in ("first", "second")]
    assert said == [True, False]


async def test_the_memory_is_informed_once_of_the_outcome_of_an_attempt_that_used_a_reflection(tmp_path: Path) -> None:
    await run(tmp_path / "first", tmp_path / "memory.sqlite")
    second = await run(tmp_path / "second", tmp_path / "memory.sqlite")
    ids = {each.id for event in recalled(second) for each in event.reflections}
    with SQLiteMemory(tmp_path / "memory.sqlite") as memory:
        used = {entry.reflection.id: (entry.retrieved, entry.helped + entry.hurt) for entry in memory.entries(None) if entry.retrieved}
    assert used == dict.fromkeys(ids, (1, 1))


async def test_tasks_of_a_round_are_shown_the_memory_as_it_was_when_the_round_began(tmp_path: Path) -> None:
    environments = [toy_task(deceptive_chain(3), seed) for seed in range(4)]
    events = await several(tmp_path / "run", environments, round=2)
    versions = [next(e.memory for e in of if isinstance(e, ev.Opened)) for of in events]
    assert versions[0] == versions[1] != versions[2] == versions[3]
    assert [bool(recalled(of)) for of in events] == [False, False, True, True]


async def test_without_reflection_there_is_no_memory(tmp_path: Path) -> None:
    await run(tmp_path / "run", tmp_path / "memory.sqlite", kind="none")
    assert not (tmp_path / "memory.sqlite").exists()


async def test_a_small_surprise_is_no_reflection(tmp_path: Path) -> None:
    events = await run(tmp_path / "run", tmp_path / "memory.sqlite", threshold=1.0)
    assert not [event for event in events if isinstance(event, ev.Reflected)]


def written(events: list[ev.AnyEvent]) -> list[ev.Reflected]:
    return [event for event in events if isinstance(event, ev.Reflected)]


async def test_the_benchmark_says_how_it_ended_only_where_that_is_asked_for(tmp_path: Path) -> None:
    own = await run(tmp_path / "own", tmp_path / "a.sqlite")
    asked = await run(tmp_path / "asked", tmp_path / "b.sqlite", outcome="evaluator")
    order = [type(event) for event in asked if isinstance(event, ev.Scored | ev.Reflected | ev.Finished)]
    assert [event.reflection.outcome_source for event in written(own)] == ["judge"]
    assert [event.reflection.outcome_source for event in written(asked)] == ["evaluator"]
    assert order == [ev.Scored, ev.Reflected, ev.Finished] and written(asked)[0].reflection.outcome == 0.0


async def test_a_reflection_from_an_uncertain_outcome_is_not_shown(tmp_path: Path) -> None:
    [reflection] = [event.reflection for event in written(await run(tmp_path / "first", tmp_path / "other.sqlite"))]
    for outcome, confidence, shown in ((0.5, 0.2, False), (0.95, 0.2, True), (0.95, 0.91, False)):
        name = f"{outcome} {confidence}"
        with SQLiteMemory(tmp_path / f"{name}.sqlite") as memory:
            memory.add(msgspec.structs.replace(reflection, outcome=outcome))
        assert bool(recalled(await run(tmp_path / name, tmp_path / f"{name}.sqlite", confidence=confidence))) == shown


async def test_each_kind_has_its_own_reflections_up_to_the_configured_number(tmp_path: Path) -> None:
    events = await run(tmp_path / "run", tmp_path / "m.sqlite", signals=["edge", "judge", "outcome"], most=3, threshold=0.05)
    kinds = [event.reflection.kind for event in written(events)]
    assert 2 <= len(kinds) <= 6 and {"policy", "value"} == set(kinds)
    assert len({(e.reflection.kind, e.reflection.node, e.reflection.action) for e in written(events)}) == len(kinds)


async def test_memory_is_asked_at_every_expansion_and_evaluation_and_the_journal_says_where_and_which_version(tmp_path: Path) -> None:
    await run(tmp_path / "first", tmp_path / "memory.sqlite", most=3, signals=["edge", "judge"], threshold=0.05)
    SHOWN.clear()
    events = await run(tmp_path / "second", tmp_path / "memory.sqlite")
    said = {(event.node, event.kind): event for event in events if isinstance(event, ev.Recalled)}
    assert {kind for _, kind, _ in SHOWN} == {"policy", "value"} and any(reflections for _, _, reflections in SHOWN)
    assert all(said[node, kind].reflections == reflections for node, kind, reflections in SHOWN)
    assert {(node, kind) for node, kind, _ in SHOWN} == set(said), "and nothing is said to be shown that was not"
    assert all(event.memory not in ("", "0:0") for event in said.values())


async def test_number_and_similarity_are_configured_for_each_kind(tmp_path: Path) -> None:
    first: dict[str, object] = {"most": 3, "signals": ["edge", "judge"], "threshold": 0.05}
    await run(tmp_path / "first", tmp_path / "memory.sqlite", **first)

    async def kinds(name: str, *, memory: str = "memory", **settings: object) -> set[str]:
        return {event.kind for event in recalled(await run(tmp_path / name, tmp_path / f"{memory}.sqlite", threshold=1.0, **settings))}

    assert await kinds("both") == {"policy", "value"}
    assert await kinds("no value", value_k=0) == {"policy"}
    assert await kinds("no policy", k=0, value_k=2) == {"value"}
    with SQLiteMemory(tmp_path / "memory.sqlite") as memory, SQLiteMemory(tmp_path / "other.sqlite") as other:
        for each in [entry.reflection for entry in memory.entries()]:
            other.add(msgspec.structs.replace(each, state=each.state + "\nSomething else stands here too"))
    assert [await kinds(f"strict {least}", memory="other", similarity=least) for least in (0.1, 0.99)] == [{"policy", "value"}, set()]


async def test_a_reflector_is_shown_no_reflections_and_none_counts_as_used(tmp_path: Path) -> None:
    await run(tmp_path / "first", tmp_path / "memory.sqlite")
    events = await run(tmp_path / "second", tmp_path / "memory.sqlite")
    over = next(i for i, event in enumerate(events) if isinstance(event, ev.Judged))
    assert written(events) and not [event for event in events[over:] if isinstance(event, ev.Recalled)]


async def test_value_reflections_belong_to_the_evaluated_state(tmp_path: Path) -> None:
    events = await run(tmp_path / "run", tmp_path / "m.sqlite", signals=["edge", "judge"], most=3, threshold=0.05)
    lessons = [event.reflection for event in written(events)]
    of_start = {each.kind: each.state for each in lessons if each.node == 0}
    assert "A fork" not in of_start["value"] and "room 1" in of_start["value"]
    assert all('link "on"' in each.state for each in lessons if each.kind == "policy" and each.action == 'go "on"')


async def test_the_memory_can_be_shown_in_a_report_and_on_the_command_line(tmp_path: Path) -> None:
    await run(tmp_path / "first", tmp_path / "memory.sqlite")
    events = await run(tmp_path / "second", tmp_path / "memory.sqlite")
    folder = RunFolder.open(tmp_path / "second")
    (task,) = folder.manifest.tasks
    shown = report(folder, task, screenshots=False).remembered
    ids = {each.id for event in recalled(events) for each in event.reflections}
    assert len(shown) == len(ids) and all(each.nodes for each in shown)
    with SQLiteMemory(tmp_path / "memory.sqlite") as memory:
        uses = [use for id in ids for use in memory.uses(id)]
    assert len(uses) == len(ids) and all(task.id in use.attempt for use in uses)


async def test_a_resumed_run_is_shown_the_memory_of_its_round(tmp_path: Path) -> None:
    tasks = [toy_task(deceptive_chain(3), seed) for seed in range(4)]
    events = await several(tmp_path / "run", tasks, round=2)
    folder, before = RunFolder.open(tmp_path / "run"), [recalled(of) for of in events]
    lines = (folder.path / "results.jsonl").read_bytes().splitlines(keepends=True)
    (folder.path / "results.jsonl").write_bytes(b"".join(lines[:3]))
    journal_ = folder.task_folder(tasks[3]) / "journal.jsonl"
    journal_.write_bytes(b"")
    with SQLiteMemory(folder.path / "memory.sqlite") as memory:
        for entry in memory.entries():
            memory.forget([entry.reflection.id])
    again = await several(tmp_path / "run", tasks, new=False, round=2)
    assert [event.memory for event in recalled(again[3])] == [event.memory for event in before[3]]
    assert [event.reflections for event in recalled(again[3])] == [event.reflections for event in before[3]] != []


async def test_the_outcome_is_judged_once_more_where_that_is_asked_for_and_counted(tmp_path: Path) -> None:
    once = await run(tmp_path / "once", tmp_path / "a.sqlite")
    again = await run(tmp_path / "again", tmp_path / "b.sqlite", confirm=True)
    bench = await run(tmp_path / "bench", tmp_path / "c.sqlite", confirm=True, outcome="evaluator")
    judged = [next(event for event in of if isinstance(event, ev.Judged)) for of in (once, again, bench)]
    assert [event.bought for event in judged] == [False, True, False] and judged[1].evaluation.value == CONFIRMED
    assert {event.reflection.outcome for event in written(again)} == {CONFIRMED}
    assert {event.reflection.outcome for event in written(once)} != {CONFIRMED}


async def test_a_reflector_that_fails_writes_nothing_and_the_attempt_is_scored(tmp_path: Path) -> None:
    events = await run(tmp_path / "run", tmp_path / "m.sqlite", reflector=Refusing)
    (failed,) = [event for event in events if isinstance(event, ev.Failed)]
    assert (failed.what, failed.reason) == ("reflection", "no answer") and not written(events)
    assert [event.status for event in events if isinstance(event, ev.Finished)] == ["scored"]
    with SQLiteMemory(tmp_path / "m.sqlite") as memory:
        assert not memory.entries(None)


@pytest.mark.parametrize("call", ["add", "used"])
async def test_a_memory_that_breaks_after_the_end_costs_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def broken(*_: object) -> None:
        raise InfrastructureError("the disk is full")

    await run(tmp_path / "first", tmp_path / "m.sqlite")
    monkeypatch.setattr(StoredMemory, call, broken)
    events = await run(tmp_path / "second", tmp_path / "m.sqlite")
    failed = [event for event in events if isinstance(event, ev.Failed)]
    assert failed and {(event.what, event.reason) for event in failed} == {("reflection", "the disk is full")}
    assert bool(written(events)) == (call == "used")
    assert [event.status for event in events if isinstance(event, ev.Finished)] == ["scored"]
    assert next(iter(RunFolder.open(tmp_path / "second").results())).score is not None
