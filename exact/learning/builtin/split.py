"""The split of tasks and seeds that the learned agent is trained and measured by.

It was fixed before any training. A training task is one of BrowserGym's MiniWoB++ tasks whose name's SHA-256 begins with an even digit; the
tasks of the other half are held out. Tasks in which termination itself shows success, or which do not repeat with their seed, are in
neither. Training, validation and test have separate seeds.
"""

from __future__ import annotations

import functools
import hashlib
from importlib import resources

import msgspec

from exact.errors import UsageError


class Seeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A range of seeds."""

    first: int
    count: int

    def __contains__(self, seed: int) -> bool:
        return self.first <= seed < self.first + self.count

    def take(self, count: int, skip: int = 0) -> range:
        """Return `count` seeds after the first `skip`. Raises UsageError if there are not so many."""
        if skip + count > self.count:
            raise UsageError(f"{skip + count} seeds are more than the split has ({self.count}): ask for fewer rounds or seeds")
        return range(self.first + skip, self.first + skip + count)


class Split(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks and seeds of training, validation and test."""

    training: tuple[str, ...]
    """Tasks to train on."""
    held_out: tuple[str, ...]
    """Tasks for the test alone."""
    transfer: tuple[str, ...]
    """Tasks on other applications, for the test alone."""
    seeds: dict[str, Seeds]
    """Seeds of `training`, `validation` and `test`."""
    sha256: dict[str, str]
    """Hash of each part's ids, one a line."""

    def ids(self, part: str) -> tuple[str, ...]:
        """Return the ids of a part: training, validation, test_seen, test_held_out or transfer."""
        if part == "transfer":
            return self.transfer
        tasks = self.held_out if part == "test_held_out" else self.training
        seeds = self.seeds["test" if part.startswith("test") else part]
        return tuple(f"{task}?seed={seed}" for task in tasks for seed in seeds.take(seeds.count))

    def check_training(self, id: str) -> None:
        """Raise UsageError unless a task, with its seed, is one to train on."""
        name, _, seed = id.partition("?seed=")
        if name not in self.training or not seed.isdigit() or int(seed) not in self.seeds["training"]:
            allowed = self.seeds["training"]
            raise UsageError(
                f"{id} is no training task: rewards are read on training tasks with seeds {allowed.first} to "
                f"{allowed.first + allowed.count - 1} alone (exact/learning/builtin/split.json lists them)"
            )


@functools.cache
def load_split() -> Split:
    """Return the split of this package."""
    return msgspec.json.decode(resources.files(__package__).joinpath("split.json").read_bytes(), type=Split)


def digest(ids: tuple[str, ...]) -> str:
    """Return the SHA-256 of ids, one a line."""
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()
