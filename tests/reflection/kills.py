"""Processes that write to one memory and are killed while they do."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

_WRITER = Path(__file__).with_name("writer.py")


@dataclass
class Writing:
    """One writer, over all its processes."""

    name: str
    stored: list[str] = field(default_factory=list)
    """Ids that it was told are stored, in order."""
    process: subprocess.Popen[str] | None = None
    ended: bool = False

    def run(self, where: str, writes: int) -> None:
        """Write from where the last process was cut off, with new processes until all is stored."""
        while len(self.stored) < writes:
            command = [sys.executable, str(_WRITER), where, self.name, str(len(self.stored)), str(writes)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
            assert self.process.stdout is not None
            with self.process.stdout as out:
                self.stored += [line.strip() for line in out if line.endswith("\n")]
            if self.process.wait() not in (0, -9):
                break
        self.ended = True


def storm(where: str, *, writers: int, writes: int, every: float, seed: int = 0) -> tuple[list[str], int]:
    """Let so many writers store so many reflections each, one of them killed with SIGKILL every so many seconds.

    The ids that were acknowledged, and how many processes were killed.
    """
    rng, kills = random.Random(seed), 0
    working = [Writing(f"w{number}") for number in range(writers)]
    threads = [threading.Thread(target=each.run, args=(where, writes)) for each in working]
    for thread in threads:
        thread.start()
    beat = threading.Event()
    while not all(each.ended for each in working):
        beat.wait(every)
        alive = [each for each in working if each.stored and not each.ended and each.process is not None and each.process.poll() is None]
        if alive:
            victim = rng.choice(alive).process
            assert victim is not None
            victim.kill()
            kills += 1
    for thread in threads:
        thread.join()
    return [id for each in working for id in each.stored], kills
