"""Search a toy environment with your own policy and value function, and print the tree: `python examples/01_toy_search.py`."""

import exact
from exact.environments.toy.factory import ToyFactory, deceptive_chain


class Links:
    async def propose(self, context, actions, k):
        return [f'go "{each.name}"' for each in context.observation.elements if each.role == "link"]


class Looks:
    async def evaluate(self, context):
        left = "left" in context.observation.text
        if context.terminated:
            return 0.0 if left else 1.0
        return 0.8 if left else 0.3


print(exact.search_sync(ToyFactory(deceptive_chain(3)), policy=Links(), value=Looks(), iterations=20))
