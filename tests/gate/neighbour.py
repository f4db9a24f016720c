"""The neighbours of a heavy page: environments of the same browser, one that is there already and new ones."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass

from exact.environments.base import Environment, EnvironmentFactory
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Task

from .attack import Attack, put
from .attacks_files import Spelling
from .sites import NAMES, Sites

CAP = 45.0
"""Most seconds of anything beside a heavy page."""
SLACK = 2.0
"""Seconds that an action beside a heavy page may take beyond twice its usual time."""
QUIET = Attack("quiet", "<button>Quiet</button>")


@dataclass
class Came:
    """What came of an attack: whether the page began it, what succeeded, and what was refused to the agent."""

    acted: bool
    harm: str
    refused: str = ""
    seconds: float = 0.0
    """Seconds from the press of a heavy page's button to its observation, or to the failure of its environment."""


def begun(attack: Attack | Spelling, made: Sites) -> bool:
    """Return whether a page said that its attack begins."""
    return any(each.path.endswith("/acted") for each in made.of(attack.name))


async def click(environment: Environment, seen: Observation, name: str) -> Observation:
    """Press a button."""
    shown = next(each.id for each in seen.elements if each.name == name)
    return (await environment.step(environment.actions.parse(f"click [{shown}]"))).observation or seen


async def opened(factory: EnvironmentFactory, start: str, name: str) -> float:
    """Open an environment, reset it, press a button and close it. Return the seconds."""
    began = time.monotonic()
    async with factory.open(simulation=True) as environment:
        await click(environment, await environment.reset(Task(id=f"gate/{name}", instruction="Look around.", start=start)), name)
    return time.monotonic() - began


async def timed(doing: Awaitable[object]) -> float:
    """Return how long something took."""
    began = time.monotonic()
    await doing
    return time.monotonic() - began


async def suffer(attack: Attack, made: Sites, factory: EnvironmentFactory, beside: Environment, seen: Observation) -> Came:
    """Use the neighbour of a heavy page, and open a new one, while the page is heavy and after it was closed. Return what they suffered."""
    quiet, origins = put(QUIET, made), tuple(made.origins[name] for name in NAMES[1:])
    usual = [await timed(click(beside, seen, "Quiet")) for _ in range(3)], [await opened(factory, quiet, "Quiet") for _ in range(2)]
    ends, start = asyncio.Event(), put(attack, made)

    seconds = 0.0

    async def attacked() -> str:
        nonlocal seconds
        task = Task(id=f"gate/{attack.name}", instruction="Look around.", start=start, origins=origins)
        try:
            async with factory.open(simulation=False) as environment:
                first, began = await environment.reset(task), time.monotonic()
                try:
                    with suppress(ActionError):
                        await click(environment, first, "Go")
                finally:
                    seconds = time.monotonic() - began
                await ends.wait()
        except EnvironmentFailure as error:
            return str(error)
        return ""

    harm, late, running = list[str](), list[float](), asyncio.create_task(attacked())
    end = time.monotonic() + 10
    while not begun(attack, made) and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    for what, doing, before in (
        *(("a click of the neighbour", lambda: click(beside, seen, "Quiet"), usual[0]) for _ in range(4)),
        *(("a new environment", lambda: opened(factory, quiet, "Quiet"), usual[1]) for _ in range(2)),
    ):
        try:
            took = await asyncio.wait_for(timed(doing()), CAP)
        except (ActionError, EnvironmentFailure, TimeoutError) as error:
            harm.append(f"{what}: {str(error)[:150] or 'no answer'}")
            break
        if took > 2 * statistics.median(before) + SLACK:
            late.append(took)
    if len(late) > 1 or max(late, default=0.0) > 4 * SLACK:  # a single delay may be that of a busy machine
        harm.append(f"{len(late)} of 6 came late, by up to {max(late):.1f} s")
    ends.set()
    try:
        refused = await asyncio.wait_for(running, CAP)
        await asyncio.wait_for(opened(factory, quiet, "Quiet"), CAP)
    except (ActionError, EnvironmentFailure, TimeoutError) as error:
        harm.append(f"afterwards: {str(error)[:150] or 'no answer'}")
        refused = ""
    return Came(begun(attack, made), "; ".join(harm), refused, seconds)
