"""What it costs to move environments, as far as it was measured. Pure: nothing here waits or looks at a clock."""

from __future__ import annotations

import os
from typing import Literal

Operation = Literal["open", "reset", "step", "snapshot", "restore", "fork"]
"""`open`: a fresh environment, up to the task's start. `fork`: a new environment from a snapshot. `restore`: the same in an open
environment."""

UNMEASURED: dict[Operation, float] = {"snapshot": 0.6, "restore": 0.6, "fork": 0.6}
"""Seconds that are assumed at least before the first measurement: a browser in a sandbox on two quiet cores. Others: 0."""
OF_OPENING: dict[Operation, float] = {"snapshot": 0.2, "restore": 0.3, "fork": 0.4}
"""The share of what opening a fresh environment took that is assumed for them, where that is more: where sandboxes are slow, all of it is.
As measured with Trac in a sandbox on a busy machine (6.9 s; 1.1, 1.9 and 2.5 s)."""
MEMORY = 20
"""Measurements after which an older one fades: load and pages change in the course of a run."""


class Mean:
    """A running mean of seconds and of processor seconds; the last MEMORY measurements weigh most."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = self.processor = 0.0

    def add(self, seconds: float, processor: float) -> None:
        """Take one measurement in; neither is negative."""
        self.count += 1
        weight = 1 / min(self.count, MEMORY)
        self.seconds += weight * (seconds - self.seconds)
        self.processor += weight * (processor - self.processor)


class Costs:
    """Means by operation, shared by all environments of one attempt."""

    def __init__(self, *, workers: int = 1, cores: int | None = None) -> None:
        """`workers`: how many environments may be moved at once, on so many `cores` (None: this machine's)."""
        self._crowd = workers / (cores or os.cpu_count() or 1)
        self._means: dict[Operation, Mean] = {}

    def note(self, operation: Operation, seconds: float, processor: float = 0.0) -> None:
        """An operation took so long, and so much of the processors; 0 where nobody knows."""
        self._means.setdefault(operation, Mean()).add(max(0.0, seconds), max(0.0, processor))

    def of(self, operation: Operation) -> float:
        """Seconds that an operation is expected to keep the search waiting.

        Its own time; or what its processor time comes to when every worker does the same on these cores, where that is more.
        """
        mean = self._means.get(operation)
        if mean is not None:
            return max(mean.seconds, mean.processor * self._crowd)
        if operation not in UNMEASURED:
            return 0.0
        return max(UNMEASURED[operation], OF_OPENING[operation] * self.of("open"))

    @property
    def back(self) -> float:
        """Of coming back to a snapshot, however that is done."""
        return min(self.of("restore"), self.of("fork"))

    def pays(self, returns: float, way: float) -> bool:
        """Whether a snapshot saves more than it costs.

        `returns`: how often the state is expected to be come back to; `way`: seconds of the best route to it without the snapshot.
        """
        return returns * (way - self.back) > self.of("snapshot")
