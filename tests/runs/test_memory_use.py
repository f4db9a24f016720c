"""A lesson written after one task is shown in the next."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from exact.agents.agent import Agent
from exact.environments.toy import ToyWorlds
from exact.environments.toy_worlds import deceptive_chain, toy_task
from exact.reflection.builtin import BuiltinReflector
from exact.runs import events as ev
from exact.runs.journal import read
from exact.runs.runner import Runner, create
from tests.runs.toys import config, toy_agent


async def run(folder: Path, memory: Path, **reflection: object) -> list[ev.AnyEvent]:
    """One toy task with a shared memory; its journal. Too few iterations to see through the deception."""
    world = deceptive_chain(3)
    settings = config(
        search={"algorithm": "mcts", "iterations": 2, "k": 2},
        reflection={"kind": "builtin", "memory": str(memory), "threshold": 0.2, "similarity": 0.1, **reflection},
    )
    agent = toy_agent(world)(settings, {}.__getitem__)

    def build(*_: object) -> Agent:
        return Agent(policy=agent.policy, value=agent.value, reflector=BuiltinReflector(run=folder.name))

    made = create(folder, (toy_task(world),), settings)
    await Runner(folder=made, config=settings, open_worlds=lambda task: nullcontext(ToyWorlds(world)), build_agent=build).run()
    return journal(folder)


def journal(folder: Path) -> list[ev.AnyEvent]:
    (path,) = folder.glob("tasks/*/journal.jsonl")
    return list(read(path))


def recalled(events: list[ev.AnyEvent]) -> list[ev.Recalled]:
    """Where memory had something to say."""
    return [event for event in events if isinstance(event, ev.Recalled) and event.reflections]


async def test_a_surprise_becomes_one_lesson_that_the_next_task_is_shown(tmp_path: Path) -> None:
    first = await run(tmp_path / "first", tmp_path / "memory.sqlite")
    (written,) = [event.reflection for event in first if isinstance(event, ev.Reflected)]
    assert written.surprise < -0.2 and written.run == "first"
    assert not recalled(first), "there was nothing to recall yet"
    second = await run(tmp_path / "second", tmp_path / "memory.sqlite")
    shown = recalled(second)
    assert shown and all(event.kind == "policy" and written in event.reflections for event in shown)
    assert shown[0].memory != "0:0", "the version of the memory is journalled"


async def test_in_benchmark_mode_nothing_learned_on_the_same_task_is_shown(tmp_path: Path) -> None:
    await run(tmp_path / "first", tmp_path / "memory.sqlite")
    second = await run(tmp_path / "second", tmp_path / "memory.sqlite", exclude_same_task=True)
    assert not recalled(second)


async def test_without_reflection_there_is_no_memory(tmp_path: Path) -> None:
    await run(tmp_path / "run", tmp_path / "memory.sqlite", kind="none")
    assert not (tmp_path / "memory.sqlite").exists()


async def test_a_small_surprise_is_no_lesson(tmp_path: Path) -> None:
    events = await run(tmp_path / "run", tmp_path / "memory.sqlite", threshold=1.0)
    assert not [event for event in events if isinstance(event, ev.Reflected)]
