"""A benchmark over toy worlds as a process that can be killed: `python killed.py FOLDER`."""

import asyncio
import sys
from pathlib import Path

from exact.environments.toy import ToyWorlds
from exact.evaluation.folder import BenchFolder
from tests.evaluation.toys import WORLD, run, settings, toy_bench

AGENTS = (settings("react", "react"), settings("mcts"), settings("promoting", enact="promote"))


async def slowly(path: Path) -> None:
    async def latency() -> None:
        await asyncio.sleep(0.004)

    folder = BenchFolder(path) if (path / "bench.json").exists() else toy_bench(path, *AGENTS, seeds=4)
    await run(folder, ToyWorlds(WORLD, latency=latency))


if __name__ == "__main__":
    asyncio.run(slowly(Path(sys.argv[1])))
