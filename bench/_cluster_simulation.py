"""A simulated benchmark on many processes: durations as measured, failures, rate limits, and the one process that writes the folder."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What a benchmark runs on. Times are in seconds."""

    workers: int
    durations: Sequence[float]
    """Durations of attempts, as measured; those of the simulation are drawn from them."""
    start: float = 0.0
    """Before the first attempt of each process: it starts, with its browser."""
    together: int | None = None
    """Processes that start at the same time, as many as one machine has processors; None: all, each on a machine of its own."""
    gap: float = 0.0
    """Between two attempts of a process."""
    driver: float = 0.0
    """Work of the process that writes the folder, for each attempt. Attempts queue for it."""
    failure: float = 0.0
    """Probability that an attempt is lost half-way, at a random moment. It is run again, from where its journal ended."""
    calls: int = 0
    """Model calls of an attempt, evenly over its duration."""
    calls_per_minute: float | None = None
    """What the provider allows all attempts together."""


def makespan(cluster: Cluster, tasks: int, seed: int = 0) -> float:
    """Return the seconds in which all tasks end."""
    return max(ends(cluster, tasks, seed))


def ends(cluster: Cluster, tasks: int, seed: int = 0) -> list[float]:
    """Return when each attempt ended that was not lost, in order.

    A process takes the next task when it is free. Calls beyond the rate delay the attempts that make them. The driver serves attempts one
    after the other.
    """
    rng = random.Random(seed)
    together = cluster.together or cluster.workers
    free = [cluster.start * (1 + worker // together) for worker in range(min(cluster.workers, tasks))]
    heapq.heapify(free)
    served = rate = 0.0
    found = list[float]()
    waiting = deque(rng.choice(cluster.durations) for _ in range(tasks))
    while waiting:
        begun, work = heapq.heappop(free), waiting.popleft()
        begun = served = max(begun, served) + cluster.driver
        lost = rng.random() < cluster.failure
        share = rng.random() if lost else 1.0
        done = begun + work * share
        if cluster.calls and cluster.calls_per_minute:
            rate = max(rate, begun) + cluster.calls * share * 60.0 / cluster.calls_per_minute
            done = max(done, rate)
        if lost:
            waiting.append(work * (1.0 - share))
        else:
            found.append(done)
        heapq.heappush(free, done + cluster.gap)
    return sorted(found)


def largest_useful(cluster: Cluster, tasks: int, sizes: Sequence[int]) -> tuple[int, dict[int, float]]:
    """Return the largest number of processes to which doubling still gained a factor of 1.5, and the makespans by number."""
    found = {size: makespan(replace(cluster, workers=size), tasks) for size in sizes}
    useful = sizes[0]
    for smaller, larger in itertools.pairwise(sizes):
        if found[smaller] / found[larger] < 1.5:
            break
        useful = larger
    return useful, found
