"""Actions that an environment refuses: what the search, the policy and an attempt do then, as docs/environments.md says."""

from __future__ import annotations

import pytest

import exact
from exact import ActionSpace, Config, Context, Evaluation, Observation, Proposal, Score, Task, Transition

LOCKED = "the door is locked: take the key first"
TASK = Task(id="door/1", instruction="Open the door.")


class Door(exact.BaseEnvironment):
    """A door that opens with a key."""

    actions = ActionSpace(["open", "take_key"])

    async def reset(self, task: Task) -> Observation:
        self.key = self.opened = False
        return Observation(text="A door and a key.")

    async def step(self, action: exact.Action) -> Transition:
        if action.name == "open" and not self.key:
            raise exact.ActionError(LOCKED)
        self.key, self.opened = True, action.name == "open"
        return Transition(observation=Observation(text="You have the key."), terminated=self.opened)

    async def evaluate(self, outcome: exact.Outcome) -> Score:
        return Score(value=float(self.opened), success=self.opened)


class Stuck(Door):
    """A door that never opens."""

    async def step(self, action: exact.Action) -> Transition:
        raise exact.ActionError(f"{action} does not fit")


class Reader:
    """Opens the door at first, and does what the refusals say."""

    def __init__(self) -> None:
        self.tried = list[list[str]]()
        self.past = list[list[str]]()

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> list[Proposal]:
        self.tried.append([taken.error for taken in context.tried])
        self.past.append([taken.error for taken in context.history])
        return [Proposal(action=actions.action("take_key" if LOCKED in self.tried[-1] else "open"), prior=1.0)]


class Opened:
    async def evaluate(self, context: Context) -> Evaluation:
        return Evaluation(value=1.0 if context.terminated else 0.5)


async def solved(environment: type[Door], **search: object) -> tuple[exact.Solution, Reader]:
    config, policy = Config.parse({"search": search, "reflection": {"kind": "none"}}), Reader()
    agent = exact.Agent(policy=policy, value=Opened())
    return await exact.solve(TASK, agent=agent, environments=environment, config=config), policy


async def test_a_policy_is_told_the_words_of_a_refusal_in_search_and_asked_once_more() -> None:
    solution, policy = await solved(Door)
    assert policy.tried[:2] == [[], [LOCKED]] and solution.score == 1.0
    refused = solution.tree.nodes[0].edges[0]
    assert (refused.action.name, refused.futile, refused.visits, refused.child) == ("open", True, 0, None)


async def test_a_refused_action_is_never_committed() -> None:
    solution, _ = await solved(Door)
    assert solution.actions == ("take_key", "open") and solution.result.actions == 2


async def test_an_action_refused_at_a_commit_counts_and_is_told_in_the_history_too() -> None:
    solution, policy = await solved(Door, algorithm="react")
    assert solution.actions == ("take_key", "open") and solution.result.actions == 3
    assert policy.tried == [[], [LOCKED], []] and policy.past[-1] == [LOCKED, ""]


@pytest.mark.parametrize("algorithm", ["mcts", "best_first", "react"])
async def test_an_attempt_with_nothing_but_refusals_ends_and_is_scored_where_it_is(algorithm: str) -> None:
    solution, _ = await solved(Stuck, algorithm=algorithm)
    assert (solution.result.status, solution.score, solution.actions) == ("scored", 0.0, ())
    assert solution.result.reason.startswith("no action is left")
