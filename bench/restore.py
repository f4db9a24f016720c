"""Measure the seconds to restore a state, from the request to its accessibility tree, by four routes.

The routes are: restoring the whole environment; restoring the page, which leaves the server as it is, so that the form application then
shows another state; reset and replay in a plain browser; and an environment that is already there.

Depths 1, 5, 10 and 20 are measured in turn on a MiniWoB++ page and on a form application whose server takes 0, 0.1 and 1 s for a page. The
restored state must have the fingerprint of the walk, or the bench fails. `crossover` is the depth from which a restore is cheaper than a
replay, by a line through the replays. Then one search of the form application measures the cost of snapshots and restores for each useful
expansion, and the planner's choices on the MiniWoB++ page are listed.

  world_restore_s         median over restores beside which a probe found the machine quiet; goal under 0.25
  world_restore_all_s     median over all
  world_vs_empty          the same as a multiple of the restore of an idle sandbox
  depth_growth            median at the deepest depth over that at depth 1, over all sites
  depth_growth_worst      the same for the site where it is largest; each site's own is printed
  vs_replay_depth10_1s    replay over restore at depth 10 with 1 s a page
  planner_right           share of depths on the MiniWoB++ page at which the planner, which has a snapshot, takes the faster route

    python bench/restore.py --json bench/results/restore.json
    python bench/restore.py --ballast --json bench/results/restore_ballast.json
    python bench/restore.py --profile --json bench/results/restore_profile.json
    python bench/restore.py --quick
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

import _common
import _phases
from _environments import CONFIG, boxes, form, forms, plain_forms, service, walk
from _planned_routes import planner
from _route_times import RouteTimes, fork_seconds, timed

from exact.benchmarks.miniwob import MiniWob
from exact.config import parse
from exact.environments.browser import PageSetup
from exact.environments.browser.fork.factory import ForkingFactory, forking
from exact.environments.sandbox.probe import probe_forking
from exact.report.model.reading import Reading
from exact.report.model.routes import travel
from exact.runs.runner import Runner, create, reopen
from exact.task import Task

DEPTHS, QUICK_DEPTHS = (1, 5, 10, 20), (1, 10)
LATENCIES, QUICK_LATENCIES = (0.0, 0.1, 1.0), (1.0,)
BALLAST = (0, 102, 512, 1024, 2048)
"""MiB."""


async def expansions(environments: ForkingFactory, iterations: int, latency: float) -> dict[str, float]:
    """Measure snapshots and restores in one search of the form application, for each step that showed a new state."""
    site = form(latency)
    settings = parse(
        {
            "search": {"iterations": iterations, "k": 3, "depth": 4, "prefetch": 0},
            "limits": {"actions": 1},
            "reflection": {"kind": "none"},
            "browser": {"screenshots": False},
        }
    )
    before = environments.bytes  # the journal tells the total of all images
    with tempfile.TemporaryDirectory() as folder:
        create(Path(folder) / "run", (site.task,), settings)
        run, settings = reopen(Path(folder) / "run")
        await Runner(folder=run, config=settings, open_environments=lambda task: nullcontext(environments)).run()
        reading = Reading(run.task_folder(site.task) / "journal.jsonl", settings, run.blobs)
    found = travel(reading)
    useful = max(1, sum(not each.refused for each in reading.state.search.acted.values()))
    moved = {each.route: each.seconds for each in found.moved if each.route != "reuse"}
    restores = sum(seconds for route, seconds in moved.items() if route.startswith(("fork", "restore")))
    return {
        "useful_expansions": useful,
        "snapshots": found.snapshots,
        "snapshot_s_per_expansion": found.snapshot_seconds / useful,
        "restore_s_per_expansion": restores / useful,
        "all_ways_s_per_expansion": sum(moved.values()) / useful,
        "bytes_per_expansion": max(0, found.snapshot_bytes - before) / useful,
    }


async def expanded(iterations: int, latency: float) -> dict[str, float]:
    """Measure the same in environments whose only image is that of the fresh environment."""
    async with forms() as environments:
        async with environments.open(simulation=True):
            pass
        return await expansions(environments, iterations, latency)


async def measure(quick: bool, noise: _common.Noise) -> dict[str, Any]:
    """Everything but the ballast."""
    depths, latencies = (QUICK_DEPTHS, QUICK_LATENCIES) if quick else (DEPTHS, LATENCIES)
    rounds, slow_rounds = (1, 1) if quick else (12, 2)
    searched = {} if quick else await expanded(16, 1.0)
    empty = [(await probe_forking()).restore for _ in range(2 if quick else 5)]
    async with AsyncExitStack() as stack:
        pages, form_worlds = [await stack.enter_async_context(each) for each in (MiniWob().forking_factory(CONFIG), forms())]
        plain_pages, plain = [await stack.enter_async_context(each) for each in (MiniWob().environments(CONFIG), plain_forms())]
        walked = [RouteTimes(boxes(), depths, pages, plain_pages)]
        walked += [RouteTimes(form(latency), depths, form_worlds, plain) for latency in latencies]
        if quick:  # side by side: most of it is waiting for the slow server
            planned, *_ = await asyncio.gather(planner(boxes(), pages, depths[-1:]), *(routes.begin(stack, quick) for routes in walked))
        else:
            for routes in walked:
                await routes.begin(stack, quick)
        for number in range(rounds):
            for routes in walked:
                await routes.round(number, number < slow_rounds, noise)
        return {
            "walked": walked,
            "empty": empty,
            "image_bytes": form_worlds.bytes / (len(latencies) * len(depths) + 1),
            "planner": planned if quick else await planner(boxes(), pages, depths),
            "expansions": searched,
        }


async def weigh(mib: int, rounds: int) -> dict[str, float]:
    """Snapshot and restore of an environment that holds so much more memory."""
    services = [service("_ballast.py", 8000, str(mib), seconds=120.0)]
    task = Task(id="ballast", instruction="", start="http://127.0.0.1:8000/")
    snapshots, restores, size = [], [], 0.0
    async with (
        forking(CONFIG, PageSetup(), services=services, limit=16 << 30) as environments,
        environments.open(simulation=True) as environment,
    ):
        await environment.reset(task)
        for _ in range(rounds):
            before = environments.bytes
            seconds, snapshot = await timed(environment.snapshot())
            snapshots.append(seconds)
            size = environments.bytes - before
            restores.append(await fork_seconds(environments, snapshot))
            environments.drop(snapshot)
    return {"mib": mib, "snapshot_s": statistics.median(snapshots), "restore_s": statistics.median(restores), "image_mb": size / 1e6}


async def retained(count: int) -> dict[str, float]:
    """Measure what a snapshot takes in megabytes, as taken, and packed beside the first image: the mean of `count`, a step apart."""
    site, taken = form(0.0), list[int]()
    async with forms(limit=250 << 20) as environments, environments.open(simulation=True) as environment:
        seen = await environment.reset(site.task)
        first = environments.bytes
        for step in range(count + 1):  # the newest is never packed
            before = environments.bytes
            await environment.snapshot()
            taken.append(environments.bytes - before)
            await environments.store._sandboxes.packer.wait()
            transition = await environment.step(site.action(environment, seen, step))
            assert transition.observation is not None
            seen = transition.observation
        return {"taken_mb": statistics.mean(taken) / 1e6, "packed_mb": (environments.bytes - first - taken[-1]) / count / 1e6}


async def profile(rounds: int, noise: _common.Noise) -> dict[str, Any]:
    """Time the steps of forks of the form application at depth 5."""
    site = form(0.0)
    async with forms() as environments, environments.open(simulation=True) as inside:
        with _phases.timed(_phases.SNAPSHOT) as taken:
            _, kept = await walk(site, inside, 5, range(1, 6))
        with _phases.timed(_phases.RESTORE) as found:
            seconds = []
            for _ in range(rounds):
                noise.probe()
                seconds.append(await fork_seconds(environments, kept[5]))
    _common.table(["step of a snapshot", "ms, median"], _phases.rows(taken))
    print()
    _common.table(
        ["step of a fork", "ms, median"], [*_phases.rows(found), ["all, with closing", f"{1000 * statistics.median(seconds):.0f}"]]
    )
    sizes = await retained(2 if rounds < 10 else 6)
    return {
        "snapshot_steps": dict(taken),
        "steps": dict(found),
        "seconds": seconds,
        "megabytes": sizes,
        "empty_restore_s": [(await probe_forking()).restore for _ in range(5)],
    }


def report(found: dict[str, Any], noise: _common.Noise) -> tuple[list[_common.Figure], dict[str, Any]]:
    """Print the tables; the figures and the details."""
    walked: list[RouteTimes] = found["walked"]
    rows = []
    for routes in walked:
        for depth in routes.depths:
            cells = [routes.median(route, depth) for route in ("environment", "page", "replay")]
            shown = ["-" if cell is None else f"{cell:.2f}" for cell in cells]
            shown[1] += " (another state)" if depth in routes.unfaithful else ""
            rows.append([routes.site.name, str(depth), *shown, f"{(routes.median('live', depth) or 0.0) * 1e6:.0f} us"])
    _common.table(["seconds, medians", "depth", "environment restore", "page restore", "reset + replay", "stands there"], rows)
    for routes in walked:
        crossing = routes.crossover()
        says = "never" if crossing is None else f"depth {max(0.0, crossing):.1f}"
        print(f"{routes.site.name}: a restore is cheaper from {says}; deepest over shallowest restore {routes.growth():.2f}")
    print("\nplanner on the MiniWoB++ page, with a snapshot of every depth:")
    for row in found["planner"]:
        print(f"  depth {row['depth']}: {row['chosen']} (replay {row['replay_s']:.2f} s, fork {row['fork_s']:.2f} s)")
    print("\n" + ", ".join(f"{name} {value:.3g}" for name, value in found["expansions"].items()))
    every = [each for routes in walked for times in routes.times["environment"].values() for each in times]
    quiet = noise.quiet([each for routes in walked for each in routes.marked])
    told = f"{len(quiet)} of {len(every)} restores were taken on a quiet machine" if len(quiet) < len(every) else "all restores count"
    print(f"\n{told}; median of all {statistics.median(every):.2f} s")
    environment, ends = statistics.median(quiet), (min(walked[0].depths), max(walked[0].depths))
    shallow, deep = ([each for routes in walked for each in routes.times["environment"][end]] for end in ends)
    slowest = walked[-1]
    ratio = (slowest.median("replay", 10) or 0.0) / (slowest.median("environment", 10) or 1.0)
    right = [(row["chosen"] == "replay") == (row["replay_s"] < row["fork_s"]) for row in found["planner"]]
    snapshots = [each for routes in walked for each in routes.snapshots]
    figures = [
        _common.Figure("snapshot_s", statistics.median(snapshots), 0.15, at_least=False),
        _common.Figure("world_restore_all_s", statistics.median(every)),
        _common.Figure("world_vs_empty", environment / statistics.median(found["empty"])),
        _common.Figure("planner_right", statistics.mean(right)),
        _common.Figure("world_restore_s", environment, 0.25, at_least=False),
        _common.Figure("depth_growth", statistics.median(deep) / statistics.median(shallow), 1.2, at_least=False),
        _common.Figure("depth_growth_worst", max(routes.growth() for routes in walked), 1.2, at_least=False),
        _common.Figure("vs_replay_depth10_1s", ratio, 8.0),
    ]
    details = {
        "seconds": {routes.site.name: {route: dict(times) for route, times in routes.times.items()} for routes in walked},
        "pages_in_another_state": {routes.site.name: sorted(routes.unfaithful) for routes in walked},
        "crossover_depth": {routes.site.name: routes.crossover() for routes in walked},
        "empty_restore_s": found["empty"],
        "image_bytes": found["image_bytes"],
        "planner": found["planner"],
        "expansions": found["expansions"],
    }
    return figures, details


def main() -> None:
    options = _common.parser(__doc__ or "")
    options.add_argument("--ballast", action="store_true", help="how both grow with the environment's memory, instead of everything else")
    options.add_argument("--profile", action="store_true", help="what the time of a restore is made of, instead of everything else")
    chosen = options.parse_args()
    noise = _common.Noise()
    if chosen.profile:
        told = asyncio.run(profile(3 if chosen.quick else 20, noise))
        middle = statistics.median(told["steps"]["settle and observe"])
        figures = [
            _common.Figure("settle_and_observe_s", middle),
            _common.Figure("empty_restore_s", statistics.median(told["empty_restore_s"])),
            _common.Figure("snapshot_taken_mb", told["megabytes"]["taken_mb"]),
            _common.Figure("snapshot_retained_mb", told["megabytes"]["packed_mb"], 60.0, at_least=False),
        ]
        _common.finish(chosen, figures, noise, _common.versions("exact-agent", "playwright"), told)
        return
    if chosen.ballast:
        rows = []
        for mib in BALLAST[:2] if chosen.quick else BALLAST:
            rows.append(asyncio.run(weigh(mib, 2 if chosen.quick else 3)))
            noise.probe()
        cells = [
            [f"{row['mib']:g}", *(f"{row[name]:.2f}" for name in ("snapshot_s", "restore_s")), f"{row['image_mb']:.0f}"] for row in rows
        ]
        _common.table(["MiB more", "snapshot s", "restore s", "image MB"], cells)
        growth = (rows[-1]["restore_s"] - rows[0]["restore_s"]) / (rows[-1]["mib"] - rows[0]["mib"]) * 1024
        _common.finish(chosen, [_common.Figure("restore_s_per_gib", growth)], noise, _common.versions("exact-agent"), {"ballast": rows})
        return
    figures, details = report(asyncio.run(measure(chosen.quick, noise)), noise)
    _common.finish(chosen, figures, noise, _common.versions("exact-agent", "playwright", "miniwob"), details)


if __name__ == "__main__":
    main()
