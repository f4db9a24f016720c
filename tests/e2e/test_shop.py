"""A shop that undoes nothing: searching leaves its database as it is, and a commit orders once."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.benchmarks.open import open_environments
from exact.config import parse
from exact.context import Context, Evaluation, Proposal
from exact.runs.journal import events as ev
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.e2e.sites.shop import serve
from tests.runs.test_resume import journal

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Tries:
    """A policy that tries everything on a page, and a value function that likes an ordered blue mug."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        seen = context.observation
        if "ordered by Ann" in seen.text or "done" in seen.text:
            return (Proposal(action=actions.parse('stop "done"'), prior=1.0),)
        named = {each.name: each for each in seen.elements if each.role in ("link", "button", "textbox")}
        texts = [f"click [{each.id}]" for name, each in named.items() if each.role != "textbox" and name != "Start"]
        if "Name" in named and not named["Name"].value:
            texts.insert(0, f'fill [{named["Name"].id}] "Ann"')
        best = next((f"click [{named[name].id}]" for name in ("Order now", "Blue mug") if name in named), texts[0])
        best = texts[0] if texts[0].startswith("fill") else best
        texts = [best, *[text for text in texts if text != best]][:k]
        priors = [0.4, *[0.6 / (len(texts) - 1)] * (len(texts) - 1)] if len(texts) > 1 else [1.0]
        return tuple(Proposal(action=actions.parse(text), prior=prior) for text, prior in zip(texts, priors, strict=True))

    async def evaluate(self, context: Context) -> Evaluation:
        seen, last = context.observation, context.history[-1] if context.history else None
        acted = last.observation.element(last.action.elements[0]) if last and last.action.elements else None
        ordered = '"Ann"' in seen.text and "Blue mug: 4" in seen.text and acted is not None and acted.name == "Order now"
        return Evaluation(value=0.1 + 0.2 * ("Blue mug: 4" in seen.text) + 0.2 * ('"Ann"' in seen.text) + 0.4 * ordered)


async def attempt(folder: Path, url: str, watch: Any, iterations: int, **browser: Any) -> list[ev.AnyEvent]:
    """Attempt to order a blue mug by a search of many iterations."""
    declared = json.dumps({"writes": ["GET .*/wish"]})  # its name and its address say nothing of a write
    task = Task(
        id="shop/order", instruction="Order a blue mug for Ann.", start=url, origins=(url,), metadata={"outside": declared}
    )  # fmt: skip
    search = {"algorithm": "mcts", "iterations": iterations, "k": 9, "depth": 6 if iterations == 100 else 4, "workers": 2, "prefetch": 0}
    plain = {"sandbox": "never", "screenshots": False, "settle_seconds": 1.0, **browser}
    config = parse({"search": search, "reflection": {"kind": "none"}, "browser": plain, "limits": {"actions": 5}})
    runner = Runner(
        folder=create(folder, (task,), config), config=config, watch=lambda task, state, event: watch(event),
        open_environments=lambda task: open_environments(task, config, benchmark=False),
        build_agent=lambda config, models: Agent(policy=Tries(), value=Tries()),
    )  # fmt: skip
    (line,) = await runner.run()
    assert line.status == "judged", line.reason
    return journal(folder)


@pytest.mark.parametrize(("speculation", "iterations"), [("observe", 100 if os.environ.get("EXACT_ALL_ATTACKS") else 40), ("rollback", 12)])
async def test_searching_leaves_the_database_byte_identical_and_one_order_comes_of_the_commit(
    speculation: str, iterations: int, executable: str, tmp_path: Path
) -> None:
    database = tmp_path / "shop.sqlite"
    with serve(database) as (shop, url):
        began = hashlib.sha256(database.read_bytes()).digest()
        at: list[bool] = []

        def watch(event: ev.AnyEvent) -> None:
            if isinstance(event, ev.Decided) and not shop.writes:
                at.append(hashlib.sha256(database.read_bytes()).digest() == began)

        events = await attempt(tmp_path / "run", url, watch, iterations, speculation=speculation)
    assert len(at) >= 3 and all(at), "unchanged at every decision until the one that orders"
    assert shop.rows() == [(1, "Ann")] and shop.writes == ["order"], "exactly one order, and nothing else"
    acted = [event for event in events if isinstance(event, ev.Acted)]
    blocked = {f"{effect.method} {effect.url.removeprefix(url).partition('?')[0]}" for event in acted for effect in event.effects}
    assert blocked >= {"POST /order", "GET /cart/add"}
    further = {"GET /graphql", "PUT /note", "GET /subscribe", "MAILTO mailto:shop@shop.test"}
    assert speculation != "observe" or blocked >= further
    ordered = next(i for i, event in enumerate(events) if isinstance(event, ev.Committed) and event.effects)
    done = sum(isinstance(event, ev.Asked) for event in events[:ordered])
    assert speculation != "observe" or done >= (100 if iterations == 100 else 50), f"only {done} requests for work until the order"
