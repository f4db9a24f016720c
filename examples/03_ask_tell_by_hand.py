"""Run a search by ask and tell, without environments, models or files. Your code answers each request of the search.

Run: `python examples/03_ask_tell_by_hand.py`. The search finds a number from 0 to 15, bit by bit.
"""

from exact import Evaluation, Proposal
from exact.action import ActionSpace, Parameter, Verb
from exact.config import SearchConfig
from exact.search.base import Done, Proposed, Stepped, Valued
from exact.search.registry import algorithm
from exact.search.tree import Tree

WANTED = "1011"
ACTIONS = ActionSpace([Verb(name="bit", form=(Parameter.TEXT,))])


def bits(node):
    """Return the bits chosen on the path to a node."""
    return "".join(edge.action.args[0] for edge in node.path())


def answer(tree, selection, need):
    """Return the result of one need of a selection."""
    node = tree.nodes[selection.node]
    edge = None if selection.edge is None else node.edges[selection.edge]
    if need == "proposals":
        return Proposed(proposals=tuple(Proposal(action=ACTIONS.action("bit", bit), prior=0.5) for bit in "01"))
    if need == "step":
        chosen = bits(node) + edge.action.args[0]
        return Stepped(fingerprint=chosen, terminated=len(chosen) == len(WANTED))
    chosen = bits(edge.child if edge else node)
    right = sum(a == b for a, b in zip(chosen, WANTED, strict=False))
    return Valued(evaluation=Evaluation(value=right / len(WANTED)))


def main():
    search, tree = algorithm(SearchConfig(algorithm="mcts", iterations=40, k=2)), Tree(seed=0)
    while not isinstance(asked := search.ask(tree), Done):
        for need in asked.needs:
            search.tell(tree, asked, answer(tree, asked, need))
    decision = search.decide(tree)
    edge = tree.root.edges[decision.edges[0]]
    print(f"{asked.reason}: {edge.action} ({decision.reason}: {edge.visits} of {tree.root.visits}, Q {edge.q:.2f})")
    best = max(tree.ends, key=lambda end: end.value)
    print(f"the best end seen is {bits(best)}, score {best.value}")


if __name__ == "__main__":
    main()
