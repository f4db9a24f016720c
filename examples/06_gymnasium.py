"""Search an environment of Gymnasium by its own rewards, with a policy that tries every move alike: cross the frozen lake.

Run: `python examples/06_gymnasium.py`. Needs `pip install gymnasium`, no browser and no model.
"""

import exact
from exact.environments.adapters.gym import gymnasium_factory


class Uniform:
    """Policy that proposes every move, and never `stop`."""

    async def propose(self, context, actions, k):
        return tuple(exact.Proposal(action=actions.action(verb), prior=1) for verb in actions.verbs if verb != "stop")


if __name__ == "__main__":
    solution = exact.solve_sync(
        exact.Task(id="lake", instruction="Cross the lake."),
        agent=exact.Agent(policy=Uniform(), value=exact.RewardValue()),
        environments=gymnasium_factory("FrozenLake-v1", options={"is_slippery": False}),
    )
    print(f"score {solution.score} after {solution.result.transitions} steps of the environment: {', '.join(solution.actions)}")
