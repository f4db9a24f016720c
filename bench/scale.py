"""Measure benchmarks that run many attempts at once: locally and on Ray, with failures, and simulated on many machines.

    rates       tasks a minute and MiB a search for 1, 2, 4, 8 attempts at once, in this process and on Ray
    overhead    seconds of tasks of 20 s on Ray, over those in this process (two at once, by turns)
    simulation  the makespans of the runs of `rates`, predicted from their durations; and 10,000 tasks on up to 2,000 processes
    outage      an API that answers 429 half of the time and is gone for two minutes
    soak        500 short searches in one process: memory, descriptors, processes, temporary files
    nodes       200 tasks on two nodes of Ray without a shared folder: a node lost, and the command killed and resumed (needs root)

Tasks are MiniWoB++'s click-test-2 with a scripted model that answers after a second.

    python bench/scale.py [--quick] [--only rates,overhead] [--tasks N] [--json FILE]
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import _common

sys.path.insert(0, str(_common.ROOT))

from _cluster_simulation import Cluster, ends, largest_useful

from exact.cli.bench_plan import ResourceLimits, open_engine
from exact.config import Config, parse
from exact.environments.pool.capacity import measure_usage
from exact.evaluation.folder import BenchFolder, Result
from exact.evaluation.plan import Plan
from exact.evaluation.schedule import Schedule
from exact.models.scripted import Fault, LateAnswer, Question, ScriptedServer, Status

PARTS = ("rates", "overhead", "simulation", "outage", "soak", "nodes")
TASK = "miniwob/click-test-2"
ANSWER = 1.0
"""Seconds that the model takes for an answer."""
HEADER = ["engine", "at once", "tasks", "seconds", "tasks a minute", "MiB a search"]


def config(url: str, **more: Any) -> Config:
    """Return the configuration of the agent: one model call a task."""
    model = {"model": "scripted", "base_url": url, "retries": 3, "price": {"input": 1, "output": 2}, **more}
    policy = {"kind": "llm", "samples": 1}
    parts = {"search": {"algorithm": "react"}, "policy": policy, "value": {"kind": "constant"}, "reflection": {"kind": "none"}}
    return parse({"name": "scripted", **parts, "models": {"policy": model}, "limits": {"actions": 4}})


async def measured(
    path: Path, engine: str, parallel: int, tasks: int, agent: Config, *, pause: float = 0.0, warm: int = 1,
    each: Callable[[int], None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run tasks, after `warm` for each process that are not counted, and return what was measured. Processes start one after the other."""
    from exact.benchmarks import registry

    ids = registry.expand([f"{TASK}?seed=1..{tasks + warm * parallel}"])
    plan = Plan(suite=TASK, agents=(agent.name,), tasks=tuple(ids))
    folder, ends, memory = BenchFolder.create(path, plan, {agent.name: agent}), list[float](), list[int]()

    def finished(result: Result, done: int, of: int) -> None:
        ends.append(time.monotonic())
        memory.append(measure_usage().memory)
        if each is not None:
            each(done)

    async with open_engine(folder, engine, parallel, ResourceLimits(hang=300), address=None, needs={}) as (made, _):
        began = time.monotonic()
        results = await Schedule(folder=folder, engine=made, parallel=parallel, pause=pause, finished=finished).run()
    seconds = ends[-1] - ends[warm * parallel - 1]
    durations = [result.seconds for result in results[warm * parallel :]]
    return {
        "engine": engine, "parallel": parallel, "tasks": tasks, "warm": warm, "seconds": seconds, "per_minute": 60 * tasks / seconds,
        "mib": max(memory) / parallel / 2**20, "durations": durations, "solved": sum(result.score == 1.0 for result in results),
        "gap": max(0.0, seconds * parallel / tasks - statistics.mean(durations)),
        "start": max(0.0, ends[0] - began - results[0].seconds),
    }  # fmt: skip


def late(seconds: float) -> Callable[[Question, int], Fault]:
    return lambda question, times: LateAnswer(seconds)


async def rates(home: Path, quick: bool, noise: _common.Noise) -> dict[str, Any]:
    """Measure tasks a minute."""
    from tests.e2e.ray_runs import answers

    runs = []
    async with ScriptedServer(answers, faults=late(ANSWER)) as server:
        for parallel in (1, 2) if quick else (1, 2, 4, 8):
            for engine in ("local", "ray"):
                noise.probe()
                tasks = 3 * parallel if quick else max(8, 6 * parallel)
                runs.append(
                    await measured(home / f"{engine}-{parallel}", engine, parallel, tasks, config(server.base_url), warm=1 if quick else 3)
                )
                print(f"{engine} {parallel}: {runs[-1]['seconds']:.1f} s", file=sys.stderr, flush=True)
    _common.table(HEADER, [_row(run) for run in runs])
    return {"runs": runs}


def _row(run: dict[str, Any]) -> list[str]:
    return [run["engine"], *(f"{run[name]:.4g}" for name in ("parallel", "tasks", "seconds", "per_minute", "mib"))]


async def overhead(home: Path, quick: bool, noise: _common.Noise) -> dict[str, Any]:
    """Compare tasks of 20 s, two at once: Ray and this process by turns."""
    from tests.e2e.ray_runs import answers

    seconds: dict[str, list[float]] = {"local": [], "ray": []}
    async with ScriptedServer(answers, faults=late(2.0 if quick else 19.0)) as server:
        for turn in range(1 if quick else 3):
            for engine, found in seconds.items():
                noise.probe()
                run = await measured(home / f"{engine}-20-{turn}", engine, 2, 4, config(server.base_url))
                found.append(run["seconds"] / 2)
    ratio = statistics.mean(seconds["ray"]) / statistics.mean(seconds["local"])
    _common.table(["engine", "seconds a task"], [[name, f"{statistics.mean(found):.2f}"] for name, found in seconds.items()])
    return {"seconds": seconds, "ratio": ratio}


def simulation(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Predict the measured makespans, and simulate larger benchmarks with the durations on Ray.

    Durations are those of each run. The time between two attempts of a process, and the time that its start takes, are those of the run
    with one process. The former is work of a processor: it is slowed as much as an attempt's own work, its duration but for the model's
    answer, was slowed against the run with one process. Processes start as many at once as there are processors.
    """
    rows, errors = [], []
    alone = {run["engine"]: run for run in measured if run["parallel"] == 1}
    for run in measured:
        workers, warm = run["parallel"], run["warm"] * run["parallel"]
        tasks = run["tasks"] + warm
        one = alone[run["engine"]]
        slowed = (statistics.mean(run["durations"]) - ANSWER) / (statistics.mean(one["durations"]) - ANSWER)
        cluster = Cluster(
            workers=workers, durations=run["durations"], gap=one["gap"] * slowed, start=one["start"], together=os.cpu_count() or 1
        )
        windows = [found[-1] - found[warm - 1] for found in (ends(cluster, tasks, seed) for seed in range(50))]
        predicted = statistics.mean(windows)
        errors.append(abs(predicted / run["seconds"] - 1))
        rows.append([run["engine"], str(workers), f"{run['seconds']:.1f}", f"{predicted:.1f}", f"{errors[-1]:.1%}"])
    _common.table(["engine", "at once", "measured s", "predicted s", "error"], rows)
    durations = [seconds * 60 for run in measured if run["engine"] == "ray" for seconds in run["durations"]]
    sizes, found = (1, 2, 4, 8, 16, 32, 62, 125, 250, 500, 1000, 2000), {}
    cases = {
        "no limits": Cluster(workers=1, durations=durations, start=20.0, gap=1.0),
        "the driver writes 20 ms an attempt": Cluster(workers=1, durations=durations, start=20.0, gap=1.0, driver=0.02),
        "1 in 20 attempts lost": Cluster(workers=1, durations=durations, start=20.0, gap=1.0, driver=0.02, failure=0.05),
        "40 calls an attempt, 10,000 a minute": Cluster(
            workers=1, durations=durations, start=20.0, gap=1.0, driver=0.02, failure=0.05, calls=40, calls_per_minute=10_000
        ),
    }
    for name, cluster in cases.items():
        useful, spans = largest_useful(cluster, 10_000, sizes)
        found[name] = {"useful": useful, "hours": {size: spans[size] / 3600 for size in sizes}}
    print("\n10,000 attempts, sixty times as long as measured: hours by number of processes\n")
    table = [[name, *(f"{row['hours'][size]:.1f}" for size in sizes[5:]), str(row["useful"])] for name, row in found.items()]
    _common.table(["case", *map(str, sizes[5:]), "scales to"], table)
    return {"error": max(errors), "rows": rows, "cases": found}


async def outage(home: Path, quick: bool) -> dict[str, Any]:
    """Run tasks against an API that answers 429 half of the time, and is gone for two minutes (quick: ten seconds)."""
    from tests.e2e.ray_runs import answers

    gone, began = 10.0 if quick else 120.0, time.monotonic()

    def faults(question: Question, times: int) -> Fault | None:
        if 3.0 < time.monotonic() - began < 3.0 + gone:
            return Status(503, "gone")
        return Status(429, retry_after=0.2) if times % 2 == 0 else None

    async with ScriptedServer(answers, faults=faults) as server:
        run = await measured(home / "outage", "local", 2, 4 if quick else 20, config(server.base_url), pause=2.0 if quick else 15.0)
        refused = sum(entry.fault == "Status" for entry in server.log)
    folder = BenchFolder.open(home / "outage")
    wrong = [each for each in folder.results() if each.status != "scored" or each.score != 1.0]
    scored = [each for each in folder.attempts() if each.status == "failed" and each.score is not None]
    print(f"API gone for {gone:g} s: {run['solved']} solved, {len(folder.attempts())} attempts, {refused} refused, {len(wrong)} wrong")
    return {"gone": gone, "wrong": len(wrong) + len(scored), "attempts": len(folder.attempts()), "refused": refused}


def usage() -> dict[str, float]:
    """Return what this process and its children hold."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    below = measure_usage()
    temporary = sum(1 for folder in Path(tempfile.gettempdir()).glob("exact-*") for _ in folder.rglob("*"))
    return {
        "MiB": (resident + below.memory) / 2**20, "descriptors": len(list(Path("/proc/self/fd").iterdir())), "processes": below.processes,
        "temporary files": temporary,
    }  # fmt: skip


async def soak(home: Path, quick: bool) -> dict[str, Any]:
    """Run short searches in one process, and compare what it holds in the second and in the last fifth of them.

    What is held changes while pages open and close, so each is the median of many moments.
    """
    from tests.e2e.ray_runs import answers

    tasks, seen = 30 if quick else 500, dict[int, dict[str, float]]()

    def each(done: int) -> None:
        if done % max(1, tasks // 100) == 0:
            server.log.clear()  # it is part of this bench
            seen[done] = usage()

    async with ScriptedServer(answers) as server:
        await measured(home / "soak", "local", 2, tasks, config(server.base_url), each=each)
    counts = sorted(seen)
    fifth = len(counts) // 5
    parts = (counts[fifth : 2 * fifth], counts[-fifth:])
    early, end = ({name: statistics.median(seen[at][name] for at in part) for name in seen[counts[0]]} for part in parts)
    growth = {name: end[name] / early[name] - 1 if early[name] else 0.0 for name in early}
    rows = [[name, f"{early[name]:.4g}", f"{end[name]:.4g}", f"{growth[name]:+.1%}"] for name in early]
    _common.table(["held", "early", "late", "growth"], rows)
    return {"tasks": tasks, "seen": seen, "growth": growth}


async def nodes(home: Path, quick: bool, tasks: int) -> dict[str, Any]:
    """Lose a node, and the command, half-way."""
    from tests.e2e.ray_nodes import possible, ray_nodes
    from tests.e2e.ray_runs import CONFIG, KEY, answers, bench, ended, outcomes, repeated

    if reason := possible():
        print(f"nodes: left out, {reason}")
        return {}
    suite, whole, lost, killed = f"{TASK}?seed=1..{tasks}", home / "whole", home / "lost", home / "killed"
    with ray_nodes({"one": {"browser": 2}, "two": {"browser": 2}}, KEY) as cluster:
        async with ScriptedServer(answers, faults=late(ANSWER), host=cluster.here) as server:
            file = home / "scripted.yaml"
            file.write_text(CONFIG % server.base_url)
            codes = [(await bench(killed, suite, file, cluster, parallel=4, kill_at=lambda: ended(killed) >= tasks // 2))[0]]
            codes.append((await bench(killed, suite, file, cluster, parallel=4, resume=True))[0])

            async def kill() -> None:
                await asyncio.to_thread(cluster.kill, "two")

            codes.append((await bench(lost, suite, file, cluster, parallel=4, kill_at=lambda: ended(lost) >= tasks // 2, kill=kill))[0])
            codes.append((await bench(whole, suite, file, parallel=2))[0])
        browsers = len(cluster.browsers(20))
    same = [outcomes(folder) == outcomes(whole) for folder in (lost, killed)]
    twice = repeated(lost) + repeated(killed)
    print(f"{tasks} tasks: exit codes {codes}, results equal {same}, repeated {len(twice)}, browsers left {browsers}")
    return {"tasks": tasks, "codes": codes, "same": same, "repeated": len(twice), "browsers": browsers, "results": len(outcomes(lost))}


def main() -> None:
    options = _common.parser(__doc__ or "")
    options.add_argument("--only", default="", help=f"parts, of {','.join(PARTS)} (default: all; quick: rates, simulation)")
    options.add_argument("--tasks", type=int, default=200, help="tasks of `nodes` (200)")
    chosen = options.parse_args()
    if importlib.util.find_spec("ray") is None:
        _common.lacks("Ray is not installed: shells/setup.sh --extras")
    parts = chosen.only.split(",") if chosen.only else ["rates", "simulation"] if chosen.quick else list(PARTS)
    noise, found, figures = _common.Noise(), dict[str, Any](), list[_common.Figure]()
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        home = Path(folder)
        temporary = home / "temporary"  # of this process alone
        temporary.mkdir()
        tempfile.tempdir = str(temporary)

        def run(work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
            async def done() -> dict[str, Any]:
                return await work

            return asyncio.run(done())

        if "rates" in parts:
            found["rates"] = run(rates(home, chosen.quick, noise))
            figures += [_common.Figure(f"{r['engine']}_{r['parallel']}_tasks_a_minute", r["per_minute"]) for r in found["rates"]["runs"]]
        if "simulation" in parts and "rates" in found:
            found["simulation"] = simulation(found["rates"]["runs"])
            figures.append(_common.Figure("simulation_error", found["simulation"]["error"], 0.15, at_least=False))
        if "overhead" in parts:
            found["overhead"] = run(overhead(home, chosen.quick, noise))
            figures.append(_common.Figure("ray_overhead", found["overhead"]["ratio"], 1.05, at_least=False))
        if "outage" in parts:
            found["outage"] = run(outage(home, chosen.quick))
            figures.append(_common.Figure("wrong_after_outage", found["outage"]["wrong"], 0, at_least=False))
        if "soak" in parts:
            found["soak"] = run(soak(home, chosen.quick))
            figures.append(_common.Figure("soak_growth", max(found["soak"]["growth"].values()), 0.05, at_least=False))
        if "nodes" in parts and (made := run(nodes(home, chosen.quick, 6 if chosen.quick else chosen.tasks))):
            found["nodes"] = made
            figures.append(
                _common.Figure("nodes_unequal", made["same"].count(False) + made["repeated"] + made["browsers"], 0, at_least=False)
            )
        noise.probe()
    _common.finish(chosen, figures, noise, _common.versions("exact-agent", "playwright", "ray"), found)


if __name__ == "__main__":
    main()
