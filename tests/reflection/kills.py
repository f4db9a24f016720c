"""Processes that write to one memory and are killed while they do."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Collection
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
    kills: int = 0
    ended: bool = False

    def run(self, where: str, writes: int, fatal: Collection[int]) -> None:
        """Write from where the last process was cut off, with new processes until all is stored."""
        while len(self.stored) < writes:
            command = [sys.executable, str(_WRITER), where, self.name, str(len(self.stored)), str(writes)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
            assert self.process.stdout is not None
            with self.process.stdout as out:
                for line in out:
                    if line.endswith("\n"):
                        self.stored.append(line.strip())
                        if len(self.stored) in fatal:
                            self.kill()
            if self.process.wait() not in (0, -9):
                break
        self.ended = True

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.kills += 1


def storm(
    where: str, *, writers: int, writes: int, every: float | None = None, fatal: Collection[int] = (), seed: int = 0
) -> tuple[list[str], int]:
    """Let so many writers store so many reflections each, and kill them with SIGKILL.

    `every`: one of them every so many seconds. `fatal`: each of them where it is told of its so-manieth. The ids that were acknowledged,
    and how many processes were killed.
    """
    rng, beat = random.Random(seed), threading.Event()
    working = [Writing(f"w{number}") for number in range(writers)]
    threads = [threading.Thread(target=each.run, args=(where, writes, fatal)) for each in working]
    for thread in threads:
        thread.start()
    while every is not None and not all(each.ended for each in working):
        beat.wait(every)
        if alive := [each for each in working if each.stored and not each.ended]:
            rng.choice(alive).kill()
    for thread in threads:
        thread.join()
    return [id for each in working for id in each.stored], sum(each.kills for each in working)
