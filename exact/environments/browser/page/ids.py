"""Element ids: which DOM node has which id."""

from __future__ import annotations

from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from exact.observation import Element

MOST_STATES = 4096
"""States of all tasks that are remembered. The least recently seen one is dropped first."""
_NO_TAB = -1
"""A number that no tab has."""


class NodeLocation(NamedTuple):
    """The DOM node of an element."""

    tab: int
    document: int
    """Number of documents that the tab had had when the element was seen."""
    backend: int
    """CDP's backend id of the node."""
    frame: str
    """CDP's id of the frame."""


class NodeSignature(NamedTuple):
    """The properties by which an element is recognized when its DOM node is replaced."""

    depth: int
    role: str
    name: str


class _Observed(NamedTuple):
    """One observation of a tab."""

    document: int
    locations: Sequence[NodeLocation]
    signatures: Sequence[NodeSignature]


_Node = tuple[int, int, int]


class Ids:
    """Ids of DOM nodes, numbered in order of first appearance since the episode began.

    A page may replace nodes that have not changed, in one environment and not in another. So a new node takes over the id of a node that
    has disappeared since the last observation and has the same signature. Otherwise equal actions would mean different things in equal
    states.
    """

    def __init__(self) -> None:
        self._ids: dict[_Node, str] = {}
        self._locations: dict[str, NodeLocation] = {}
        self._observed: dict[int, _Observed] = {}
        """The last observation of each tab, by tab number."""
        self._count = 0

    def of(self, location: NodeLocation) -> str:
        """Return the id of a node, which stays the same as long as the node exists."""
        if (found := self._ids.get(location[:3])) is None:
            self._count += 1
            self._assign(found := str(self._count), location)
        return found

    def give(self, locations: Sequence[NodeLocation], signatures: Sequence[NodeSignature]) -> list[str]:
        """Return the ids of the elements observed in a tab, in document order."""
        if locations:
            (tab, document), before = locations[0][:2], self._observed.get(locations[0].tab)
            keys = [location[:3] for location in locations]
            new = [(location, said) for key, location, said in zip(keys, locations, signatures, strict=True) if key not in self._ids]
            if new and before is not None and before.document == document:
                self._inherit_ids(new, before, set(keys))
            self._observed[tab] = _Observed(document, locations, signatures)
        return [self.of(location) for location in locations]

    def _inherit_ids(self, new: Sequence[tuple[NodeLocation, NodeSignature]], before: _Observed, there: set[_Node]) -> None:
        """Let new nodes take over ids of nodes that are gone. Among equal signatures the first new node takes the first id."""
        gone = defaultdict[NodeSignature, deque[_Node]](deque)
        for location, signature in zip(before.locations, before.signatures, strict=True):
            if location[:3] not in there:
                gone[signature].append(location[:3])
        for location, signature in new:
            if gone[signature]:
                self._assign(self._ids.pop(gone[signature].popleft()), location)

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename ids, given as old to new. A node that had one of the new ids gets another when it is seen again."""
        locations = {new: self._locations[old] for old, new in names.items()}
        for id in (*names, *names.values()):
            if (location := self._locations.get(id)) is not None and self._ids.get(location[:3]) == id:
                del self._ids[location[:3]]
        for id, location in locations.items():
            self._assign(id, location)
        self._count = max(self._count, *map(int, names.values()))

    def _assign(self, id: str, location: NodeLocation) -> None:
        self._ids[location[:3]], self._locations[id] = id, location

    def copy(self) -> Ids:
        """Return an independent copy."""
        made = Ids()
        made._ids, made._locations, made._observed, made._count = dict(self._ids), dict(self._locations), dict(self._observed), self._count
        return made

    def moved(self, others: Ids, before: Sequence[Element], after: Sequence[Element]) -> Ids:
        """Return the ids for a page that was loaded again: elements of `after` that match one of `before` keep its id, others get new ids.

        `others` holds the ids of `after`.
        """
        made = Ids()
        made._count = self._count
        made._locations = {id: location._replace(tab=_NO_TAB) for id, location in self._locations.items()}
        for one, other in _pairs(before, after):
            made._assign(one.id, others._locations[other.id])
        return made

    def location(self, id: str) -> NodeLocation | None:
        """Return the node of an id, which may be gone; None for an unknown id."""
        return self._locations.get(id)


class SharedIds:
    """The ids that elements had when a state was first seen, shared by environments that are opened together.

    With equal ids in equal states, equal actions mean the same by every route to the state.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        """Runs of consecutive ids: a few bytes, whereas a page of 10,000 nodes has 6,000 ids. See _packed."""

    def differ(self, task: str, fingerprint: str, elements: Sequence[Element]) -> Mapping[str, str]:
        """Return how to rename the present ids, as present to first seen; empty if they agree.

        Ids differ if an environment arrived by another route or the page replaced nodes. Equal states may differ in volatile elements: if
        their number differs, nothing is renamed.
        """
        key, present = (task, fingerprint), _packed(elements)
        known = self._known.setdefault(key, present)
        self._known.move_to_end(key)
        if len(self._known) > MOST_STATES:
            self._known.popitem(last=False)
        if known == present:
            return {}
        first_seen = _unpacked(known)
        return {element.id: id for element, id in zip(elements, first_seen, strict=True)} if len(first_seen) == len(elements) else {}


def _packed(elements: Sequence[Element]) -> bytes:
    """Return the runs of consecutive ids: the first id and the number of ids of each, in four bytes each."""
    found, following = array("I"), -1
    for element in elements:
        id = int(element.id)
        if id == following:
            found[-1] += 1
        else:
            found.extend((id, 1))
        following = id + 1
    return found.tobytes()


def _unpacked(packed: bytes) -> list[str]:
    """Return the ids of `_packed`."""
    runs = array("I", packed)
    return [str(first + n) for first, count in zip(runs[::2], runs[1::2], strict=True) for n in range(count)]


def _pairs(before: Sequence[Element], after: Sequence[Element]) -> Iterator[tuple[Element, Element]]:
    """Yield pairs of matching elements of two observations of the same page."""
    ones, others = ([NodeSignature(each.depth, each.role, each.name) for each in tree] for tree in (before, after))
    for match in SequenceMatcher(None, ones, others, autojunk=False).get_matching_blocks():
        yield from zip(before[match.a : match.a + match.size], after[match.b : match.b + match.size], strict=True)
