"""Commits leave a dead end: where all values are equal, an action that changed nothing is not repeated before the others."""

import pytest

import exact

ALGORITHMS = ("mcts", "gumbel", "best_first", "beam", "greedy", "flat_halving", "tot_dfs")


class Line(exact.BaseEnvironment):
    """Places in a row. The last one ends the episode, and nothing tells how far it is."""

    capabilities = exact.Capabilities(fidelity="replay", isolated=True)
    actions = exact.ActionSpace(["left", "right", "stay"])
    start, end = 2, 6

    def place(self):
        return exact.Observation(text=str(self.at))

    async def reset(self, task):
        self.at = self.start
        return self.place()

    async def step(self, action):
        self.at = max(0, self.at + {"left": -1, "right": 1, "stay": 0}[action.name])
        over = self.at == self.end
        return exact.Transition(observation=None if over else self.place(), terminated=over)

    async def evaluate(self, outcome):
        return exact.Score(value=float(self.at == self.end), success=self.at == self.end)


class Circle(Line):
    """A ring of four places with a way out of one, so that a circle is closed before the way out is seen."""

    start, end = 0, 9

    async def step(self, action):
        self.at = {"left": (self.at + 1) % 4, "right": 9 if self.at == 3 else self.at, "stay": self.at}[action.name]
        return exact.Transition(observation=None if self.at == 9 else self.place(), terminated=self.at == 9)


class Alike:
    async def propose(self, context, actions, k):
        return [exact.Proposal(action=actions.action(name), prior=1 / 3) for name in actions.verbs]


class Same:
    async def evaluate(self, context):
        return exact.Evaluation(value=1.0 if context.terminated else 0.5)


@pytest.mark.parametrize("environment", [Line, Circle])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_commits_leave_a_dead_end(algorithm, environment):
    search = {"algorithm": algorithm, "iterations": 8, "depth": 2}
    config = exact.Config.parse({"search": search, "reflection": {"kind": "none"}, "limits": {"actions": 24}})
    agent = exact.Agent(policy=Alike(), value=Same())
    solution = await exact.solve(exact.Task(id="line", instruction=""), agent=agent, environments=environment, config=config)
    assert solution.score == 1.0, " ".join(solution.actions)
