"""What elements were called in the states that were seen: equal actions mean the same in equal states, whatever led there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from exact.observation import Element

STATES = 4096
"""Of all tasks; the one that was not seen for longest is forgotten first."""


class Names:
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
