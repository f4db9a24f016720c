"""Search a toy environment with your own policy and value function, and print the tree: `python examples/01_toy_search.py`."""

import exact
from exact.environments.toy.factory import ToyFactory, deceptive_chain


class Links:
    async def propose(self, context, actions, k):
        links = [each.name for each in context.observation.elements if each.role == "link"]
        return tuple(exact.Proposal(action=actions.action("go", name), prior=1 / len(links)) for name in links)


class Depth:
    async def evaluate(self, context):
        return exact.Evaluation(value=min(1.0, 0.3 * len(context.history)))


print(exact.search_sync(ToyFactory(deceptive_chain(3)), policy=Links(), value=Depth(), iterations=20))
