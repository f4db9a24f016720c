"""A site that keeps what is written: an agent that knows the way solves a task of several writes, and searching writes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.benchmarks.open import open_environments
from exact.config import parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.runs.journal import events as ev
from exact.runs.runner import Runner, create
from exact.task import Task
from tests.e2e.sites.wiki import Wiki, serve
from tests.runs.test_resume import journal

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "The sea is wide."
STAGES = ("Welcome", "Edit", "Saved", "Published")
WRITES = ["/save", "/publish", "/graphql"]


@pytest.fixture(params=["auto", "never"])
def sandbox(request: pytest.FixtureRequest, executable: str) -> str:
    """Whether the browser forks. Skipped where it should and cannot."""
    if request.param == "auto":
        try:
            find_runsc()
        except EnvironmentFailure as error:
            pytest.skip(str(error))
    return str(request.param)


def id_of(seen: Observation, name: str) -> str:
    return next((each.id for each in seen.elements if each.name == name), "")


def next_step(seen: Observation) -> str:
    """The right action in a state."""
    text = id_of(seen, "Text")
    if text and TEXT not in seen.text:
        return f'fill [{text}] "{TEXT}"'
    if "All confirmed" in seen.text:
        return 'stop "done"'
    for name in ("Confirm items", "Publish page", "Save page", "Edit page"):
        if found := id_of(seen, name):
            return f"click [{found}]"
    return "go_back"


class Knows:
    """A policy that prefers the right action a little, and a value function that tells the stages apart and judges no action."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        seen, right = context.observation, next_step(context.observation)
        others = [f"click [{id}]" for name in ("Related changes", "Log out", "Show preview") if (id := id_of(seen, name))]
        wrong = [action for action in others if action != right][: k - 1]
        priors = [0.5, *(0.5 / len(wrong) for _ in wrong)] if wrong else [1.0]
        return tuple(Proposal(action=actions.parse(text), prior=prior) for text, prior in zip((right, *wrong), priors, strict=True))

    async def evaluate(self, context: Context) -> Evaluation:
        text = context.observation.text
        stage = next((0.2 + 0.15 * i for i, name in enumerate(STAGES) if f'"{name}"' in text), 0.1)
        return Evaluation(value=stage + 0.1 * (TEXT in text) + 0.2 * ("All confirmed" in text))


async def attempt(folder: Path, url: str, algorithm: str, sandbox: str) -> list[ev.AnyEvent]:
    task = Task(
        id="wiki/publish", instruction=f"Write {TEXT!r}, publish it and confirm the items.", start=url, origins=(url,),
        metadata={"outside": json.dumps({"harmless": ["/graphql"]})},
    )  # fmt: skip
    search = {"algorithm": algorithm, "iterations": 10, "k": 4, "depth": 3, "workers": 2, "prefetch": 0}
    browser = {"sandbox": sandbox, "screenshots": False}
    config = parse({"search": search, "reflection": {"kind": "none"}, "browser": browser, "limits": {"actions": 9}})
    run = create(folder, (task,), config)
    runner = Runner(
        folder=run,
        config=config,
        open_environments=lambda task: open_environments(task, config, benchmark=False),
        build_agent=lambda config, models: Agent(policy=Knows(), value=Knows()),
    )
    (line,) = await runner.run()
    assert line.status in ("judged", "scored"), line.reason
    assert line.failures == 0, "no infrastructure failed"
    return journal(folder)


def check(wiki: Wiki, events: list[ev.AnyEvent]) -> None:
    assert [path for _, path, _ in wiki.writes] == WRITES, "each was sent once, and nothing was written by searching"
    assert (wiki.text, wiki.published, wiki.confirmed, wiki.logged_out) == (TEXT, True, True, False)
    simulated = [effect for event in events if isinstance(event, ev.Acted) for effect in event.effects]
    assert not any(effect.is_write for effect in simulated)


async def test_an_agent_that_does_not_search_solves_the_task(sandbox: str, tmp_path: Path) -> None:
    with serve() as (wiki, url):
        check(wiki, await attempt(tmp_path, url, "react", sandbox))


async def test_the_search_goes_on_after_each_write(sandbox: str, tmp_path: Path) -> None:
    with serve() as (wiki, url):
        events = await attempt(tmp_path, url, "mcts", sandbox)
        check(wiki, events)
    routes = {event.route for event in events if isinstance(event, ev.Arrived)}
    assert ("fork" in routes or "fork+replay" in routes) == (sandbox == "auto")
    blocked = {
        effect.url.rpartition("/")[2] for event in events if isinstance(event, ev.Acted) for effect in event.effects if effect.is_blocked
    }
    assert blocked >= {"logout"} and not blocked & {"prefs", "telemetry"}, "what pages send by themselves is none of the agent's writes"
