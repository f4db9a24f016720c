"""Which MiniWoB++ tasks come out the same twice: equal seeds, equal actions, equal fingerprints?

Each of BrowserGym's 125 tasks is run in pairs of episodes side by side from the same seed, with the same actions drawn by the seed. `reset` counts
tasks whose first states differ in some pair; `step` those that start the same and part later.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from _common import Figure, Noise, finish, parser, versions

from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.names import BROWSERGYM
from exact.config import BrowserConfig
from exact.environments.base import Environment
from exact.errors import ActionError
from exact.task import Task

STEPS = 4


async def episode(world: Environment, task: Task) -> list[str]:
    """Fingerprints of a random episode, `end` where it terminated. Refused actions are part of it."""
    draw = random.Random(task.id)
    seen = await world.reset(task)
    prints = [seen.fingerprint]
    for _ in range(STEPS):
        elements = [e for e in seen.elements if e.visible and e.box and e.box.width] or list(seen.elements)
        element = draw.choice(elements)
        text = f'fill [{element.id}] "{draw.randint(0, 9)}"' if element.role in ("textbox", "spinbutton") else f"click [{element.id}]"
        try:
            transition = await world.step(world.actions.parse(text))
        except ActionError:
            prints.append("refused")
            continue
        if transition.observation is None:
            return [*prints, "end"]
        seen = transition.observation
        prints.append(seen.fingerprint)
    return prints


async def measure(seeds: range, noise: Noise) -> dict[str, str]:
    """Task to where its episodes first parted; the others are left out."""
    parted: dict[str, str] = {}
    suite = MiniWob()
    async with (
        suite.worlds(BrowserConfig(screenshots=False)) as worlds,
        worlds.open(speculative=False) as left,
        worlds.open(speculative=False) as right,
    ):
        for name in BROWSERGYM:
            noise.probe()
            for seed in seeds:
                task = suite.task(f"miniwob/{name}?seed={seed}")
                one, two = await asyncio.gather(episode(left, task), episode(right, task))
                if one != two:
                    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
                    parted.setdefault(name, f"step {at}" if at else "reset")
                    print(f"{task.id}: {'after step ' + str(at) if at else 'at reset'}", flush=True)
    return parted


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    noise = Noise()
    parted = asyncio.run(measure(range(1, 2 if options.quick else 4), noise))
    resets = [name for name, where in parted.items() if where == "reset"]
    details: dict[str, Any] = {"parted": parted, "steps": STEPS}
    figures = [
        Figure("same_after_reset", len(BROWSERGYM) - len(resets), len(BROWSERGYM)),
        Figure("same_after_steps", len(BROWSERGYM) - len(parted)),
    ]
    finish(options, figures, noise, versions("exact-agent", "playwright", "miniwob"), details)


if __name__ == "__main__":
    main()
