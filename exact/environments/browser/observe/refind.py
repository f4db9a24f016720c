"""The element that an action means: the one that was observed, whatever its DOM node has become since.

Nodes are a poor identity. Lists that scroll or sort themselves write other rows into the nodes that they have, and pages replace nodes by
equal ones. An element is what an agent saw of it: role, name, state, the words of the row or dialog that it is in, and the elements around
it. They are compared between two observations by the same code, so nothing has a second definition of a name.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from exact.environments.browser.observe.describe import PLACEHOLDER, Masks, identity
from exact.environments.browser.observe.dom import Document, DomNode
from exact.environments.browser.observe.tree import CONTROLS
from exact.environments.browser.page.ids import Ids, NodeLocation
from exact.errors import ActionError
from exact.observation import Element

_RECORDS = ("tr", "li", "dialog", "article")
_RECORD_ROLES = ("row", "listitem", "dialog", "alertdialog", "article", "treeitem")
"""Tags and roles of parts whose words say which of several their controls belong to."""
_ENDS = ("form", "fieldset", "nav", "header", "footer", "aside")
"""Tags of parts that a control's words do not lie beyond."""
_WIDE = ("body", "html", "main", "#document", "#document-fragment")
"""Parts with so much in them that only the nearest text before a control is taken for its own."""
_TOGGLES = ("checked", "mixed", "pressed", "expanded", "collapsed")
"""States that a click turns over."""
_MOST_NAMED = 60
"""Maximum characters of a name in an error."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")

Words = tuple[str, str]
"""Role and name of an element, without volatile parts."""


class _Seen(NamedTuple):
    """What was observed of one element."""

    words: Words
    toggles: tuple[str, ...]
    value: str | None
    path: tuple[str, ...]
    """Roles of the elements around it, from the inside out."""
    level: int
    """Number of DOM ancestors up to the part with `around`."""
    around: Counter[Words]
    """The words that belong to it: those of its record, or else the nearest text."""
    is_record: bool

    def told(self, other: _Seen | None) -> str:
        """Return the element in words, with those around it that distinguish it from another one."""
        differ = self.around - other.around if other else self.around
        beside = next((name for _, name in differ if name), "")
        return _named(*self.words) + (f" beside {_quoted(beside)}" if beside else "")


class SeenPage:
    """The elements of a page as they were observed, with their places in the DOM."""

    def __init__(self, documents: Sequence[Document], elements: Sequence[Element], ids: Ids, masks: Masks) -> None:
        """Take an observation. `ids`: those of its elements. `masks`: those of volatile parts."""
        self.elements = elements
        self._words = [(str(each[1]), str(each[2])) for each in masks.mask(elements, map(identity, elements), ())]
        self._index = {each.id: index for index, each in enumerate(elements)}
        self._locations = [ids.location(each.id) for each in elements]
        self._at = {location: index for index, location in enumerate(self._locations) if location}
        wanted = {(location.frame, location.backend): index for location, index in self._at.items()}
        self._nodes: dict[int, tuple[Document, DomNode]] = {}
        for document in documents:
            for node in document.nodes:
                if (index := wanted.get((document.frame, node.backend))) is not None:
                    self._nodes[index] = document, node
        self._order = {id(each): list[tuple[int, int]]() for each in documents}
        """Positions of the elements' nodes in each document, with the elements' indices."""
        for index, (document, node) in self._nodes.items():
            self._order[id(document)].append((node.index, index))
        for order in self._order.values():
            order.sort()

    def location(self, id: str) -> NodeLocation | None:
        """Return the node that an element had; None if it was not observed."""
        return self._locations[self._index[id]] if id in self._index and self._index[id] in self._nodes else None

    def find(self, was: SeenPage, id: str, *, strict: bool, restless: bool = False) -> tuple[str, NodeLocation]:
        """Return the id and node of the one element that an element of an earlier observation still is.

        `strict`: whether the value of a field counts too, as for an action that writes. `restless`: whether the words around the element
        change by themselves again and again. Then numbers in its record do not count if other words of it distinguish it, and a text near
        it that is in no record does not count. Raises ActionError if there is no such element, or several.
        """
        at, meant = was._index[id], was._seen(was._index[id])
        there = self._at.get(location) if (location := was._locations[at]) else None
        if there is not None and self._is(there, meant, strict):
            return self._result(there)
        if there is not None and restless and self._is_loosely(there, meant, strict):
            return self._result(there)
        found = [each for each in self._nodes if each != there and self._is(each, meant, strict, elsewhere=True)]
        twins = [each for each in was._nodes if was._is(each, meant, strict, elsewhere=True)]
        if len(found) == 1 == len(twins):
            return self._result(found[0])
        if len(found) == len(twins) and self._words == was._words:
            return self._result(sorted(found)[sorted(twins).index(at)])
        now = self._seen(there, meant) if there is not None else None
        is_now = f"{len(found)} elements are like it now" if found else f"it is {now.told(meant)} now" if now else "it is gone"
        raise ActionError(f"[{id}] was {meant.told(now)}: {is_now}")

    def _result(self, index: int) -> tuple[str, NodeLocation]:
        location = self._locations[index]
        assert location is not None
        return self.elements[index].id, location

    def _is(self, index: int, meant: _Seen, strict: bool, *, elsewhere: bool = False) -> bool:
        """Return whether an element is what is meant. `elsewhere`: it is not at the node of the one that is meant."""
        if self._words[index] != meant.words:
            return False
        now = self._seen(index, meant)
        same = now.toggles == meant.toggles and (not strict or now.value == meant.value)
        return same and meant.around <= now.around + _numberless(now.around) and not (elsewhere and now.path != meant.path)

    def _is_loosely(self, index: int, meant: _Seen, strict: bool) -> bool:
        """Return whether an element is what is meant but for numbers in its record, or for a text that is near it."""
        if not meant.is_record:
            return self._is(index, meant._replace(around=Counter()), strict)
        loose = meant._replace(around=_numberless(meant.around))
        distinguishes = any(PLACEHOLDER not in name and any(map(str.isalpha, name)) for _, name in loose.around)
        return distinguishes and [each for each in self._nodes if self._is(each, loose, strict)] == [index]

    def _seen(self, index: int, like: _Seen | None = None) -> _Seen:
        """Return what was observed of an element. `like`: take all words of a part as wide as that of another one."""
        element, (document, node) = self.elements[index], self._nodes[index]
        level, is_record = self._scope(index) if like is None else (like.level, True)
        part = node
        for _ in range(level):
            part = document.nodes[part.parent] if part.parent >= 0 else part
        inside = self._inside(document, part)
        around = [each for each in inside if each != index and self._words[each][1]] if is_record else self._nearest(index, inside)
        toggles = tuple(each for each in element.states if each in _TOGGLES)
        words = Counter(self._words[each] for each in around)
        words = words if is_record else _numberless(words)
        return _Seen(self._words[index], toggles, element.value, tuple(self._path(index)), level, words, is_record)

    def _scope(self, index: int) -> tuple[int, bool]:
        """Return the level of the part whose words belong to an element, and whether it is a record: a row, dialog or the like.

        A record is also the largest part without an element of the same words, if such an element is as deep in the part beside it.
        Without one it is the smallest part with a text before the element.
        """
        document, node = self._nodes[index]
        like = [n for i, (d, n) in self._nodes.items() if i != index and d is document and self._words[i] == self._words[index]]
        at, level, first = node, 0, 0
        while not _is_record(at) and at.parent >= 0:
            above = document.nodes[at.parent]
            near = [each for each in like if above.index <= each.index < above.end]
            if any(_distance(document, each, above) == level + 1 for each in near):
                return level, True
            texts = [self._nodes[each][1].index for each in self._inside(document, above) if self._tells(each, index)]
            if near or above.name in _WIDE:
                return first or (level + 1 if min(texts, default=node.end) < node.end else 0), False
            at, level = above, level + 1
            if texts and _is_record(at):
                return level, True
            first = first or (level if min(texts, default=node.end) < node.end else 0)
            if at.name in _ENDS:
                return first, False
        return (0, True) if at is node else (first, False)

    def _nearest(self, index: int, inside: Iterable[int]) -> list[int]:
        """Return the text right before an element as a list of one; empty if there is none."""
        own = self._nodes[index][1]
        return [each for each in inside if self._tells(each, index) and self._nodes[each][1].index < own.end][-1:]

    def _tells(self, index: int, of: int) -> bool:
        """Return whether an element is a text that may belong to another one.

        It is no control, no part of an element that has a name, and in no record that the other one is not in.
        """
        (document, node), own, (role, name) = self._nodes[index], self._nodes[of][1], self._words[index]
        if not any(map(str.isalpha, name)) or role in CONTROLS or index == of:
            return False
        if own.index <= node.index < own.end:
            return not self._words[of][1]
        while not node.index <= own.index < node.end:
            if _is_record(node):
                return False
            node = document.nodes[node.parent]
        return True

    def _inside(self, document: Document, part: DomNode) -> Iterator[int]:
        order = self._order[id(document)]
        return (index for _, index in order[bisect_left(order, (part.index, 0)) : bisect_left(order, (part.end, 0))])

    def _path(self, index: int) -> Iterator[str]:
        depth = self.elements[index].depth
        for each in reversed(self.elements[:index]):
            if each.depth < depth:
                depth = each.depth
                yield each.role


def _is_record(node: DomNode) -> bool:
    return node.name in _RECORDS or node.attributes.get("role") in _RECORD_ROLES


def _distance(document: Document, node: DomNode, above: DomNode) -> int:
    """Return how many ancestors up another node is an ancestor of a node."""
    found = 0
    while node is not above:
        node, found = document.nodes[node.parent], found + 1
    return found


def _numberless(around: Counter[Words]) -> Counter[Words]:
    """Return words without their numbers."""
    return Counter({(role, _NUMBER.sub(PLACEHOLDER, name)): count for (role, name), count in around.items()})


def _named(role: str, name: str) -> str:
    return f"{role} {_quoted(name)}" if name else role


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= _MOST_NAMED else f"{text[:_MOST_NAMED]}...", ensure_ascii=False)
