"""Training examples: states of explored tasks, with the visits and outcomes that the search found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from exact.agents.learned.features import ACTION_NUMBERS, RAGGED, STATE_NUMBERS, Ragged, StateFeatures, join
from exact.agents.learned.network import UNREADABLE, lengths, numbers, read_arrays
from exact.agents.learned.tokens import CROSSES, TOKENS
from exact.errors import UsageError
from exact.learning.builtin.explore import ExploredTask, StateNode, solution
from exact.untrusted import decoded, read_bounded

if TYPE_CHECKING:
    from exact.agents.learned.features import Floats, Ints

MOST_CANDIDATES = 48
"""Candidates of a state that are kept: those that were tried, then the likeliest."""
_ARRAYS = ("numbers", "lexical", "state", "value", "first")
_OF_CANDIDATES: dict[str, tuple[int, ...]] = {
    "visits": (), "ended": (), "ended_lexical": (), "features.lexical": (), "features.numbers": (ACTION_NUMBERS,),
}  # fmt: skip
_OF_STATES: dict[str, tuple[int, ...]] = {"outcome": (), "weight": (), "features.value": (), "features.state": (STATE_NUMBERS,)}
"""Arrays with a row for each candidate, and for each state, and the further axes of each."""
_LARGEST, _MOST_UNPACKED = 64 << 20, 1 << 30
"""Most bytes of a file of examples, and of its arrays. One state takes about 20 kB unpacked."""


class Examples(NamedTuple):
    """States with their known visits, returns and ends."""

    features: StateFeatures
    visits: Floats
    """[candidates]: share of the visits that the policy learns. All 0 in a state without a success."""
    outcome: Floats
    """[states]: return that the value learns, in [0, 1]."""
    weight: Floats
    """[states]: weight of the outcome, in (0, 1]."""
    ended: Floats
    """[candidates]: 1 or 0 if the candidate ended the episode with or without success; -1 elsewhere."""
    ended_lexical: Floats
    """[candidates]: value that the lexical agent gives that end."""
    task: Ints
    """[states]: index of the state's task in `tasks`."""
    tasks: tuple[str, ...]
    """Ids, with their seeds."""


def examples_of(explored: ExploredTask) -> Examples | None:
    """Return the examples of one explored task. None if there are none, or its outcomes contradict each other."""
    nodes = [node for node in explored.nodes if node.visits]
    if explored.contradicted or not nodes:
        return None
    return _joined([_example(node, explored.task) for node in nodes])


def joined(parts: Sequence[Examples]) -> Examples:
    """Return the examples of many tasks as one."""
    return _joined(parts)


def _joined(parts: Sequence[Examples]) -> Examples:
    tasks = tuple(dict.fromkeys(task for part in parts for task in part.tasks))
    index = {task: at for at, task in enumerate(tasks)}
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("visits", "outcome", "weight", "ended", "ended_lexical")
    }
    task = np.concatenate([np.array([index[part.tasks[at]] for at in part.task], np.int32) for part in parts])
    return Examples(features=join([part.features for part in parts]), task=task, tasks=tasks, **arrays)


def _example(node: StateNode, task: str) -> Examples:
    tried = [at for at, edge in node.edges.items() if edge.visits]
    likely = node.read.output.priors.argsort(kind="stable")[::-1].tolist()
    kept = sorted(dict.fromkeys([*tried, *likely][:MOST_CANDIDATES]))
    good = solution(node)
    edges = [node.edges.get(at) for at in kept]
    return Examples(
        picked(node.read.features, kept),
        np.array([good.get(at, 0.0) for at in kept], np.float32),
        np.array([(node.total / node.visits + node.best) / 2], np.float32),
        np.array([min(node.visits / 4, 1.0)], np.float32),
        np.array([-1.0 if edge is None or edge.ended is None else float(edge.ended > 0) for edge in edges], np.float32),
        np.array([edge.lexical if edge else 0.5 for edge in edges], np.float32),
        np.zeros(1, np.int32),
        (task,),
    )


def picked(features: StateFeatures, kept: Sequence[int]) -> StateFeatures:
    """Return one state's features with only some of its candidates."""

    def lists(of: Ragged) -> Ragged:
        sizes = lengths(of)
        rows = np.concatenate([of.rows[of.starts[at] : of.starts[at] + sizes[at]] for at in kept])
        return Ragged(rows, np.cumsum([0, *(sizes[at] for at in kept[:-1])]).astype(np.int32))

    at = np.array(kept)
    return features._replace(
        bag=lists(features.bag), label=lists(features.label), near=lists(features.near), cross=lists(features.cross),
        numbers=features.numbers[at], lexical=features.lexical[at],
    )  # fmt: skip


def states_of(examples: Examples, kept: Sequence[int]) -> Examples:
    """Return some states of the examples, in the given order."""
    bounds = [*examples.features.first.tolist(), len(examples.visits)]
    parts = []
    for at in kept:
        first, last = bounds[at], bounds[at + 1]
        part = slice(first, last)
        given = examples.features
        lists = {name: _cut(getattr(given, name), first, last) for name in ("bag", "label", "near", "cross")}
        features = StateFeatures(
            said=_cut(given.said, at, at + 1), **lists, numbers=given.numbers[part], lexical=given.lexical[part],
            state=given.state[at : at + 1], value=given.value[at : at + 1], first=np.zeros(1, np.int32),
        )  # fmt: skip
        parts.append((features, at, part))
    states = np.array([at for _, at, _ in parts])
    rows = np.concatenate([np.arange(part.start, part.stop) for _, _, part in parts])
    return Examples(
        join([features for features, _, _ in parts]), examples.visits[rows], examples.outcome[states], examples.weight[states],
        examples.ended[rows], examples.ended_lexical[rows], examples.task[states], examples.tasks,
    )  # fmt: skip


def _cut(of: Ragged, first: int, last: int) -> Ragged:
    """Return the lists from `first` to before `last`."""
    start = int(of.starts[first])
    end = int(of.starts[last]) if last < len(of.starts) else len(of.rows)
    return Ragged(of.rows[start:end], of.starts[first:last] - start)


def write(examples: Examples, path: Path) -> None:
    """Write examples as a compressed npz."""
    held: dict[str, Any] = {name: getattr(examples, name) for name in ("visits", "outcome", "weight", "ended", "ended_lexical", "task")}
    held |= {f"features.{name}": getattr(examples.features, name) for name in _ARRAYS}
    for name in RAGGED:
        held |= {f"features.{name}.{part}": getattr(getattr(examples.features, name), part) for part in ("rows", "starts")}
    held["tasks"] = np.frombuffer(json.dumps(examples.tasks).encode(), np.uint8)
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez_compressed(file, **held)
    part.rename(path)


def read(path: Path) -> Examples:
    """Read examples that `write` wrote. Raises UsageError for anything else."""
    lists = [f"features.{name}.{part}" for name in RAGGED for part in ("rows", "starts")]
    names = [*_OF_CANDIDATES, *_OF_STATES, "task", "features.first", "tasks", *lists]
    try:
        return _checked(read_arrays(read_bounded(path, _LARGEST), names, _MOST_UNPACKED))
    except UNREADABLE as error:
        raise UsageError(f"the examples {path} do not read: {' '.join(str(error).split())}: remove the file, and train again") from error


def _checked(held: Mapping[str, Any]) -> Examples:
    """Return the examples in arrays. Raises ValueError if one does not fit the others."""
    candidates, states, tasks = held["visits"].size, held["outcome"].size, decoded(held["tasks"].tobytes(), tuple[str, ...])
    arrays = {name: numbers(held[name], np.float32, (candidates, *more)) for name, more in _OF_CANDIDATES.items()}
    arrays |= {name: numbers(held[name], np.float32, (states, *more)) for name, more in _OF_STATES.items()}
    parts: dict[str, Any] = {name.removeprefix("features."): arrays.pop(name) for name in list(arrays) if name.startswith("features.")}
    parts["first"] = _beginnings(held["features.first"], states, candidates)
    for name in RAGGED:
        rows = _below(held[f"features.{name}.rows"], CROSSES if name == "cross" else TOKENS)
        starts = _beginnings(held[f"features.{name}.starts"], states if name == "said" else candidates, len(rows))
        parts[name] = Ragged(rows, starts)
    task = numbers(_below(held["task"], len(tasks)), np.int32, (states,))
    return Examples(features=StateFeatures(**parts), task=task, tasks=tasks, **arrays)


def _below(found: Any, most: int) -> Ints:
    """Return indices. Raises ValueError if one is negative, or not below `most`."""
    array = numbers(found, np.int32, (None,))
    if len(array) and not (array.min() >= 0 and array.max() < most):
        raise ValueError(f"an index that is not in [0, {most})")
    return array


def _beginnings(found: Any, count: int, end: int) -> Ints:
    """Return the positions at which lists begin. No list is empty. Raises ValueError if they are not `count`, or do not end at `end`."""
    array = numbers(found, np.int32, (count,))
    if not count or array[0] != 0 or (np.diff([*array, end]) <= 0).any():
        raise ValueError("lists that do not follow one another")
    return array
