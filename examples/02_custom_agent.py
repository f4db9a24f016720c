"""Search your own environment with your own agent, in 40 lines of code: reach 22 from 1 by doubling and adding 3.

Run: `python examples/02_custom_agent.py`. Needs no browser and no model.
"""

import exact
from exact import ActionSpace, Capabilities, Evaluation, Observation, Proposal, Score, Task, Transition, Verb


class Number:
    """Environment. Its capabilities say that search restores states by reset and replay. Chance needs `deterministic=False` there."""

    capabilities = Capabilities(fidelity="replay", isolated=True)
    actions = ActionSpace([Verb(name="double"), Verb(name="add_three")])

    def seen(self):
        return Observation(text=f"The number is {self.number}.", fingerprint=str(self.number), url="number:")

    async def reset(self, task):
        self.number = 1
        return self.seen()

    async def step(self, action):
        self.number = after(self.number, action)
        return Transition(observation=self.seen() if self.number < 22 else None, terminated=self.number >= 22)

    async def evaluate(self, outcome):
        return Score(value=float(self.number == 22), success=self.number == 22)

    async def close(self):
        pass


class BothWays:
    """Policy that proposes both actions."""

    async def propose(self, context, actions, k):
        return tuple(Proposal(action=actions.action(name), prior=0.5) for name in ("double", "add_three"))


class Nearness:
    """Value function. At the end of an episode it sees the action, not the outcome."""

    async def evaluate(self, context):
        number = int(context.observation.fingerprint)
        if context.terminated:
            number = after(number, context.history[-1].action)
        return Evaluation(value=1.0 if number == 22 else 0.0 if number > 22 else 0.5 * number / 22)


def after(number, action):
    return number * 2 if action.name == "double" else number + 3


if __name__ == "__main__":
    solution = exact.solve_sync(
        Task(id="number/22", instruction="Reach 22."),
        agent=exact.Agent(policy=BothWays(), value=Nearness()),
        environments=Number,
        config=exact.Config.parse({"search": {"algorithm": "best_first", "iterations": 12, "commit": "plan"}}),
    )
    print(f"score {solution.score} after {', '.join(solution.actions)}")
