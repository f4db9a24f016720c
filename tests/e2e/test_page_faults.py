"""A search on a site that breaks what looks at it, in environments that fork: it goes on, a fault is no score, and nothing is left
running."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.config import BrowserConfig, parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.browser import PageSetup
from exact.environments.browser.fork.factory import forking
from exact.environments.browser.page import timeouts
from exact.environments.check.suite import held
from exact.environments.restore.costs import Costs
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sandbox.service import Service
from exact.errors import EnvironmentFailure
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.runner import Runner, create
from exact.task import Outcome, Score, Task

from .sites import faults

if TYPE_CHECKING:
    from playwright.async_api import Page

SERVICE = Service(command=("python3", faults.__file__, "8000"), ready_url="http://127.0.0.1:8000/", reads=(faults.__file__,))
TASK = Task(id="faults", instruction="Go onward.", start="http://localhost:8000/")


class EveryButton:
    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Propose the faults first."""
        buttons = sorted((each for each in context.observation.elements if each.role == "button"), key=lambda each: each.name == "Onward")
        return tuple(Proposal(action=actions.action("click", each.id), prior=1 / len(buttons)) for each in buttons)


class Far:
    async def evaluate(self, context: Context) -> Evaluation:
        if context.terminated:
            return Evaluation(value=1.0)
        return Evaluation(value=0.6 if "On" in context.observation.title else 0.2)


async def done(page: Page, outcome: Outcome) -> Score:
    success = await page.title() == "Done"
    return Score(value=float(success), success=success)


async def test_a_search_gets_past_a_dying_service_a_loop_a_forbidden_popup_a_redirect_and_a_service_worker(
    executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    monkeypatch.setattr(timeouts, "PAGE_TIMEOUT", 3.0)
    monkeypatch.setattr(Costs, "pays", lambda self, returns, way: True)
    found = {"algorithm": "best_first", "iterations": 8, "k": 6, "commit": "plan", "workers": 2}
    config = parse({"search": found, "reflection": {"kind": "none"}})
    browser, setup = BrowserConfig(screenshots=False, settle_seconds=1.0), PageSetup(terminated="document.title == 'Done'")
    before = held()["processes"]
    async with forking(browser, setup, services=[SERVICE], evaluator=done) as environments:
        run = create(tmp_path / "run", (TASK,), config)
        agent = Agent(policy=EveryButton(), value=Far())
        (line,) = await Runner(
            folder=run, config=config, open_environments=lambda task: nullcontext(environments), build_agent=lambda *_: agent
        ).run()
    assert held()["processes"] <= before
    events = list(read_journal(run.task_folder(TASK) / "journal.jsonl"))
    acted = [event for event in events if isinstance(event, ev.Acted)]
    reasons = [event.reason for event in events if isinstance(event, ev.Failed)]
    assert (line.status, line.score) == ("scored", 1.0) and line.failures == len(reasons)
    assert any("faults.py 8000 ended with status" in each for each in reasons)
    assert any("did not answer" in each for each in reasons)
    blocked = {effect.url for event in acted for effect in event.effects if effect.kind == "blocked"}
    assert blocked == {"http://forbidden.test/", "http://forbidden.test/after-a-redirect"}
    said = [run.blobs.get_observation(event.observation).text for event in acted if event.observation]
    assert any('"secure, 0 workers"' in each for each in said), said
