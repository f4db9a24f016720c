"""Measure the seconds of a desktop: a step with tree and screenshot, a snapshot, a restore with its observation; and its applications.

A text editor and a calculator on a screen of 1280 x 800. Steps are clicks on the calculator's keys and typing into the editor, as a plain
process and in gVisor; snapshots and restores in gVisor, after typing, and what was typed is compared. Then each application is started in
gVisor, seen, kept, restored and forked, and a state five steps deep in a spreadsheet is returned to by a restore, and by a reset and
replay. Steps in a spreadsheet with 3,000 cells in sight, the most that are listed, are done as a plain process. Absent applications are
named. Needs `shells/setup.sh --desktop` and `--sandbox`; `--osworld` for the larger applications.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from _applications import APPLICATIONS, LARGE_SHEET, Survived, survived, task_of
from _common import Figure, Noise, finish, interval, lacks, parser, table, versions

from exact.environments.desktop.factory import absent, desktop_factory
from exact.environments.process.worker import Worker
from exact.environments.sandbox.factory import SandboxedFactory, SandboxedWorker
from exact.observation import Observation
from exact.task import Task

OPENED = [["mousepad", "--disable-server", "~/note.txt"], ["galculator"]]
TASK = Task(id="desktop/bench", instruction="", private={"desktop": json.dumps({"applications": OPENED, "files": {"note.txt": "one\n"}})})
KEYS = "78*9="
DEPTH = 5


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


async def returned(environments: SandboxedFactory, environment: SandboxedWorker, name: str) -> tuple[float, float]:
    """Seconds of a return to a state five steps deep, by a restore and by a reset and replay."""
    task, action = task_of(APPLICATIONS[name]), environment.actions.parse(APPLICATIONS[name].action)
    await environment.reset(task)
    for _ in range(DEPTH):
        await environment.step(action)
    snapshot = await environment.snapshot()
    await environment.step(action)
    start = time.perf_counter()
    await environment.restore(snapshot)
    restored = time.perf_counter() - start
    start = time.perf_counter()
    await environment.reset(task)
    for _ in range(DEPTH):
        await environment.step(action)
    replayed = time.perf_counter() - start
    environments.drop(snapshot)
    return restored, replayed


async def applications(names: Sequence[str], noise: Noise) -> tuple[list[Survived], tuple[float, float], float]:
    """What each application did, the seconds of two ways back, and the bytes of the image before an episode."""
    async with desktop_factory(sandbox=True) as environments, environments.open(simulation=True) as environment:
        assert isinstance(environments, SandboxedFactory) and isinstance(environment, SandboxedWorker)
        origin, found = environments.bytes, []
        for name in names:
            noise.probe()
            found.append(await survived(environments, environment, name))
            print(f"{name}: {found[-1].fault or 'survived'}", flush=True)
        usable = [each.name for each in found if not each.fault]
        ways = await returned(environments, environment, "Calc" if "Calc" in usable else usable[0])
        return found, ways, origin


def show(found: Sequence[Survived]) -> None:
    """Print what each application did."""
    head = ("", "starts s", "elements", "step s", "snapshot s", "MB", "restore s", "fork s", "equal", "acts", "")
    rows = [
        (each.name, f"{each.starts:.1f}", str(each.elements), f"{each.step:.2f}", f"{each.snapshot:.2f}", f"{each.megabytes:.0f}",
         f"{each.restore:.2f}", f"{each.fork:.2f}", "yes" if each.equal else "no", "yes" if each.answers else "no", each.fault)
        for each in found
    ]  # fmt: skip
    table(head, rows)


async def large_sheet(rounds: int, noise: Noise) -> tuple[int, list[float]]:
    """Return the number of elements of a spreadsheet full of small cells, and the seconds of steps in it."""
    times = list[float]()
    async with desktop_factory() as environments, environments.open(simulation=True) as environment:
        assert isinstance(environment, Worker)
        seen = await environment.reset(task_of(LARGE_SHEET))
        for _ in range(rounds):
            noise.probe()
            seen = await step(environment, LARGE_SHEET.action, times)
    return len(seen.elements), times


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
        lacks(f"no desktop: {lack}")
    noise = Noise()
    found = asyncio.run(measure(3 if options.quick else 15, noise))
    names = ("mousepad",) if options.quick else tuple(APPLICATIONS)
    told, (restored, replayed), origin = asyncio.run(applications(names, noise))
    show(told)
    rows = [(name, *(f"{1000 * each:.0f}" for each in interval(times)), str(len(times))) for name, times in found.items()]
    table(("", "median ms", "least", "most", "number"), rows)
    median = {name: interval(times)[0] for name, times in found.items()}
    figures = [
        Figure("desktop_step_ms", 1000 * median["step, process"], 200, at_least=False),
        Figure("desktop_gvisor_step_ms", 1000 * median["step, gVisor"], 300, at_least=False),
        Figure("desktop_snapshot_s", median["snapshot"], 1.0, at_least=False),
        Figure("desktop_restore_s", median["restore"], 1.5, at_least=False),
        Figure("osworld_return_vs_replay", replayed / restored, 10),
        Figure("desktop_origin_image_mb", origin / 1e6),
        Figure("applications_survived", sum(not each.fault and each.answers for each in told)),
    ]
    if any(each.name == "Calc" and not each.fault for each in told):
        elements, found["step, 3,000 cells"] = asyncio.run(large_sheet(5, noise))
        print(f"{elements} elements of a spreadsheet full of small cells: {interval(found['step, 3,000 cells'])[0]:.2f} s a step")
        figures.append(Figure("office_large_tree_ms", 1000 * interval(found["step, 3,000 cells"])[0], 300, at_least=False))
    if office := [each.restore for each in told if each.name == "Calc" and not each.fault]:
        figures.append(Figure("office_restore_s", office[0], 1.5, at_least=False))
    details: dict[str, Any] = {
        "applications": [each._asdict() for each in told],
        "return": [restored, replayed],
        "seconds": {name: [round(each, 4) for each in times] for name, times in found.items()},
    }
    finish(options, figures, noise, versions("exact-agent", "jeepney", "mss", "python-xlib"), details)


if __name__ == "__main__":
    main()
