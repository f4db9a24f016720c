"""A person says yes or no to each write of a commit, and answers the agent's questions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.benchmarks.open import open_environments
from exact.config import parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import PersonQuestion
from exact.runs.journal import events as ev
from exact.runs.journal.commands import send
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.e2e.sites.shop import Shop, serve
from tests.runs.test_resume import journal

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Orders:
    """A policy that orders a blue mug, and stops after that or when it may not. It may ask for the name first."""

    asks = False

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        seen, notes = context.observation, " ".join(taken.note + taken.error for taken in context.history)
        named = {each.name: each for each in seen.elements if each.role in ("link", "button", "textbox")}
        if self.asks and "user" not in notes:
            text = 'ask_user "For whom?"'
        elif "Name" in named and "refused" not in notes and "no yes" not in notes and not context.tried:
            who = "Bob" if "Bob" in notes else "Ann"
            text = f"click [{named['Order now'].id}]" if named["Name"].value else f'fill [{named["Name"].id}] "{who}"'
        else:
            text = f"click [{named['Blue mug'].id}]" if "Blue mug" in named and not context.history[2:] else 'stop "done"'
        return (Proposal(action=actions.parse(text), prior=1.0),)

    async def evaluate(self, context: Context) -> Evaluation:
        return Evaluation(value=0.5)


async def attempt(
    folder: Path, url: str, ask: Any = None, policy: Orders | None = None, **browser: Any
) -> tuple[ResultLine, list[ev.AnyEvent]]:
    task = Task(id="shop/order", instruction="Order a blue mug for Ann.", start=url, origins=(url,))
    plain = {"sandbox": "never", "screenshots": False, "settle_seconds": 1.0, "confirm": "writes", **browser}
    config = parse({"search": {"algorithm": "react"}, "reflection": {"kind": "none"}, "browser": plain, "limits": {"actions": 6}})
    knows = policy or Orders()
    runner = Runner(
        folder=create(folder, (task,), config), config=config, ask=ask,
        open_environments=lambda task: open_environments(task, config, benchmark=False),
        build_agent=lambda config, models: Agent(policy=knows, value=knows),
    )  # fmt: skip
    (line,) = await runner.run()
    assert line.status == "judged", line.reason
    return line, journal(folder)


def questions(run: Path) -> list[tuple[Path, str]]:
    """The questions that a run has asked so far, with the journal that they are in."""
    lines = [(path, line) for path in run.glob("tasks/*/journal.jsonl") for line in path.read_text().splitlines(True)]
    found = [(path, json.loads(line)) for path, line in lines if line.endswith("\n")]
    return [(path, each["id"]) for path, each in found if each["event"] == "person_asked"]


def orders(shop: Shop) -> list[tuple[int, str]]:
    return shop.rows()


async def test_a_yes_is_bound_to_the_request_that_is_shown_and_sends_it_once(executable: str, tmp_path: Path) -> None:
    asked: list[PersonQuestion] = []

    async def yes(question: PersonQuestion) -> bool:
        asked.append(question)
        return True

    with serve(tmp_path / "shop.sqlite") as (shop, url):
        line, events = await attempt(tmp_path / "run", url, yes)
        assert orders(shop) == [(1, "Ann")] and shop.writes == ["order"]
    (question,) = asked
    assert (question.method, question.url, question.fields) == ("POST", f"{url}/order", {"id": "1", "name": "Ann"})
    assert question.text == 'click [button "Order now"]' or "Order now" in question.text
    journalled = [event for event in events if isinstance(event, ev.PersonAsked | ev.PersonAnswered)]
    assert [type(each).__name__ for each in journalled] == ["PersonAsked", "PersonAnswered"] and line.touched == 0


@pytest.mark.parametrize("said", [False, "no", "", None, "perhaps"])
async def test_without_a_yes_nothing_is_sent_and_the_attempt_goes_on_untried(said: object, executable: str, tmp_path: Path) -> None:
    async def answer(question: PersonQuestion) -> object:
        return said

    with serve(tmp_path / "shop.sqlite") as (shop, url):
        line, events = await attempt(tmp_path / "run", url, answer)
        assert not shop.writes and line.touched
    commits = [event for event in events if isinstance(event, ev.Committed) and "Order" not in event.action]
    said_no = [each.refused + each.info.get("declined", "") for each in commits]
    assert any("refused it" in each or "no yes" in each for each in said_no)


async def test_nobody_who_answers_in_time_refuses(executable: str, tmp_path: Path) -> None:
    async def sleeps(question: PersonQuestion) -> bool:
        await asyncio.Event().wait()
        return True

    with serve(tmp_path / "shop.sqlite") as (shop, url):
        await attempt(tmp_path / "late", url, sleeps, person_seconds=0.5)
        await attempt(tmp_path / "alone", url, None, person_seconds=0.5)
        assert not shop.writes


async def test_a_person_may_take_longer_than_any_page(executable: str, tmp_path: Path) -> None:
    async def slowly(question: PersonQuestion) -> bool:
        await asyncio.sleep(3.0)
        return True

    with serve(tmp_path / "shop.sqlite") as (shop, url):
        _, events = await attempt(tmp_path / "run", url, slowly, settle_seconds=0.4, answer_seconds=2.0)
        assert orders(shop) == [(1, "Ann")]
    done = [event for event in events if isinstance(event, ev.Committed) and any(effect.method == "POST" for effect in event.effects)]
    assert [effect.status for each in done for effect in each.effects] == [200]


async def test_the_live_view_answers_as_well(executable: str, tmp_path: Path) -> None:
    with serve(tmp_path / "shop.sqlite") as (shop, url):
        running = asyncio.ensure_future(attempt(tmp_path / "run", url, None, person_seconds=60))
        while not running.done():
            for path, id in questions(tmp_path / "run"):
                send(path, "allow", question=id, by="a viewer")
            await asyncio.wait({running}, timeout=0.2)
        line, events = running.result()
        assert orders(shop) == [(1, "Ann")]
    assert [event.by for event in events if isinstance(event, ev.PersonAnswered)] == ["a viewer"] and line.touched == 0


async def test_always_asks_before_each_action_too(executable: str, tmp_path: Path) -> None:
    kinds: list[str] = []

    async def yes(question: PersonQuestion) -> str:
        kinds.append(question.kind)
        return "yes"

    with serve(tmp_path / "shop.sqlite") as (shop, url):
        await attempt(tmp_path / "run", url, yes, confirm="always")
        assert orders(shop) == [(1, "Ann")]
    assert kinds == ["action", "action", "action", "write"]


async def test_the_agent_asks_a_question_whose_answer_it_is_shown(executable: str, tmp_path: Path) -> None:
    async def answer(question: PersonQuestion) -> str:
        return "Bob" if question.kind == "question" else "yes"

    policy = Orders()
    policy.asks = True
    with serve(tmp_path / "shop.sqlite") as (shop, url):
        line, _ = await attempt(tmp_path / "run", url, answer, policy, ask_user=True)
        assert orders(shop) == [(1, "Bob")] and line.touched == 1, "an attempt that a person helped is marked"
