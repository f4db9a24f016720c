"""Old names in recorded files, and the names that replaced them.

One table serves journals, results and the other JSON lines of a run. The reader of a journal consults it only where the journal's first
line has a schema below `RENAMED`, so a current journal pays nothing. A journal of an old schema that a current version resumed holds lines
of both kinds: every row therefore leaves current names as they are, and no old name may return with another meaning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

RENAMED = 6
"""First schema whose journals hold current names only."""


class Alias(NamedTuple):
    """A field that had another name, or other values, in recorded lines."""

    where: str
    """Tag of the event, or file name of the JSON lines."""
    field: str
    """Old name, as a dotted path from the line. `*` stands for each item of a list."""
    now: str = ""
    """Current name of the path's last part; empty where it is unchanged."""
    values: Mapping[str, str] = {}
    """Current values by old value."""


ROUTES = {"there": "reuse", "onward": "advance"}
FIDELITIES = {"world": "full"}
MISSING = {"world": "environment"}
ITERATIONS = {f"1 iterations{rest}": f"1 iteration{rest}" for rest in ("", ": the budget pays for no more")}
"""Reasons for the end of a search, which a resumed search must give again."""

ALIASES = (
    Alias("asked", "answer.contests", now="reevaluates"),
    Alias("asked", "answer.reason", values=ITERATIONS),
    Alias("told", "result.held", now="blocked"),
    Alias("told", "result.stepped.held", now="blocked"),
    Alias("arrived", "worlds", now="environments"),
    Alias("arrived", "verdict", now="match"),
    Alias("prepared", "verdict", now="match"),
    Alias("resumed", "mended", now="repaired"),
    Alias("arrived", "route", values=ROUTES),
    Alias("arrived", "failed.*", values=ROUTES),
    Alias("arrived", "diverged.stepped.held", now="blocked"),
    Alias("prepared", "route", values=ROUTES),
    Alias("kept", "fidelity", values=FIDELITIES),
    Alias("finished", "missing", values=MISSING),
    Alias("results.jsonl", "missing", values=MISSING),
    Alias("results.jsonl", "told", now="informed"),
    Alias("replays.jsonl", "missing", values=MISSING),
    Alias("replays.jsonl", "verdict", now="match"),
    Alias("attempts.jsonl", "missing", values=MISSING),
)
_BY_PLACE: dict[str, list[Alias]] = defaultdict(list)
for _alias in ALIASES:
    _BY_PLACE[_alias.where].append(_alias)


def current(line: bytes, where: str = "") -> bytes:
    """Return a JSON line with current names in place of old ones.

    `where` is the name of the file for files that are no journals. Raises msgspec.DecodeError where the line is no JSON.
    """
    if not where or where in _BY_PLACE:
        found = msgspec.json.decode(line)
        if isinstance(found, dict) and (rows := _BY_PLACE.get(where or str(found.get("event")))):
            for row in rows:
                _rename(found, row)
            return msgspec.json.encode(found)
    return line


def _rename(line: dict[str, Any], row: Alias) -> None:
    *above, last = row.field.split(".")
    for holder in _at(line, above):
        for key in _keys(holder, last):
            if isinstance(old := holder[key], str) and row.values:
                holder[key] = row.values.get(old, old)
            if row.now:
                holder[row.now] = holder.pop(key)


def _at(holder: Any, path: list[str]) -> Iterator[Any]:
    """Yield what lies at a dotted path; nothing where the path is absent."""
    if not path:
        yield holder
        return
    for key in _keys(holder, path[0]):
        yield from _at(holder[key], path[1:])


def _keys(holder: Any, part: str) -> list[Any]:
    """Return the keys of an object or the indices of a list that one part of a path names."""
    if isinstance(holder, list):
        return list(range(len(holder))) if part == "*" else []
    return [part] if isinstance(holder, dict) and part in holder else []
