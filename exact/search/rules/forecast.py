"""Forecast of the states in which a search is likely to act next, for environments that are prepared while models answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from exact.search.rules.backup import Backup, back_up, reserve
from exact.search.rules.select import SelectionRule, follow
from exact.search.tree import Node, Open, Tree


def likely_steps(tree: Tree, rule: SelectionRule, depth: int, backup: Backup, discount: float) -> Iterator[Node]:
    """Yield the states in which a step is likely next, the likeliest first, some more than once. Changes nothing.

    They are those with proposals in flight; then the one to which the rule leads if the evaluations in flight turn out low, as things are
    now, and if they turn out high. A low one comes first: after a high one the search goes on from the state where an environment is.
    depth: the maximum number of actions below the root. backup, discount: as the search backs up.
    """
    for work in tree.open.values():
        if "proposals" in work.left or "sample" in work.left:
            yield work.target if work.target is not None else tree.nodes[work.selection.node]
    awaited = [work for work in tree.open.values() if work.target is not None and "value" in work.left]
    low, high = sorted((tree.low, tree.high))
    cases: list[AbstractContextManager[None]] = [nullcontext()]
    if awaited:
        if_low, if_high = (_supposed(tree, awaited, value, backup, discount) for value in (low, high))
        cases = [if_low, *cases, if_high]
    for case in cases:
        with case:
            likely = _next_step(tree, rule, depth)
        if likely is not None:
            yield likely


def _next_step(tree: Tree, rule: SelectionRule, depth: int) -> Node | None:
    """Return the state in which the rule takes a step as things are. None where it leads to an end."""
    deepest, node = tree.root.depth + depth, tree.root
    while not (node.leaf or node.closed or node.depth >= deepest):
        index = rule(tree, node) if node.expansions and not node.pending else -1
        child = node.edges[index].child if index >= 0 else None
        if child is None:
            return node
        node = follow(node.edges[index])
    return None


@contextmanager
def _supposed(tree: Tree, awaited: list[Open], value: float, backup: Backup, discount: float) -> Iterator[None]:
    """Suppose for the block that the evaluations in flight had come, all with one value."""
    nodes = {node for work in awaited for node in (work.target, *(above for above, _ in work.path)) if node is not None}
    edges = {edge for work in awaited for _, edge in work.path}
    states = [(node, (node.visits, node.backups, node.in_flight, node.pending, node.evaluations), node.value_sum) for node in nodes]
    taken = [(edge, (edge.visits, edge.in_flight), (edge.total, edge.q)) for edge in edges]
    counters = tree.iterations, tree.low, tree.high
    try:
        for work in awaited:
            assert work.target is not None
            reserve(work.path, None if work.selection.edge is not None else work.target, -1)
            work.target.pending, work.target.evaluations = False, work.target.evaluations + 1
            work.target.value_sum += value
            back_up(tree, work.path, work.target, value, rule=backup, discount=discount)
        yield
    finally:
        for node, counts, value_sum in states:
            node.visits, node.backups, node.in_flight, node.pending, node.evaluations = counts
            node.value_sum = value_sum
        for edge, numbers, values in taken:
            edge.visits, edge.in_flight = numbers
            edge.total, edge.q = values
        tree.iterations, tree.low, tree.high = counters
