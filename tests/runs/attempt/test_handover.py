"""A person takes part in a running attempt: another instruction, the next action, or the browser itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.config import Config
from exact.environments.base import SideEffect, Transition
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import form
from exact.runs.journal import events as ev
from exact.runs.journal.commands import Name, send
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState, fold
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner
from exact.task import Task
from tests.runs.journal.test_commands import commanded, journal_of, settings
from tests.runs.toys import toy_runner

Sent = list[tuple[Name, str]]


async def told_after_three(runner: Runner, *commands: tuple[Name, str]) -> tuple[ResultLine, list[ev.AnyEvent]]:
    """Run, and send commands once the search has had three iterations; each one as soon as the one before is taken."""
    left = list(commands)
    events: list[ev.AnyEvent] = []

    def watch(task: Task, state: AttemptState, event: ev.AnyEvent) -> None:
        events.append(event)
        taken = len(commanded(events)) == len(commands) - len(left)
        if left and taken and (state.search.tree.iterations >= 3) and isinstance(event, ev.Told | ev.Commanded):
            name, text = left.pop(0)
            send(journal_of(runner), name, text=text, by="test")

    runner.watch = watch
    (line,) = await runner.run()
    return line, events


async def test_the_action_that_a_person_gives_is_committed_next_and_the_attempt_has_no_score(tmp_path: Path) -> None:
    first = await toy_runner(tmp_path / "alone", ToyFactory(form(3)), settings(iterations=40)).run()
    runner = toy_runner(tmp_path / "run", ToyFactory(form(3)), settings(iterations=40))
    line, events = await told_after_three(runner, ("act", 'go "toggle C"'))
    decided = next(event for event in events if isinstance(event, ev.Decided))
    assert (decided.action, decided.decision.reason) == ('go "toggle C"', "a person wants it")
    assert first[0].status == "scored" and (line.status, line.touched, line.score) == ("judged", 1, None)
    assert "a person took part" in line.reason
    state = fold(runner.config, read_journal(journal_of(runner)))
    assert [step.action for step in state.live.committed] == [event.action for event in events if isinstance(event, ev.Committed)], (
        "it folds"
    )


async def test_another_instruction_is_what_the_agent_is_shown_from_then_on(tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(3)), settings(iterations=20))
    line, _ = await told_after_three(runner, ("instruct", "Leave it empty."))
    state = fold(runner.config, read_journal(journal_of(runner)))
    assert state.live.instruction == "Leave it empty." and line.touched == 1 and line.status == "judged"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("act", "jump over"), "unknown action"),
        (("instruct", "  "), "the instruction is empty"),
        (("take", ""), "nobody can see this browser"),
        (("answer", "x"), "this question is answered already"),
    ],
)
async def test_what_cannot_be_done_is_refused_with_the_reason_and_touches_nothing(
    command: tuple[Name, str], why: str, tmp_path: Path
) -> None:
    line, events = await told_after_three(toy_runner(tmp_path, ToyFactory(form(3)), settings(iterations=20)), command)
    assert why in commanded(events)[0].refused and line.touched == 0 and line.status == "scored"


async def test_a_person_uses_the_browser_until_they_resume(tmp_path: Path, monkeypatch: Any) -> None:
    looked: list[str] = []

    async def look(self: ToyEnvironment) -> Transition:
        """The person filled in the first field of the form."""
        looked.append("")
        step = await self.step(self.actions.action("go", "toggle A"))
        return msgspec.structs.replace(step, effects=(SideEffect(kind="request", method="PERSON", write=True),))

    monkeypatch.setattr(ToyEnvironment, "look", look, raising=False)
    plain = settings(iterations=20)
    config: Config = msgspec.structs.replace(plain, browser=msgspec.structs.replace(plain.browser, headed=True))
    line, events = await told_after_three(toy_runner(tmp_path, ToyFactory(form(3)), config), ("take", ""), ("resume", ""))
    assert looked and line.touched == 1 and line.status == "judged"
    committed = next(event for event in events if isinstance(event, ev.Committed))
    assert committed.action == "person" and committed.fingerprint and any(effect.method == "PERSON" for effect in committed.effects)
    names = [type(event).__name__ if not isinstance(event, ev.Commanded) else event.command for event in events]
    assert names.index("take") < names.index("resume") < names.index("Decided")
