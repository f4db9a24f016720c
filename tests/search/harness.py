"""Answers a search's asks from a toy environment at once, without environments, models or clocks."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

import msgspec

from exact.action import Action
from exact.context import Evaluation, Proposal
from exact.environments.toy.factory import TOY_ACTIONS
from exact.environments.toy.known import ToyGraph, ToyState, bandit
from exact.search.base import Algorithm, Batched, Compared, Done, Failure, Need, Proposed, Result, Selection, Stepped, Valued, Wait
from exact.search.rules.backup import generator
from exact.search.tree import Edge, Node, Tree

Fault = Callable[[Selection, Need], Failure | None]
"""What goes wrong when a need is to be met, if anything."""


def go(link: str) -> Action:
    return TOY_ACTIONS.action("go", link)


def proposed(**priors: float) -> Proposed:
    return Proposed(proposals=tuple(Proposal(action=go(link), prior=prior) for link, prior in priors.items()))


def valued(value: float) -> Valued:
    return Valued(evaluation=Evaluation(value=value))


def failed(kind: Literal["action", "drifted", "environment", "model"] = "model") -> Failure:
    return Failure(kind=kind, reason="broke")


def graph(states: dict[str, ToyState], start: str = "a") -> ToyGraph:
    return ToyGraph(name="drawn", instruction="Win.", start=start, states=states)


def two_arms() -> ToyGraph:
    """Return a bandit whose first arm wins and whose second loses; the root has the value 0.5."""
    return bandit(2, rewards=(1.0, 0.0))


class Harness:
    """One tree over one environment."""

    def __init__(self, graph: ToyGraph, algorithm: Algorithm, fault: Fault = lambda selection, need: None) -> None:
        self.graph, self.algorithm, self.fault = graph, algorithm, fault
        self.tree = self.begun()
        self.asked: list[Selection] = []

    def begun(self) -> Tree:
        """Return a tree before any search."""
        tree = Tree()
        tree.root.fingerprint = self.graph.start
        return tree

    def state(self, node: Node) -> str:
        """Return the state of a node in the environment."""
        name = self.graph.start
        for edge in node.path():
            name = self.graph.states[name].edges[str(edge.action.args[0])].to
        return name

    def ask(self) -> Selection | Wait | Done:
        answer = self.algorithm.ask(self.tree)
        if isinstance(answer, Selection):
            self.asked.append(answer)
        return answer

    def select(self) -> Selection:
        """Return the next selection. Fails if the search wants something else."""
        answer = self.ask()
        assert isinstance(answer, Selection), answer
        return answer

    def tell(self, selection: Selection, result: Result) -> None:
        self.algorithm.tell(self.tree, selection, result)

    def meet(self, selection: Selection) -> None:
        """Tell all that a selection needs, as the environment is."""
        for need in selection.needs:
            result = self.fault(selection, need) or self.result(selection, need)
            self.tell(selection, result)
            if isinstance(result, Failure) or self.is_noop(selection):
                return

    def is_noop(self, selection: Selection) -> bool:
        """Return whether a step led to a known state, so that nothing else is needed."""
        return selection.id not in self.tree.open

    def edge(self, selection: Selection) -> Edge | None:
        return None if selection.edge is None else self.tree.nodes[selection.node].edges[selection.edge]

    def result(self, selection: Selection, need: Need) -> Result:
        """Return the environment's answer."""
        node, edge = self.tree.nodes[selection.node], self.edge(selection)
        if need == "step":
            assert edge is not None
            return self.step(node, edge)
        if need == "value":
            about = edge.child if edge is not None else node
            assert about is not None
            return valued(self.looks(about))
        if need == "comparison":
            return self.comparison(node, selection.rivals)
        if need == "batch":
            children = [node.edges[i].child for i in selection.rivals]
            return Batched(evaluations=tuple(Evaluation(value=self.looks(child)) for child in children if child is not None))
        if edge is not None and edge.child is not None:
            node = edge.child
        edges = self.graph.states[self.state(node)].edges
        chosen = sorted(edges.items(), key=lambda item: -item[1].prior)[: selection.k]
        if need == "sample":
            dice = generator(self.tree.seed, "sample", node.id, selection.draw)
            chosen = dice.choices(list(edges.items()), [edge.prior for edge in edges.values()])
        total = sum(edge.prior for _, edge in chosen)
        return Proposed(proposals=tuple(Proposal(action=go(link), prior=edge.prior / total) for link, edge in chosen))

    def looks(self, node: Node) -> float:
        state = self.graph.states[self.state(node)]
        return state.looks if state.looks is not None else state.reward or 0.0

    def comparison(self, node: Node, rivals: tuple[int, ...]) -> Compared:
        """Votes in proportion to how the children look."""
        children = [node.edges[i].child for i in rivals]
        looks = [self.looks(child) + 1e-6 for child in children if child is not None]
        return Compared(scores=tuple(look / sum(looks) for look in looks))

    def step(self, node: Node, edge: Edge) -> Stepped:
        to = self.graph.states[self.state(node)].edges[str(edge.action.args[0])].to
        ended = self.graph.states[to].reward is not None
        return Stepped(fingerprint="" if ended else to, terminated=ended)

    def search(self, most: int = 10_000) -> Done:
        """Search until done, one selection at a time."""
        for _ in range(most):
            answer = self.ask()
            if isinstance(answer, Done):
                return answer
            assert isinstance(answer, Selection), "one worker has nothing to wait for"
            self.meet(answer)
        raise AssertionError(f"not done after {most} asks")

    def commit(self) -> str:
        """Decide and take the step for real; the action's link."""
        index = self.algorithm.decide(self.tree).edges[0]
        edge = self.tree.root.edges[index]
        self.algorithm.advance(self.tree, index, self.step(self.tree.root, edge))
        return str(edge.action.args[0])

    def solve(self, most: int = 20) -> str:
        """Search and commit until the episode ends; the name of the last state."""
        for _ in range(most):
            if self.tree.root.terminated:
                break
            self.search()
            self.commit()
        return self.state(self.tree.root)


class ChanceHarness(Harness):
    """One tree over an environment in which a step may lead to the state of any other link, drawn at random.

    An end has an observation of its own, or looks as any other end does, so that only its evaluation tells what it is worth.
    """

    def __init__(self, graph: ToyGraph, algorithm: Algorithm, dice: random.Random) -> None:
        self.dice, self.chance, self.observed = dice, dice.random(), dice.random() < 0.5
        self.paid: dict[int, float] = {}
        super().__init__(graph, algorithm)

    def begun(self) -> Tree:
        tree = super().begun()
        tree.stochastic = True
        return tree

    def state(self, node: Node) -> str:
        return node.fingerprint if node.fingerprint in self.graph.states else self.graph.start

    def result(self, selection: Selection, need: Need) -> Result:
        target = self.tree.open[selection.id].target
        if need == "value" and target is not None and target.terminated and selection.id in self.paid:
            return valued(self.paid[selection.id])
        if need == "value" and target is not None:
            return valued(self.looks(target))
        if need in ("proposals", "sample") and target is not None:
            selection = msgspec.structs.replace(selection, node=target.id, edge=None)
        came = super().result(selection, need)
        if isinstance(came, Stepped) and came.terminated:
            self.paid[selection.id] = self.reward
        return came

    def looks(self, node: Node) -> float:
        return 0.5 if node.terminated and not self.observed else super().looks(node)

    def step(self, node: Node, edge: Edge) -> Stepped:
        links = self.graph.states[self.state(node)].edges
        link = links.get(str(edge.action.args[0])) or next(iter(links.values()))  # a state that nobody foresaw has the actions of another
        to = link.to
        if self.dice.random() < self.chance:
            to = self.dice.choice(list(links.values())).to
        reward = self.graph.states[to].reward
        self.reward = reward or 0.0
        return Stepped(fingerprint="" if reward is not None and not self.observed else to, terminated=reward is not None)


def check(tree: Tree, values: list[float] | None = None) -> None:
    """Check the invariants of every moment; `values`: everything that was backed up so far."""
    for node in tree.nodes:
        assert node.visits == node.backups + sum(edge.visits for edge in node.edges), f"visits of node {node.id}"
        assert node.in_flight >= 0
        for edge in node.edges:
            assert edge.in_flight >= 0
            assert edge.child is None or edge.child.parent is node or edge.child in tree.states.values()
            if edge.value is not None and values is not None:
                assert min(values) - 1e-9 <= edge.value <= max(values) + 1e-9, f"Q of {edge.action} at node {node.id}"


def check_idle(tree: Tree) -> None:
    """Check the invariants of a search without open work."""
    check(tree)
    assert not any(node.in_flight or node.pending for node in tree.nodes)
    assert not any(edge.in_flight for node in tree.nodes for edge in node.edges)
