"""Search an environment with chance: one of two coins is better, and neither always pays.

Run: `python examples/07_stochastic.py`. Needs no browser and no model.
"""

import random

import exact

CHANCES = {"left": 0.3, "right": 0.6}


class Coins(exact.BaseEnvironment):
    """Environment. Without `deterministic=False` one flip would stand for all."""

    capabilities = exact.Capabilities(fidelity="replay", isolated=True, deterministic=False, evaluates=False)
    actions = exact.ActionSpace(list(CHANCES))

    async def reset(self, task):
        return exact.Observation(text="Two coins.")

    async def step(self, action):
        won = random.random() < CHANCES[action.name]
        return exact.Transition(observation=exact.Observation(text="Gold." if won else "Sand."))


class Both:
    """Policy that flips one of the coins, once."""

    async def propose(self, context, actions, k):
        names = [] if context.history else CHANCES
        return tuple(exact.Proposal(action=actions.action(name), prior=0.5) for name in names)


class Gold:
    """Value function."""

    async def evaluate(self, context):
        return exact.Evaluation(value={"Gold.": 1.0, "Sand.": 0.0}.get(context.observation.text, 0.5))


if __name__ == "__main__":
    tree = exact.search_sync(Coins, policy=Both(), value=Gold(), iterations=200, settings={"depth": 1, "c": 2.0})
    for edge in tree.root.edges:
        print(f"the {edge.action.name} coin is worth {edge.q:.2f}, by {edge.visits} flips")
