"""Which element has which id."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from exact.observation import Element

STATES = 4096
"""Of all tasks; the one that was not seen for longest is forgotten first."""
_GONE = -1
"""No tab has this number."""


class NodeLocation(NamedTuple):
    """Where an element lives."""

    tab: int
    document: int
    """How many documents the tab had had when it was seen."""
    backend: int
    frame: str


class NodeSignature(NamedTuple):
    """What tells an element from others that stand elsewhere, or say something else."""

    depth: int
    role: str
    name: str


class _Seen(NamedTuple):
    """One look at a tab."""

    document: int
    places: Sequence[NodeLocation]
    looks: Sequence[NodeSignature]


_Node = tuple[int, int, int]


class Ids:
    """Gives every DOM node its id, in order of first appearance since the episode began.

    Whether a page draws anew what has not changed is chance: in one environment it does, in another not. So a node that was drawn anew
    has the id of one that is gone since the last look and looked the same; else equal actions would not mean the same in equal states.
    """

    def __init__(self) -> None:
        self._ids: dict[_Node, str] = {}
        self._places: dict[str, NodeLocation] = {}
        self._last: dict[int, _Seen] = {}
        """By tab."""
        self._given = 0

    def of(self, place: NodeLocation) -> str:
        """The id of a node: the same one for as long as it is there."""
        if place[:3] not in self._ids:
            self._given += 1
            self._have(str(self._given), place)
        return self._ids[place[:3]]

    def give(self, places: Sequence[NodeLocation], looks: Sequence[NodeSignature]) -> list[str]:
        """The ids of all that is seen in a tab, in document order."""
        if places:
            (tab, document), before = places[0][:2], self._last.get(places[0].tab)
            new = [(place, look) for place, look in zip(places, looks, strict=True) if place[:3] not in self._ids]
            if new and before is not None and before.document == document:
                self._inherit(new, before, {place[:3] for place in places})
            self._last[tab] = _Seen(document, places, looks)
        return [self.of(place) for place in places]

    def _inherit(self, new: Sequence[tuple[NodeLocation, NodeSignature]], before: _Seen, there: set[_Node]) -> None:
        """Of several that look alike the first takes over from the first."""
        gone = defaultdict[NodeSignature, deque[_Node]](deque)
        for place, look in zip(before.places, before.looks, strict=True):
            if place[:3] not in there:
                gone[look].append(place[:3])
        for place, look in new:
            if gone[look]:
                self._have(self._ids.pop(gone[look].popleft()), place)

    def rename(self, names: Mapping[str, str]) -> None:
        """Call elements otherwise from now on. Whatever else had one of these ids gets another when it is seen again."""
        places = {new: self._places[old] for old, new in names.items()}
        for id in (*names, *names.values()):
            if (place := self._places.get(id)) is not None and self._ids.get(place[:3]) == id:
                del self._ids[place[:3]]
        for id, place in places.items():
            self._have(id, place)
        self._given = max(self._given, *map(int, names.values()))

    def _have(self, id: str, place: NodeLocation) -> None:
        self._ids[place[:3]], self._places[id] = id, place

    def copy(self) -> Ids:
        """Another one that has given the same ids so far."""
        made = Ids()
        made._ids, made._places, made._last, made._given = dict(self._ids), dict(self._places), dict(self._last), self._given
        return made

    def moved(self, others: Ids, before: Sequence[Element], after: Sequence[Element]) -> Ids:
        """Another one for a page that was loaded anew: elements of `after` that are those of `before` have their ids, others new ones.

        `others` gave the ids of `after`.
        """
        made = Ids()
        made._given = self._given
        made._places = {id: place._replace(tab=_GONE) for id, place in self._places.items()}
        for one, other in _pairs(before, after):
            made._have(one.id, others._places[other.id])
        return made

    def place(self, id: str) -> NodeLocation | None:
        """Where the element of an id lives, or lived; None if there never was one."""
        return self._places.get(id)


class SharedIds:
    """Ids of elements by state, as they were when it was first seen. All environments of one kind share it."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()

    def differ(self, task: str, fingerprint: str, elements: Sequence[Element]) -> Mapping[str, str]:
        """The ids that elements had in this state, by those that they have; empty where none differs.

        An environment that came another way, or drew a page anew, counts otherwise. States are equal without their volatile parts: where
        one has more elements for these, it is left as it is.
        """
        key, ids = (task, fingerprint), tuple(element.id for element in elements)
        known = self._known.setdefault(key, ids)
        self._known.move_to_end(key)
        if len(self._known) > STATES:
            self._known.popitem(last=False)
        return dict(zip(ids, known, strict=True)) if known != ids and len(known) == len(ids) else {}


def _pairs(before: Sequence[Element], after: Sequence[Element]) -> Iterator[tuple[Element, Element]]:
    """Elements that are the same in two trees which should be one."""
    ones, others = ([NodeSignature(each.depth, each.role, each.name) for each in tree] for tree in (before, after))
    for match in SequenceMatcher(None, ones, others, autojunk=False).get_matching_blocks():
        yield from zip(before[match.a : match.a + match.size], after[match.b : match.b + match.size], strict=True)
