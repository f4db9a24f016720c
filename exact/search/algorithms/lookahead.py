"""Base of the searches that look for one good state and commit the way to it: best-first, beam, tree of thoughts, best of n.

They differ in which state they work on next (`_next`) and in which states they choose between (`_choices`). Everything is read off
the tree at each ask: its size is at most the budget, which is small where a judgement is a model call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exact.search.base import Decision, Done, Selection, Stepped, Wait
from exact.search.rules.answers import pooled_value
from exact.search.rules.exhaust import reopen
from exact.search.rules.final import CLEARLY, first_value, most_likely, most_promising
from exact.search.rules.stop import confirmed_end, unconfirmed_end
from exact.search.tree import Edge, Node, Path, SearchError, Tree
from exact.search.work import Work


class Lookahead(Work):
    """One iteration backs up one value; `iterations` are granted for each committed action.

    depth: actions below the root at most. plan: whether a decision is the whole way to the chosen state, or its first action (after
    which what lies below is kept). enough: value at which an end, once confirmed by an independent judgement, ends the search.
    """

    reason = "leads to the best state"

    def __init__(self, *, depth: int = 8, plan: bool = False, enough: float | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.depth, self.plan, self.enough = depth, plan, enough

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        if not tree.allowed:
            tree.allowed = self.iterations
        root = tree.root
        if root.closed or root.leaf:
            return _finish(tree, root.closed or "the episode has ended")
        if self.enough is not None and confirmed_end(tree, self.enough) is not None:
            return _finish(tree, "an end was good enough, and confirmed")
        if self._left(tree) < 1:
            return _finish(tree, f"{tree.iterations} iterations")
        if self.enough is not None and (end := unconfirmed_end(tree, self.enough)) is not None:
            return self.select_state(tree, path_to(tree, end), end, "value", draw=end.evaluations, confirms=True)
        return self._next(tree) or _finish(tree, "nothing more is to be tried")

    def decide(self, tree: Tree) -> Decision:
        """The way to the best state; an action that could not be searched, if it promises clearly more than any that was."""
        root = tree.root
        if self.enough is not None and (end := confirmed_end(tree, self.enough)) is not None:
            return self._way_to(tree, end, "a confirmed end")
        # the first of equals: found first
        best = max(self._choices(tree), key=lambda node: (self._score(tree, node), -node.id), default=None)
        others = most_promising(root) if root.value is not None else []
        if best is None:
            return self.commit(tree, others or most_likely(root), "the highest prior: nothing was judged")
        if others and first_value(root, root.edges[others[0]]) > worth(tree, best) + CLEARLY:
            return self.commit(tree, others, "could not be searched, but promises more than what was")
        return self._way_to(tree, best, self.reason)

    def advance(self, tree: Tree, edge: int, observed: Stepped) -> bool:
        kept = super().advance(tree, edge, observed)
        reopen(tree, self.backup, deeper=True)
        return kept

    def forecast(self, tree: Tree, k: int) -> list[Node]:
        """States with actions that were not tried yet, the most valuable first."""
        waiting = [
            node for node in (tree.root, *reachable(tree)) if self._can_expand(tree, node) and (untried(node) or not node.expansions)
        ]
        return sorted(waiting, key=lambda node: (-(node.value or 0.0), node.id))[:k]

    # --- what the algorithms say

    def _next(self, tree: Tree) -> Selection | Wait | None:
        """The next work within the budget; None where there is none."""
        raise NotImplementedError

    def _choices(self, tree: Tree) -> Iterator[Node]:
        """The judged states that the search may choose between: those that it did not look beyond."""
        for node in reachable(tree):
            if node.value is not None and not any(child.value is not None for _, child in transitions(node)):
                yield node

    def _score(self, tree: Tree, node: Node) -> float:
        """What a state is chosen by."""
        return worth(tree, node)

    # --- what they share

    def _left(self, tree: Tree) -> int:
        """Iterations that are neither used nor reserved by what is in flight."""
        reserved = sum(max(1, len(work.selection.rivals)) for work in tree.open.values())
        return tree.allowed - tree.iterations - reserved

    def _way_to(self, tree: Tree, node: Node, reason: str) -> Decision:
        edges = [above.edges.index(edge) for above, edge in path_to(tree, node)]
        return self.commit(tree, edges, reason, plan=edges if self.plan else ())

    def _can_expand(self, tree: Tree, node: Node) -> bool:
        """Whether a search may look beyond a state."""
        return not node.leaf and not node.closed and node.depth < tree.root.depth + self.depth

    def _propose(self, tree: Tree, node: Node) -> Selection | None:
        """The proposals that a state lacks before its actions can be tried; again where all were refused."""
        if not node.expansions or (node.expansions <= self.retries and _refused(node)):
            return self.select_state(tree, path_to(tree, node), node, "proposals", draw=node.expansions)
        return None

    def _evaluate(self, tree: Tree) -> Selection | None:
        """The judgement of a state that was come to without one: the root, or one whose judgement was lost."""
        for node in (tree.root, *reachable(tree)):
            if node.value is None and not node.closed and not node.pending:
                return self.select_state(tree, path_to(tree, node), node, "value")
        return None

    def _step(self, tree: Tree, node: Node, index: int) -> Selection:
        """Step along an edge, and judge where it leads."""
        return self.select_step(tree, [*path_to(tree, node), (node, node.edges[index])], index)


def worth(tree: Tree, node: Node) -> float:
    """V of a judged state; of an end with an answer, the mean over all ends with that answer."""
    assert node.value is not None
    return pooled_value(tree, node) if node.terminated else node.value


def untried(node: Node) -> list[int]:
    """Indices of the open edges that were never followed, nor are right now."""
    return [i for i, edge in enumerate(node.edges) if edge.child is None and not edge.closed and not edge.in_flight]


def unfinished(node: Node) -> bool:
    """Whether proposals, or the first judgement of a state that an action leads to, are in flight."""
    return node.pending or any(
        edge.in_flight and (edge.child is None or any(child.pending and child.value is None for child in edge.outcomes))
        for edge in node.edges
    )


def transitions(node: Node) -> Iterator[tuple[Edge, Node]]:
    """The edges of a state that lead on, each with every state it has led to; what changes nothing or is refused leads nowhere."""
    for edge in node.edges:
        if not edge.futile and not edge.unsearched:
            for child in edge.outcomes:
                yield edge, child


def reachable(tree: Tree) -> Iterator[Node]:
    """Every state that can be come to from the root, the root itself left out; depth first, in order of edges."""
    stack, known = [child for _, child in transitions(tree.root)][::-1], {tree.root.id}
    while stack:
        node = stack.pop()
        if node.id not in known:
            known.add(node.id)
            yield node
            stack.extend([child for _, child in transitions(node)][::-1])


def path_to(tree: Tree, node: Node) -> Path:
    """A path from the root to a state below it: that by which it was first come to, if it begins at the root and is not refused."""
    path, at = list[tuple[Node, Edge]](), node
    while at is not tree.root and at.parent is not None:
        path.append((at.parent, at.parent.edges[at.via]))
        at = at.parent
    if at is tree.root and not any(edge.futile for _, edge in path):
        return path[::-1]
    return _around(tree, node)


def _around(tree: Tree, node: Node) -> Path:
    """The way to a merged state whose first way began elsewhere."""
    stack, known = list[tuple[Node, Path]]([(tree.root, [])]), set[int]()
    while stack:
        at, path = stack.pop()
        if at is node:
            return path
        if at.id in known:
            continue
        known.add(at.id)
        stack.extend((child, [*path, (at, edge)]) for edge, child in transitions(at))
    raise SearchError(f"node {node.id} does not lie below the root, node {tree.root.id}")


def _refused(node: Node) -> bool:
    """Whether every action of a state was refused."""
    return all(edge.closed.startswith("action") for edge in node.edges)


def _finish(tree: Tree, reason: str) -> Wait | Done:
    """Done, once nothing is in flight."""
    return Wait() if tree.open else Done(reason)
