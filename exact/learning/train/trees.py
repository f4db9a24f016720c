"""Episodes of one start that share first steps, as a tree, and what each step of such a tree was worth."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from exact.learning.train.episodes import Episode, EpisodePool, EpisodeStart, EpisodeStep, Sample

_LEAST = 1e-4
"""Added to a deviation, as TRL does."""


async def play_trees(
    pool: EpisodePool, starts: Sequence[EpisodeStart], sample: Sample, *, size: int, branches: int, chance: random.Random
) -> list[Episode]:
    """Return one episode for each start, in order. Raises as `EpisodePool.play`.

    Each `size` starts are equal, and make one tree. Its first episodes begin at the start; `branches` of them begin at a state inside of
    those, each drawn by `chance` among the states after a first step. Where there is none, they begin at the start too.
    """
    trunk = size - branches
    groups = [list(starts[at : at + size]) for at in range(0, len(starts), size)]
    whole = await pool.play([start for group in groups for start in group[:trunk]], sample)
    trunks = [whole[at : at + trunk] for at in range(0, len(whole), trunk)]
    begun = [_branch(tree, chance) for tree in trunks for _ in range(branches)]
    grown = await pool.finish(begun, sample)
    return [each for number, tree in enumerate(trunks) for each in (*tree, *grown[number * branches : (number + 1) * branches])]


def _branch(tree: Sequence[Episode], chance: random.Random) -> Episode:
    inner = [(episode, at) for episode in tree for at in range(1, len(episode.steps))]
    if not inner:
        return Episode(tree[0].start)
    episode, at = chance.choice(inner)
    return episode.branch(at)


def step_values(tree: Sequence[Episode], returns: Sequence[float]) -> dict[EpisodeStep, float]:
    """Return the value of the state after each step, less that of the state before it.

    The value of a state is the mean over the steps that were drawn there; that of an end is the episode's return. The differences of an
    episode add up to its return less the value of the start.
    """
    differences = dict[EpisodeStep, float]()

    def value(rows: Sequence[int], depth: int) -> float:
        drawn = dict[EpisodeStep, list[int]]()
        for row in rows:
            if len(tree[row].steps) == depth:
                return returns[row]
            drawn.setdefault(tree[row].steps[depth], []).append(row)
        after = {step: value(below, depth + 1) for step, below in drawn.items()}
        here = fmean(after.values())
        differences.update({step: each - here for step, each in after.items()})
        return here

    value(range(len(tree)), 0)
    return differences


def token_credits(episodes: Sequence[Episode], returns: Sequence[float], size: int) -> list[list[float]]:
    """Return the advantage of each token of each row, where each `size` episodes are one tree; 0 for the environment's tokens.

    It is the step's value difference, divided by the deviation of the tree's returns and by the number of rows that share the step, so
    that a step counts once.
    """
    return [row for at in range(0, len(episodes), size) for row in _credits(episodes[at : at + size], returns[at : at + size])]


def _credits(tree: Sequence[Episode], returns: Sequence[float]) -> Iterator[list[float]]:
    values, scale = step_values(tree, returns), stdev(returns) + _LEAST
    shared = dict[EpisodeStep, int]()
    for episode in tree:
        for step in episode.steps:
            shared[step] = shared.get(step, 0) + 1
    for episode in tree:
        row = [0.0] * len(episode.completion_ids)
        for step in episode.steps:
            row[step.begins : step.ends] = [values[step] / scale / shared[step]] * (step.ends - step.begins)
        yield row
