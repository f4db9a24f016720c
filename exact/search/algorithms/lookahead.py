"""Base class of the searches that look for one good state and commit the path to it: best-first, beam, tree of thoughts, best of n.

They differ in the next state to work on (`_next`) and in the states to choose between (`_choices`). Everything is read off the tree at each
ask: its size is at most the budget, which is small if an evaluation is a model call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from exact.search.base import Decision, Done, Selection, Stepped, Wait
from exact.search.rules.exhaust import reopen
from exact.search.rules.final import CLEARLY, UNSEEN, Candidate, first_value, likeliest_failed, most_likely, most_promising, prefers_unseen
from exact.search.rules.merge import pooled_value
from exact.search.rules.select import parent_value
from exact.search.rules.stop import confirmed_end, unconfirmed_end
from exact.search.tree import Edge, Node, Path, SearchError, Tree, is_refused
from exact.search.work import Work
from exact.text import counted


class Lookahead(Work):
    """Base class of the searches for one good state. One iteration backs up one value; `iterations` are granted for each committed action.

    depth: maximum number of actions below the root. plan: whether a decision is the whole path to the chosen state, or only its first
    action, after which the subtree is retained. enough: value in [0, 1] from which an independently confirmed end stops the search.
    """

    reason = "leads to the best state"

    def __init__(self, *, depth: int = 8, plan: bool = False, enough: float | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.depth, self.plan, self.enough = depth, plan, enough

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve the next work, or return the reason if there is none."""
        if not tree.allowed:
            tree.allowed = self.iterations
        root = tree.root
        if root.closed or root.leaf:
            return _finish(tree, root.closed or "the episode has ended")
        if self.enough is not None and confirmed_end(tree, self.enough) is not None:
            return _finish(tree, "an end was good enough, and confirmed")
        if self._left(tree) < 1:
            return self.first_proposals(tree) or _finish(tree, counted(tree.iterations, "iteration"))
        if self.enough is not None and (end := unconfirmed_end(tree, self.enough)) is not None:
            return self.select_state(tree, path_to(tree, end), end, "value", draw=end.evaluations, confirms=True)
        return self._next(tree) or _finish(tree, "nothing is left to try")

    def decide(self, tree: Tree) -> Decision:
        """Return the path to the best state.

        An action that could not be searched wins if it clearly promises more than every searched one.
        """
        root = tree.root
        if self.enough is not None and (end := confirmed_end(tree, self.enough)) is not None:
            return self._way_to(tree, end, "a confirmed end")
        best = self._best(tree)
        others = most_promising(root) if root.value is not None else []
        if best is None:
            return self.commit(tree, others or most_likely(root), "the highest prior: nothing was evaluated")
        if others and first_value(root, root.edges[others[0]]) > worth(tree, best) + CLEARLY:
            return self.commit(tree, others, "could not be searched, but promises more than what was searched")
        if (failed := likeliest_failed(root)) is not None and root.value is not None:
            before, edge = root.value, root.edges[failed]
            one, other = Candidate(before, before, edge.prior), self._candidate(tree, best)
            if prefers_unseen(one, other, before=before):
                return self.commit(tree, [failed], UNSEEN)
        return self._way_to(tree, best, self.reason)

    def advance(self, tree: Tree, edge: int, observed: Stepped) -> bool:
        """Move the root along a committed action, and reopen edges that only the depth limit had exhausted."""
        retained = super().advance(tree, edge, observed)
        reopen(tree, self.backup, deeper=True)
        return retained

    def forecast(self, tree: Tree, k: int) -> list[Node]:
        """Return up to k states with untried actions, the most valuable first."""
        waiting = [
            node for node in (tree.root, *reachable(tree)) if self._can_expand(tree, node) and (untried(node) or not node.expansions)
        ]
        return sorted(waiting, key=lambda node: (-(node.value or 0.0), node.id))[:k]

    # --- defined by the algorithms

    def _next(self, tree: Tree) -> Selection | Wait | None:
        """Return the next work within the budget, or None if there is none."""
        raise NotImplementedError

    def _choices(self, tree: Tree) -> Iterator[Node]:
        """Yield the evaluated states that were not expanded: the search chooses between them."""
        for node in reachable(tree):
            if node.value is not None and not any(child.value is not None for _, child in transitions(node)):
                yield node

    def _best(self, tree: Tree) -> Node | None:
        """Return the best of the choices, by rules/final.py if it is an unseen state; None if there is none."""
        choices = list(self._choices(tree))
        seen, unseen = (self._first(tree, [node for node in choices if node.unseen is hidden]) for hidden in (False, True))
        if seen is None or unseen is None:
            return seen or unseen
        before, after = unseen.parent, self._score(tree, unseen)
        assert before is not None
        deep = before is not tree.root and before.value is not None  # then the state before it is a separate choice
        if deep and min(after, self._score(tree, before)) > self._score(tree, seen):
            return unseen
        wins = prefers_unseen(self._candidate(tree, unseen), self._candidate(tree, seen), before=parent_value(before))
        return unseen if wins else seen

    def _candidate(self, tree: Tree, node: Node) -> Candidate:
        """Return the worth that a state gives its path's first action."""
        return Candidate(score := self._score(tree, node), score, path_to(tree, node)[0][1].prior)

    def _first(self, tree: Tree, nodes: list[Node]) -> Node | None:
        """Return the node with the highest score, the first found of equals."""
        return max(nodes, key=lambda node: (self._score(tree, node), -node.id), default=None)

    def _score(self, tree: Tree, node: Node) -> float:
        """Return the score by which a state is chosen."""
        return worth(tree, node)

    # --- shared by the algorithms

    def _left(self, tree: Tree) -> int:
        """Return the number of iterations that are neither used nor reserved by work in flight."""
        reserved = sum(max(1, len(work.selection.rivals)) for work in tree.open.values())
        return tree.allowed - tree.iterations - reserved

    def _way_to(self, tree: Tree, node: Node, reason: str) -> Decision:
        """Return the decision for the path to a state."""
        edges = [above.edges.index(edge) for above, edge in path_to(tree, node)]
        return self.commit(tree, edges, reason, plan=edges if self.plan else ())

    def _can_expand(self, tree: Tree, node: Node) -> bool:
        """Return whether the search may go below a state."""
        return not node.leaf and not node.closed and node.depth < tree.root.depth + self.depth

    def _propose(self, tree: Tree, node: Node) -> Selection | None:
        """Return the proposals that a state lacks before its actions can be tried; once more if all were refused."""
        if not node.expansions or (node.expansions <= self.retries and _refused(node)):
            return self.select_state(tree, path_to(tree, node), node, "proposals", draw=node.expansions)
        return None

    def _evaluate(self, tree: Tree) -> Selection | None:
        """Return the evaluation that a state lacks: that of the root, or one that was lost."""
        for node in (tree.root, *reachable(tree)):
            if node.value is None and not node.closed and not node.pending:
                return self.select_state(tree, path_to(tree, node), node, "value")
        return None

    def _step(self, tree: Tree, node: Node, index: int) -> Selection:
        """Reserve a step along an edge, and the evaluation of its outcome."""
        return self.select_step(tree, [*path_to(tree, node), (node, node.edges[index])], index)


def worth(tree: Tree, node: Node) -> float:
    """Return V of an evaluated state; for an end with an answer, the mean over all ends with that answer."""
    assert node.value is not None
    return pooled_value(tree, node) if node.terminated else node.value


def untried(node: Node) -> list[int]:
    """Return the indices of the open edges that were never followed and are not in flight."""
    return [i for i, edge in enumerate(node.edges) if edge.child is None and not edge.closed and not edge.in_flight]


def unfinished(node: Node) -> bool:
    """Return whether proposals, or the first evaluation of a child, are in flight."""
    return node.pending or any(
        edge.in_flight and (edge.child is None or any(child.pending and child.value is None for child in edge.outcomes))
        for edge in node.edges
    )


def transitions(node: Node) -> Iterator[tuple[Edge, Node]]:
    """Yield each usable edge of a state with each of its outcomes. Edges that were refused or change nothing are left out."""
    for edge in node.edges:
        if not edge.futile and not edge.unsearched:
            for child in edge.outcomes:
                yield edge, child


def reachable(tree: Tree) -> Iterator[Node]:
    """Yield every state that can be reached from the root, without the root; depth first, in the order of the edges."""
    stack, known = [child for _, child in transitions(tree.root)][::-1], {tree.root.id}
    while stack:
        node = stack.pop()
        if node.id not in known:
            known.add(node.id)
            yield node
            stack.extend([child for _, child in transitions(node)][::-1])


def path_to(tree: Tree, node: Node) -> Path:
    """Return a path from the root to a state below it.

    It is the path by which the state was first reached, if that starts at the root and is not refused.
    """
    path, at = list[tuple[Node, Edge]](), node
    while at is not tree.root and at.parent is not None:
        path.append((at.parent, at.parent.edges[at.via]))
        at = at.parent
    if at is tree.root and not any(edge.futile for _, edge in path):
        return path[::-1]
    return _around(tree, node)


def _around(tree: Tree, node: Node) -> Path:
    """Return another path to a merged state whose first path starts elsewhere. Raises SearchError if there is none."""
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
    """Return whether every action of a state was refused."""
    return all(map(is_refused, node.edges))


def _finish(tree: Tree, reason: str) -> Wait | Done:
    """Return Done once nothing is in flight."""
    return Wait() if tree.open else Done(reason)
