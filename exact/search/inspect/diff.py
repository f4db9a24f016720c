"""Differences between two trees: of one journal before and after a change, or of two runs of one task."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from exact.search.tree import Edge, Node, Tree

ActionPath = tuple[str, ...]
"""Canonical texts of the actions from the first root. A further outcome of an action has its number appended: `go "on" #1`."""

FIELDS = ("fingerprint", "terminated", "blocked", "unreached", "closed", "visits", "value", "prior", "q")
"""Compared fields of a state and of the action that leads to it."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One field of one state that differs."""

    path: ActionPath
    field: str
    one: str | float | bool | None
    other: str | float | bool | None


class TreeDifference(msgspec.Struct, frozen=True, kw_only=True):
    """All differences of two trees; false if there are none."""

    only_one: tuple[ActionPath, ...] = ()
    """States that only the first tree has, in its order."""
    only_other: tuple[ActionPath, ...] = ()
    """States that only the second tree has, in its order."""
    changes: tuple[Change, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.only_one or self.only_other or self.changes)


def diff(one: Tree, other: Tree, *, tolerance: float = 1e-9) -> TreeDifference:
    """Compare two trees from their first roots, state by state, by the actions that lead there.

    tolerance: numbers within it are equal.
    """
    left, right = dict(_states(one)), dict(_states(other))
    return TreeDifference(
        only_one=tuple(path for path in left if path not in right),
        only_other=tuple(path for path in right if path not in left),
        changes=tuple(change for path in left if path in right for change in _changes(path, left[path], right[path], tolerance)),
    )


_Facts = dict[str, "str | float | bool | None"]


def _states(tree: Tree) -> Iterator[tuple[ActionPath, _Facts]]:
    """Yield every state with its fields, from the first root down; a merged one once, by its first path."""
    stack: list[tuple[ActionPath, Edge | None, Node]] = [((), None, tree.nodes[0])]
    known = set[int]()
    while stack:
        path, edge, node = stack.pop()
        if node.id in known:
            continue
        known.add(node.id)
        yield path, _facts(edge, node)
        for below in reversed(node.edges):
            for number, child in reversed(list(enumerate(below.outcomes))):
                step = below.action.key + (f" #{number}" if number else "")
                stack.append(((*path, step), below, child))


def _facts(edge: Edge | None, node: Node) -> _Facts:
    """Return the compared fields of a state and its edge."""
    return {
        "fingerprint": node.fingerprint,
        "terminated": node.terminated,
        "blocked": node.blocked,
        "unreached": node.unreached,
        "closed": node.closed,
        "visits": node.visits,
        "value": node.value,
        "prior": edge.prior if edge else None,
        "q": edge.value if edge else None,
    }


def _changes(path: ActionPath, one: _Facts, other: _Facts, tolerance: float) -> Iterator[Change]:
    """Yield the fields in which two states differ."""
    for field in FIELDS:
        a, b = one[field], other[field]
        near = isinstance(a, float) and isinstance(b, float) and abs(a - b) <= tolerance
        if a != b and not near:
            yield Change(path=path, field=field, one=a, other=b)
