"""A search that destroys, on a real site in gVisor: what one branch deletes its siblings still find, and so does the live environment.
There nothing is gone but what was committed to."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from exact.action import Action, ActionSpace
from exact.agents.agent import Agent
from exact.benchmarks.sites.suite import trac
from exact.config import parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.browser.fork.factory import ForkingFactory
from exact.observation import Observation
from exact.runs.journal.events import Acted, Arrived, Committed
from exact.runs.journal.file import read_journal
from exact.runs.runner import Runner, create

CONFIG = parse(
    {
        "search": {"algorithm": "mcts", "iterations": 8, "k": 2, "depth": 4, "think": 0.99, "workers": 1, "prefetch": 0},
        "browser": {"screenshots": False, "sandbox": "required", "settle_seconds": 30.0, "answer_seconds": 60.0},
        "limits": {"actions": 4, "transitions": 16},
        "reflection": {"kind": "none"},
    }
)
THERE, GONE = "Try things here.", "does not exist"
"""What the wiki says at SandBox, before and after it is deleted."""


class Deleting:
    """Policy and value in one. It deletes OldIdeas, as the task wants. Then it would rather delete SandBox than read it, and values
    that until it sees what comes of it."""

    def __init__(self) -> None:
        self.shown: list[tuple[bool, str]] = []
        """Of each state in the order in which they were judged: whether SandBox was deleted on the way, and what its page says."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        ways = self._ways([step.action for step in context.history], context.observation, actions)
        priors = (1.0,) if len(ways) == 1 else (0.7, 0.3)
        return tuple(Proposal(action=action, prior=prior) for action, prior in zip(ways, priors, strict=True))

    def _ways(self, taken: list[Action], seen: Observation, actions: ActionSpace) -> list[Action]:
        ends = ("OldIdeas?action=delete", "SandBox?action=delete", "SandBox")
        first, delete, look = (actions.action("goto", f"/wiki/{end}") for end in ends)
        if not taken:
            return [first]
        if taken[-1].key in (first.key, delete.key):
            return [actions.action("click", next(each.id for each in seen.elements if each.name == "Delete page"))]
        if taken[-1].key == look.key:
            return [actions.action("stop", "")]
        return [delete, look] if len(taken) == 2 else [look]

    async def evaluate(self, context: Context) -> Evaluation:
        destroyed, text = sum(step.action.name == "click" for step in context.history) == 2, context.observation.text
        if context.terminated:
            return Evaluation(value=0.0 if destroyed else 1.0)
        self.shown.append((destroyed, text))
        return Evaluation(value=0.0 if GONE in text else 0.7 if destroyed else 0.6)


async def test_other_forks_and_the_live_environment_keep_what_a_search_destroys(
    applications: None, runsc: None, executable: str, tmp_path: Path
) -> None:
    """Trac and a browser are started, forked and restored inside gVisor: half a minute."""
    task, agent = trac().task("trac/21"), Deleting()
    run, both = create(tmp_path / "run", (task,), CONFIG), Agent(policy=agent, value=agent)
    async with trac().environments(CONFIG.browser) as environments:
        assert isinstance(environments, ForkingFactory)
        opened = nullcontext(environments)
        (line,) = await Runner(folder=run, config=CONFIG, open_environments=lambda _: opened, build_agent=lambda *_: both).run()
    after = agent.shown[[destroyed for destroyed, _ in agent.shown].index(True) :]
    found = {(destroyed, THERE in text, GONE in text) for destroyed, text in after if THERE in text or GONE in text}
    assert found == {(True, False, True), (False, True, False)}, "gone in the branch that deleted it, and after that there in the other"
    events = list(read_journal(run.task_folder(task) / "journal.jsonl"))
    clicked = [place for place, event in enumerate(events) if isinstance(event, Acted) and event.action.startswith("click")]
    routes = {event.route for event in events[clicked[1] :] if isinstance(event, Arrived)}
    assert len(clicked) == 2 and "replay" not in routes, "from a snapshot of the whole environment, and not in a fresh one"
    live = [run.blobs.get_observation(event.observation).text for event in events if isinstance(event, Committed) and event.observation]
    assert THERE in live[-1], "no commit deleted it"
    assert (line.status, line.score, line.promoted, line.drifted) == ("scored", 1.0, 0, 0), "a commit deleted the other"
