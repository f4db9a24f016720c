"""Measure the seconds of a desktop: a step with tree and screenshot, a snapshot, and a restore with its observation.

A text editor and a calculator on a screen of 1280 x 800. Steps are clicks on the calculator's keys and typing into the editor, as a plain
process and in gVisor; snapshots and restores in gVisor, after typing, and what was typed is compared. Needs `shells/setup.sh --desktop`
and `--sandbox`.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from _common import Figure, Noise, finish, interval, parser, table, versions

from exact.environments.desktop import absent, desktop_factory
from exact.environments.process.worker import Worker
from exact.environments.sandbox.factory import SandboxedFactory, SandboxedWorker
from exact.observation import Observation
from exact.task import Task

APPLICATIONS = [["mousepad", "--disable-server", "~/note.txt"], ["galculator"]]
TASK = Task(
    id="desktop/bench", instruction="", private={"desktop": json.dumps({"applications": APPLICATIONS, "files": {"note.txt": "one\n"}})}
)
KEYS = "78*9="


async def step(environment: Worker, action: str, times: list[float]) -> Observation:
    start = time.perf_counter()
    transition = await environment.step(environment.actions.parse(action))
    times.append(time.perf_counter() - start)
    assert transition.observation is not None and transition.observation.screenshot
    return transition.observation


async def steps(environment: Worker, seen: Observation, rounds: int, noise: Noise) -> list[float]:
    """Seconds of each step; the calculator's result is compared."""
    times: list[float] = []
    keys = {each.name: each.id for each in seen.elements if each.role == "button"}
    field = next(each.id for each in seen.elements if each.role == "textbox")
    for number in range(rounds):
        noise.probe()
        for key in KEYS:
            seen = await step(environment, f"click [{keys[key]}]", times)
        assert "702" in [each.value for each in seen.elements], seen.text
        seen = await step(environment, f'fill [{field}] "round {number}"', [])
        seen = await step(environment, 'press "Control+End"', times)
        seen = await step(environment, f"click [{keys['AC']}]", times)
    return times


async def kept(
    environments: SandboxedFactory, environment: SandboxedWorker, seen: Observation, rounds: int, noise: Noise
) -> dict[str, list[float]]:
    """Seconds of snapshots, and of restores in another branch until it was observed."""
    times: dict[str, list[float]] = {"snapshot": [], "restore": []}
    field = next(each.id for each in seen.elements if each.role == "textbox")
    for number in range(rounds):
        noise.probe()
        await step(environment, f'fill [{field}] "kept {number}"', [])
        start = time.perf_counter()
        snapshot = await environment.snapshot()
        times["snapshot"].append(time.perf_counter() - start)
        await step(environment, f'fill [{field}] "lost"', [])
        start = time.perf_counter()
        async with environments.fork(snapshot, simulation=True) as branch:
            times["restore"].append(time.perf_counter() - start)
            assert branch.observation.fingerprint == snapshot.fingerprint
            assert f"kept {number}" in [each.value for each in branch.observation.elements]
        environments.drop(snapshot)
    return times


async def measure(rounds: int, noise: Noise) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    async with desktop_factory() as environments, environments.open(simulation=True) as environment:
        assert isinstance(environment, Worker)
        found["step, process"] = await steps(environment, await environment.reset(TASK), rounds, noise)
    async with desktop_factory(sandbox=True) as environments, environments.open(simulation=True) as environment:
        assert isinstance(environments, SandboxedFactory) and isinstance(environment, SandboxedWorker)
        seen = await environment.reset(TASK)
        found["step, gVisor"] = await steps(environment, seen, rounds, noise)
        found |= await kept(environments, environment, seen, rounds, noise)
    return found


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    if lack := absent():
        raise SystemExit(f"no desktop: {lack}")
    noise = Noise()
    found = asyncio.run(measure(3 if options.quick else 15, noise))
    rows = [(name, *(f"{1000 * each:.0f}" for each in interval(times)), str(len(times))) for name, times in found.items()]
    table(("", "median ms", "least", "most", "number"), rows)
    median = {name: interval(times)[0] for name, times in found.items()}
    figures = [
        Figure("desktop_step_ms", 1000 * median["step, process"], 300, at_least=False),
        Figure("desktop_gvisor_step_ms", 1000 * median["step, gVisor"]),
        Figure("desktop_snapshot_s", median["snapshot"], 1.2, at_least=False),
        Figure("desktop_restore_s", median["restore"], 1.5, at_least=False),
    ]
    details: dict[str, Any] = {"seconds": {name: [round(each, 4) for each in times] for name, times in found.items()}}
    finish(options, figures, noise, versions("exact-agent", "jeepney", "mss", "python-xlib"), details)


if __name__ == "__main__":
    main()
