"""What peers counted, from a file in this folder; with `--parity-live`, from the peer itself, which must count what the file says."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.search.parity.trees import Counts

HOW = "shells/test.sh --parity-live --parity-record"
Found = dict[str, Counts]
"""What a peer counted in each tree, by the tree's name. `Counts.action` is what it chose, where it chooses."""
Peer = Callable[..., Found]


@contextmanager
def peer(config: pytest.Config, name: str, packages: tuple[str, ...], digits: int) -> Iterator[Peer]:
    """`peer(search, *arguments)`: what the function `search` of `peer_NAME.py` finds, which NAME.json has. Q has so many `digits`."""
    file = Path(__file__).with_name(f"{name}.json")
    record = config.getoption("parity_record")
    live = record or config.getoption("parity_live")
    searches = {} if record else json.loads(file.read_text())["searches"]
    engine = import_module(f"tests.search.parity.peer_{name}") if live else None

    def find(search: str, *arguments: Any) -> Found:
        key = " ".join(map(str, (search, *arguments)))
        assert record or key in searches, f"{file.name} lacks {key!r}: {HOW}"
        if engine is None:
            return {tree: _read(counts) for tree, counts in searches[key].items()}
        found: Found = getattr(engine, search)(*arguments)
        if record:
            searches[key] = {tree: _written(counts, digits) for tree, counts in found.items()}
            return found
        kept = {tree: _read(counts) for tree, counts in searches[key].items()}
        assert {tree: (counts.visits, counts.action) for tree, counts in kept.items()} == {
            tree: (counts.visits, counts.action) for tree, counts in found.items()
        }, f"{name} counts otherwise than {file.name}: {HOW}"
        return found

    yield find
    if record:
        versions = {"python": platform.python_version(), **{package: version(package) for package in packages}}
        head = f'"recorded_by": {json.dumps(HOW)},\n"versions": {json.dumps(versions)},\n'
        lines = (f"{json.dumps(key)}: {json.dumps(found, separators=(',', ':'))}" for key, found in searches.items())
        file.write_text("{\n" + head + '"searches": {\n' + ",\n".join(lines) + "\n}\n}\n")


def _written(counts: Counts, digits: int) -> dict[str, list[Any]]:
    """Visits and Q by path: `"0.1": [3, 0.25]`. The root has no Q but, where one was chosen, the action."""
    written: dict[str, list[Any]] = {".".join(map(str, path)): [visits] for path, visits in counts.visits.items()}
    for path, q in counts.q.items():
        written[".".join(map(str, path))].append(round(q, digits))
    if counts.action is not None:
        written[""].append(counts.action)
    return written


def _read(written: dict[str, list[Any]]) -> Counts:
    counts = Counts()
    for text, (visits, *more) in written.items():
        path = tuple(map(int, text.split("."))) if text else ()
        counts.visits[path] = visits
        if path:
            (counts.q[path],) = more
        elif more:
            (counts.action,) = more
    return counts
