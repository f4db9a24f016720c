"""A user's own environment, policy and value function."""

from exact import ActionSpace, Capabilities, Evaluation, Observation, Outcome, Proposal, Score, Transition, Verb


class Number:
    """Reach 5 from 1 by adding 1 or 2."""

    capabilities = Capabilities(fidelity="replay", isolated=True)
    actions = ActionSpace([Verb(name="one"), Verb(name="two")])

    def __init__(self) -> None:
        self.number, self.closed = 1, False

    async def reset(self, task):
        self.number = 1
        return self.seen()

    async def step(self, action):
        self.number += 1 if action.name == "one" else 2
        return Transition(observation=self.seen() if self.number < 5 else None, terminated=self.number >= 5)

    async def evaluate(self, outcome: Outcome):
        return Score(value=float(self.number == 5), success=self.number == 5)

    async def close(self):
        self.closed = True

    def seen(self):
        return Observation(text=f"The number is {self.number}.", fingerprint=str(self.number), url="number:")


class Both:
    async def propose(self, context, actions, k):
        return tuple(Proposal(action=actions.action(name), prior=0.5) for name in ("one", "two"))


class Near:
    async def evaluate(self, context):
        number = 1 + sum(1 if taken.action.name == "one" else 2 for taken in context.history)
        return Evaluation(value=0.0 if number > 5 else number / 5)
