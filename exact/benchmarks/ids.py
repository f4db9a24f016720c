"""Task ids (`suite/name?seed=3`) and patterns of them (`suite/click-*?seed=1..3`)."""

from __future__ import annotations

import re

from exact.errors import UsageError

MOST_SEEDS = 10_000
"""Largest number of seeds that one pattern may name."""
LONGEST = 1_000
"""Maximum characters of an id or a pattern."""
_SEED = r"[0-9]{1,15}"
_SEEDS = re.compile(rf"seed=({_SEED}(?:\.\.{_SEED})?(?:,{_SEED}(?:\.\.{_SEED})?)*)")


def split(id: str) -> tuple[str, int]:
    """Return an id without its seed, and the seed (0 if absent). Raises UsageError if the id names several."""
    name, seeds = split_pattern(id)
    if len(seeds) != 1:
        raise UsageError(f"{id!r} names {len(seeds)} seeds, but one is needed: write {name}?seed={seeds[0]}")
    return name, seeds[0]


def split_pattern(pattern: str) -> tuple[str, list[int]]:
    """Return a pattern without its seeds, and the seeds in the order written (`[0]` if absent). Raises UsageError."""
    if len(pattern) > LONGEST:
        raise UsageError(f"the task id {pattern[:40]!r}... has {len(pattern)} characters: write at most {LONGEST}")
    name, has_query, query = pattern.partition("?")
    if not has_query:
        return name, [0]
    match = _SEEDS.fullmatch(query)
    if not match:
        raise UsageError(f"invalid seeds {query!r} in {pattern!r}: write ?seed=3, ?seed=1..3 or ?seed=1,4")
    seeds: dict[int, None] = {}
    for part in match[1].split(","):
        first, _, last = part.partition("..")
        span = range(int(first), int(last or first) + 1)
        if not span or len(span) + len(seeds) > MOST_SEEDS:
            raise UsageError(f"{part!r} in {pattern!r} names {len(span)} seeds: write 1 to {MOST_SEEDS}, smallest first")
        seeds.update(dict.fromkeys(span))
    return name, list(seeds)


def join(name: str, seed: int) -> str:
    """Return the canonical id of a task name and a seed."""
    return f"{name}?seed={seed}"
