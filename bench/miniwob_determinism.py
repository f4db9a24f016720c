"""Count the MiniWoB++ tasks that repeat: equal seeds and equal actions lead to equal states.

Each of BrowserGym's 125 tasks is run in pairs of episodes side by side, from the same seed and with the same clicks, fills and drags,
which the seed draws. The figures count the tasks whose pairs all began with the same fingerprint, those whose pairs also kept it, and
those in which every element was in the same place too, which fingerprints leave out.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from _common import Figure, Noise, finish, parser, versions

from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.suite import BROWSERGYM
from exact.config import BrowserConfig
from exact.environments.base import Environment
from exact.errors import ActionError
from exact.observation import Element
from exact.task import Task

STEPS = 4


State = tuple[str, tuple[Element, ...]]
"""Fingerprint, and the elements with their boxes."""
REFUSED: State = ("refused", ())
END: State = ("end", ())


async def episode(environment: Environment, task: Task) -> list[State]:
    """Return the states of a random episode."""
    draw = random.Random(task.id)
    seen = await environment.reset(task)
    states: list[State] = [(seen.fingerprint, seen.elements)]
    for _ in range(STEPS):
        elements = [e for e in seen.elements if e.visible and e.box and e.box.width] or list(seen.elements)
        try:
            transition = await environment.step(environment.actions.parse(action(elements, draw)))
        except ActionError:
            states.append(REFUSED)
            continue
        if transition.observation is None:
            return [*states, END]
        seen = transition.observation
        states.append((seen.fingerprint, seen.elements))
    return states


def action(elements: list[Element], draw: random.Random) -> str:
    """Return a random action: a drag in one of four, else a fill of a field or a click."""
    element = draw.choice(elements)
    if draw.random() < 0.25:
        return f"drag [{element.id}] to [{draw.choice(elements).id}]"
    return f'fill [{element.id}] "{draw.randint(0, 9)}"' if element.role in ("textbox", "spinbutton") else f"click [{element.id}]"


def parting(one: list[State], two: list[State], part: slice) -> int | None:
    """Index of the first state whose `part` differs; None if there is none."""
    for at in range(max(len(one), len(two))):
        if [state[part] for state in one[at : at + 1]] != [state[part] for state in two[at : at + 1]]:
            return at
    return None


async def measure(seeds: range, noise: Noise) -> dict[str, dict[str, int]]:
    """Return the tasks in which a pair of episodes differed, by fingerprint and by position, with the first such index."""
    parted: dict[str, dict[str, int]] = {"fingerprint": {}, "places": {}}
    suite = MiniWob()
    async with (
        suite.environments(BrowserConfig(screenshots=False)) as environments,
        environments.open(simulation=False) as left,
        environments.open(simulation=False) as right,
    ):
        for name in BROWSERGYM:
            noise.probe()
            for seed in seeds:
                task = suite.task(f"miniwob/{name}?seed={seed}")
                one, two = await asyncio.gather(episode(left, task), episode(right, task))
                for kind, part in (("fingerprint", slice(0, 1)), ("places", slice(0, 2))):
                    at = parting(one, two, part)
                    if at is not None:
                        parted[kind][name] = min(at, parted[kind].get(name, at))
                        print(f"{task.id}: {kind} of state {at}", flush=True)
    return parted


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    noise = Noise()
    parted = asyncio.run(measure(range(1, 2 if options.quick else 4), noise))
    details: dict[str, Any] = {"first_state_that_differs": parted, "steps": STEPS}
    total = len(BROWSERGYM)
    figures = [
        Figure("same_after_reset", total - sum(at == 0 for at in parted["fingerprint"].values()), total),
        Figure("same_after_steps", total - len(parted["fingerprint"])),
        Figure("same_places_after_steps", total - len(parted["places"])),
    ]
    finish(options, figures, noise, versions("exact-agent", "playwright", "miniwob"), details)


if __name__ == "__main__":
    main()
