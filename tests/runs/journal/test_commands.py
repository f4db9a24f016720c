"""What people tell a running search is journalled, obeyed before another iteration is begun, and taken again by a resumed attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from exact.config import Config
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import form
from exact.runs.journal import events as ev
from exact.runs.journal.commands import Mailbox, Name, lift, mailbox, send
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState, fold
from exact.runs.runner import Runner
from exact.search.inspect.export import to_json
from exact.search.registry import BUILTIN
from exact.task import Task
from tests.runs.test_resume import Killed, kill_at
from tests.runs.toys import config, toy_runner

Say = Callable[[AttemptState, ev.AnyEvent], tuple[Name, int] | None]


def settings(algorithm: str = "mcts", **search: object) -> Config:
    return config(search={"algorithm": algorithm, "iterations": 12, "k": 4, **search})


def journal_of(runner: Runner) -> Path:
    return runner.folder.task_folder(runner.folder.manifest.tasks[0]) / "journal.jsonl"


def told(runner: Runner, say: Say) -> list[ev.AnyEvent]:
    """Watch a run, and send what `say` answers to an event; all events so far."""
    events: list[ev.AnyEvent] = []

    def watch(task: Task, state: AttemptState, event: ev.AnyEvent) -> None:
        events.append(event)
        if (command := say(state, event)) is not None:
            send(journal_of(runner), command[0], node=command[1], by="test")

    runner.watch = watch
    return events


def once(name: Name, node: int, *, after: int) -> Say:
    """Say it when the tree has had some iterations."""
    said: list[int] = []

    def say(state: AttemptState, event: ev.AnyEvent) -> tuple[Name, int] | None:
        if said or state.search.tree.iterations < after or not isinstance(event, ev.Told):
            return None
        said.append(1)
        return name, node

    return say


def commanded(events: list[ev.AnyEvent]) -> list[ev.Commanded]:
    return [event for event in events if isinstance(event, ev.Commanded)]


def asked_after(runner: Runner, name: str) -> list[ev.Asked]:
    """Return the requests after a command, in order."""
    events = list(read_journal(journal_of(runner)))
    place = next(i for i, event in enumerate(events) if isinstance(event, ev.Commanded) and event.command == name)
    return [event for event in events[place:] if isinstance(event, ev.Asked)]


@pytest.mark.parametrize("algorithm", sorted(BUILTIN))
@pytest.mark.parametrize("name", ["expand", "prune", "stop"])
async def test_every_algorithm_ends_well_after_a_command(algorithm: str, name: Name, tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(3)), settings(algorithm), noise=0.1)
    events = told(runner, once(name, 1, after=3))
    (line,) = await runner.run()
    touched = [each for each in commanded(events) if each.command != "stop" and not each.refused]
    assert line.status == ("judged" if touched else "scored"), "what a person took part in is no score of the agent"
    assert line.touched == len(touched)
    state = fold(runner.config, read_journal(journal_of(runner)))
    assert state.people.commanded.keys() == {event.id for event in commanded(events)}


async def test_expand_is_the_next_work_of_all(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(4)), settings(iterations=40))
    wanted: list[int] = []

    def say(state: AttemptState, event: ev.AnyEvent) -> tuple[Name, int] | None:
        if wanted or state.search.tree.iterations < 8:
            return None
        worst = min((node for node in state.search.tree.nodes if not node.leaf and not node.closed), key=lambda node: node.value or 0.0)
        wanted.append(worst.id)
        return "expand", worst.id

    events = told(runner, say)
    await runner.run()
    assert commanded(events)[0].refused == ""
    assert getattr(asked_after(runner, "expand")[0].answer, "node", None) == wanted[0]


async def test_a_pruned_action_is_neither_searched_nor_committed(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(4)), settings(iterations=40))
    favourite: list[int] = []

    def say(state: AttemptState, event: ev.AnyEvent) -> tuple[Name, int] | None:
        if favourite or state.search.tree.iterations < 12:
            return None
        favourite.append(max((edge.child for edge in state.search.tree.root.edges if edge.child), key=lambda child: child.visits).id)
        return "prune", favourite[0]

    told(runner, say)
    await runner.run()
    state = fold(runner.config, read_journal(journal_of(runner)))
    below = {node.id for node in state.search.tree.walk(state.search.tree.nodes[favourite[0]])}
    assert not below & set(state.live.path)
    assert not [event for event in asked_after(runner, "prune") if getattr(event.answer, "node", None) in below]


async def test_a_pause_holds_searching_and_committing_until_it_is_lifted(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(3)), settings())
    pause, paused = once("pause", -1, after=5), asyncio.Event()

    def say(state: AttemptState, event: ev.AnyEvent) -> tuple[Name, int] | None:
        if isinstance(event, ev.Commanded):
            paused.set()
        return pause(state, event)

    events = told(runner, say)
    running = asyncio.create_task(runner.run())
    await asyncio.wait_for(paused.wait(), 30)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await asyncio.shield(running)
    known = len(events)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await asyncio.shield(running)
    assert len(events) == known
    send(journal_of(runner), "resume")
    (line,) = await running
    assert line.status == "scored" and [event.command for event in commanded(events)] == ["pause", "resume"]


@pytest.mark.parametrize("workers", [1, 4])
async def test_a_command_takes_effect_before_another_iteration_is_begun(workers: int, tmp_path: Path) -> None:
    environments = ToyFactory(form(4), latency=None if workers == 1 else lambda: asyncio.sleep(0))
    runner = toy_runner(tmp_path, environments, settings(iterations=40, workers=workers))
    say, between = once("stop", -1, after=9), list[ev.AnyEvent]()

    def marked(state: AttemptState, event: ev.AnyEvent) -> tuple[Name, int] | None:
        if mailbox(journal_of(runner)).exists() and not state.people.commanded:
            between.append(event)
        return say(state, event)

    events = told(runner, marked)
    await runner.run()
    assert len(commanded(events)) == 1
    assert len([event for event in between if isinstance(event, ev.Asked)]) <= 1


async def test_stop_commits_the_best_way_as_far_as_it_was_searched(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(3)), settings(iterations=200))
    events = told(runner, once("stop", -1, after=60))
    await runner.run()
    place = events.index(commanded(events)[0])
    assert not [event for event in events[place:] if isinstance(event, ev.Acted | ev.Told)]
    assert [event for event in events[place:] if isinstance(event, ev.Committed)]
    (ended,) = [event for event in events if isinstance(event, ev.Ended)]
    assert ended.reason == "stopped by a viewer" or "end" in ended.reason or "stop" in ended.reason


async def test_stop_before_anything_was_searched_commits_nothing(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(3)), settings())
    path = journal_of(runner)
    path.parent.mkdir(parents=True)
    send(path, "stop")
    events = told(runner, lambda state, event: None)
    await runner.run()
    assert not [event for event in events if isinstance(event, ev.Acted | ev.Committed)]


@pytest.mark.parametrize(("name", "node", "why"), [("prune", 0, "present root"), ("expand", 999, "no state"), ("prune", -1, "no state")])
async def test_an_impossible_command_is_journalled_with_the_reason(name: Name, node: int, why: str, tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(3)), settings())
    events = told(runner, once(name, node, after=3))
    (line,) = await runner.run()
    assert line.status == "scored" and why in commanded(events)[0].refused


def commanding(runner: Runner) -> Runner:
    """Return an agent that gets three commands after six iterations, unless it had them before."""

    def watch(task: Task, state: AttemptState, event: ev.AnyEvent) -> None:
        if state.search.tree.iterations >= 6 and not mailbox(journal_of(runner)).exists():
            for name, node in (("expand", 0), ("prune", 1), ("expand", 2)):
                send(journal_of(runner), name, node=node)  # type: ignore[arg-type]

    runner.watch = watch
    return runner


@pytest.mark.parametrize("nth", range(20, 70, 7))
@pytest.mark.parametrize("written", [True, False])
async def test_a_run_killed_anywhere_and_resumed_takes_each_command_once(
    nth: int, written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = (commanding(toy_runner(tmp_path / name, ToyFactory(form(3)), settings(iterations=20))) for name in "ab")
    await whole.run()
    with monkeypatch.context() as patched:
        kill_at(patched, nth, written=written)
        with pytest.raises(Killed):
            await broken.run()
    await commanding(toy_runner(tmp_path / "b", ToyFactory(form(3)))).run()
    one, other = (fold(runner.config, read_journal(journal_of(runner))) for runner in (whole, broken))
    assert to_json(one.search.tree) == to_json(other.search.tree)
    assert [event.command for event in other.people.commanded.values()] == ["expand", "prune", "expand"]


async def test_a_paused_run_continues_when_a_user_resumes_it(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(3)), settings())
    pause, paused = once("pause", -1, after=5), asyncio.Event()

    def say(state: AttemptState, event: ev.AnyEvent) -> tuple[Name, int] | None:
        if isinstance(event, ev.Commanded):
            paused.set()
        return pause(state, event)

    told(runner, say)
    running = asyncio.create_task(runner.run())
    await paused.wait()
    done, _ = await asyncio.wait([running], timeout=0.2)
    assert not done and running.cancel()
    await asyncio.wait([running])
    lift(journal_of(runner))
    lift(journal_of(runner))
    (line,) = await toy_runner(tmp_path, ToyFactory(form(3))).run()
    assert line.status == "scored"
    assert [command.name for command in Mailbox(mailbox(journal_of(runner))).new()] == ["pause", "resume"]


def test_a_line_that_is_no_command_is_passed_over(tmp_path: Path) -> None:
    path = mailbox(tmp_path / "journal.jsonl")
    path.write_bytes(b'{"id": "1", "name": "explode"}\nnot json\n\xff\xfe\n{"id": "1", "name": "pause", "shell": "rm"}\n')
    send(tmp_path / "journal.jsonl", "pause")
    assert [command.name for command in Mailbox(path).new()] == ["pause"]


def test_a_torn_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = mailbox(tmp_path / "journal.jsonl")
    box = Mailbox(path)
    path.write_bytes(b'{"id": "1", "na')
    assert list(box.new()) == []
    with path.open("ab") as file:
        file.write(b'me": "stop"}\n')
    assert [command.name for command in box.new()] == ["stop"]
    assert list(box.new()) == []
