"""Measured costs of moving environments. Pure: nothing here waits or reads a clock."""

from __future__ import annotations

import os
from typing import Literal

Operation = Literal["open", "reset", "step", "snapshot", "restore", "fork"]
"""`open`: a fresh environment, up to the task's start. `fork`: a new environment from a snapshot. `restore`: the same in an open
environment."""

UNMEASURED: dict[Operation, float] = {"snapshot": 0.6, "restore": 0.6, "fork": 0.6}
"""Least seconds assumed before the first measurement: a browser in a sandbox on two idle cores. Others: 0, or their share below."""
OF_OPENING: dict[Operation, float] = {"snapshot": 0.2, "restore": 0.3, "fork": 0.4, "reset": 0.3}
"""Share of the measured time to open an environment that is assumed for an operation, if it is more: if sandboxes are slow, all of their
operations are. Measured with Trac in a sandbox on a busy machine (open 6.9 s; snapshot 1.1, restore 1.9 and fork 2.5 s)."""
MEMORY = 20
"""Measurements after which older ones fade: load and pages change in the course of a run."""


class Mean:
    """A running mean of seconds and of CPU seconds, in which the last MEMORY measurements weigh most."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = self.processor = 0.0

    def add(self, seconds: float, processor: float) -> None:
        """Add one measurement. Neither value is negative."""
        self.count += 1
        weight = 1 / min(self.count, MEMORY)
        self.seconds += weight * (seconds - self.seconds)
        self.processor += weight * (processor - self.processor)


FADING = 0.8
"""Share of a return's measured excess over the assumption that is left after each reset."""


class Costs:
    """Running means by operation, shared by all environments of one attempt."""

    def __init__(self, *, workers: int = 1, cores: int | None = None) -> None:
        """Create costs without measurements.

        `workers`: environments that may be moved at once. `cores`: CPU cores they share; None means those of this machine.
        """
        self._crowd = workers / (cores or os.cpu_count() or 1)
        self._means: dict[Operation, Mean] = {}
        self._resets = 0
        self._resets_before: dict[Operation, int] = {}
        """Number of resets and openings before the last measurement of each operation."""

    def add(self, operation: Operation, seconds: float, processor: float = 0.0) -> None:
        """Add a measurement. `processor`: CPU seconds, 0 if unknown."""
        self._means.setdefault(operation, Mean()).add(max(0.0, seconds), max(0.0, processor))
        self._resets += operation in ("reset", "open")
        self._resets_before[operation] = self._resets

    def of(self, operation: Operation) -> float:
        """Return the seconds that an operation is expected to keep the search waiting.

        That is its own duration, or, if it is more, its CPU time when every worker does the same on these cores. Measurements of a return
        or a snapshot that are above the assumption fade towards it with each reset since: one slow return on a busy machine does not
        justify replays for the rest of an attempt. Several fade more slowly than one.
        """
        mean = self._means.get(operation)
        if mean is None:
            return self._assumed(operation)
        measured = max(mean.seconds, mean.processor * self._crowd)
        if operation not in UNMEASURED or measured <= (assumed := self._assumed(operation)):
            return measured
        resets = self._resets - self._resets_before[operation]
        left: float = FADING ** (resets / min(mean.count, MEMORY))
        return assumed + (measured - assumed) * left

    def _assumed(self, operation: Operation) -> float:
        """Return the seconds that are assumed before the first measurement."""
        if operation == "open" and (reset := self._means.get("reset")):
            return reset.seconds  # of the live environment: whoever is opened is reset as well
        return max(UNMEASURED.get(operation, 0.0), OF_OPENING[operation] * self.of("open")) if operation in OF_OPENING else 0.0

    @property
    def back(self) -> float:
        """Expected seconds of returning to a snapshot, by the cheaper of restore and fork."""
        return min(self.of("restore"), self.of("fork"))

    def pays(self, returns: float, way: float) -> bool:
        """Return whether a snapshot saves more time than it costs.

        `returns`: expected number of returns to the state. `way`: seconds of the best route to it without the snapshot.
        """
        return self.saved(returns, way) > 0

    def saved(self, returns: float, way: float) -> float:
        """Return the seconds that a snapshot is expected to save, less those that it costs; see `pays`."""
        return returns * (way - self.back) - self.of("snapshot")
