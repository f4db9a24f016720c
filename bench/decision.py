"""Measure what one committed decision of R-MCTS costs, and what it is made of.

A policy and a judge that take as long as a model, and give the same answers each time, search to one decision: 16 iterations, three
actions a state, depth 5. Three places: a page of MiniWoB++ and a page of 10,000 nodes, which return by reset and replay, and Trac in
environments that fork. Models take 0, 0.3 and 2 s; one worker and four.

Parts are seconds within the search's own thread of work; with several workers, and while the next state is prepared behind a model, they
overlap, so they may add up to more than the whole. `model` is the time with at least one call in flight. `steps` contain settling and
observing. Returns are the seconds that the search waited for an environment.

  decision_vs_model_2s  seconds of a decision over the seconds with a call in flight; one worker, 2 s; the worst place; goal at most 1.1
  decision_vs_replay    the form application (0.3 s a page), model 0 s, ten actions below the start: seconds of a decision by reset and
                        replay over those with environments that fork; goal 10. Depths 0 and 3 are printed beside it
  decision_0s_vs_before seconds of the decisions with a model of 0 s over those of the commit that `--before` names, by turns; the geometric
                        mean over the places; goal at most 0.6

    python bench/decision.py --before COMMIT --json bench/results/decision.json
    python bench/decision.py --quick             4 iterations, a model of 0.3 s
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import _common
import _phases
import msgspec
from _environments import CONFIG, HOST, form, forms
from large_page import NODES, page
from overlap import Thinker
from watch import tree

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.benchmarks import registry
from exact.benchmarks.miniwob.pages import serve
from exact.config import BrowserConfig, parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import EnvironmentFactory
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from exact.runs.journal import events as ev
from exact.runs.journal.file import Journal, read_journal
from exact.runs.runner import Runner, create, reopen
from exact.search import mcts
from exact.search.mcts import MCTS
from exact.search.tree import Tree
from exact.task import Task

ITERATIONS, DELAYS, WORKERS, DEPTHS = 16, (0.0, 0.3, 2.0), (1, 4), (0, 3, 10)
QUICK_ITERATIONS, QUICK_DELAY = 4, 0.3
ROLES = {"miniwob": ("checkbox", "button", "tab", "link"), "trac": ("link", "button"), "large page": ("button",)}
PARTS: _phases.Parts = (*_phases.ACTION[1:3], ("steps", *_phases.ACTION[4][1:]))
NAMES = ("settling", "observing", "steps")
SURE = 0.95
"""Prior of the one action above the decision that is measured: it is committed without a search."""


class Clock:
    """The seconds in which at least one call was in flight."""

    def __init__(self) -> None:
        self.seconds, self._open, self._since = 0.0, 0, 0.0

    @contextmanager
    def call(self) -> Iterator[None]:
        self._since = self._since if self._open else time.perf_counter()
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self.seconds += time.perf_counter() - self._since


class TimedThinker(Thinker):
    """A thinker whose calls are timed. Until so many actions are committed it is sure of one."""

    def __init__(self, seconds: float, roles: Sequence[str], sure: int) -> None:
        super().__init__(seconds, roles)
        self.clock, self.sure = Clock(), sure

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        with self.clock.call():
            found = await super().propose(context, actions, k)
        if len(context.history) >= self.sure:
            return found
        first = next(each for each in found)
        return (Proposal(action=first.action, prior=1.0, rationale="the way"),)

    async def evaluate(self, context: Context) -> Evaluation:
        with self.clock.call():
            return await super().evaluate(context)


class Decision(NamedTuple):
    """One decision, and its parts in seconds."""

    seconds: float
    model: float
    parts: dict[str, float]

    @property
    def vs_model(self) -> float:
        return self.seconds / self.model if self.model else 0.0


@contextmanager
def counted(owner: Any, *names: str) -> Iterator[list[float]]:
    """Sum the seconds of synchronous methods during the block."""
    spent, before = [0.0], {name: getattr(owner, name) for name in names}

    def timed(inner: Callable[..., Any]) -> Callable[..., Any]:
        def outer(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return inner(*args, **options)
            finally:
                spent[0] += time.perf_counter() - began

        return outer

    for name, inner in before.items():
        setattr(owner, name, timed(inner))
    try:
        yield spent
    finally:
        for name, inner in before.items():
            setattr(owner, name, inner)


@contextmanager
def led(below: int) -> Iterator[None]:
    """Commit so many actions without a search, also if they write, as every one of the form application does."""

    def clear(tree: Tree, prior: float) -> str:
        return "the way" if tree.root.expansions and tree.root.edges and tree.root.depth < below else ""

    before = mcts.clear_choice
    mcts.clear_choice = clear
    try:
        yield
    finally:
        mcts.clear_choice = before


async def decide(
    environments: EnvironmentFactory, task: Task, roles: Sequence[str], *, thinks: float, iterations: int, workers: int = 1, below: int = 0
) -> Decision:
    """Search to the decision that follows so many committed actions."""
    settings = parse(
        {
            "search": {
                "algorithm": "mcts", "iterations": iterations, "k": 3, "depth": 5, "merging": "none", "workers": workers,
                **({"think": SURE, "limits": {"evaluations": iterations}} if below else {}),  # iterations that were not needed carry over
            },
            "limits": {"actions": below + 1},
            "reflection": {"kind": "none"},
        }
    )  # fmt: skip
    thinker = TimedThinker(thinks, roles, below)
    with tempfile.TemporaryDirectory() as folder:
        run = create(Path(folder) / "run", (task,), settings)
        run, settings = reopen(run.path)
        runner = Runner(folder=run, config=settings, open_environments=lambda _: nullcontext(environments))
        agent = Agent(policy=thinker, value=thinker)
        with led(below), _phases.timed(PARTS) as phases, counted(MCTS, "ask", "tell") as search, counted(Journal, "write") as written:
            await replace(runner, build_agent=lambda config, models: agent).run()
        events = list(read_journal(run.task_folder(task) / "journal.jsonl"))
    decided = [at for at, event in enumerate(events) if isinstance(event, ev.Decided)]
    if len(decided) <= below:
        raise SystemExit(f"{task.id}: {len(decided)} decisions, not {below + 1}: {events[-1]}")
    first = next(at for at, event in enumerate(events) if isinstance(event, ev.Reset)) if not below else decided[below - 1] + 1
    searched = events[first : decided[below] + 1]
    parts = {name: sum(phases[step]) for name, (step, *_) in zip(NAMES, PARTS, strict=True)}
    parts |= {"returns": sum(each.seconds for each in searched if isinstance(each, ev.Arrived)), "search": search[0], "journal": written[0]}
    return Decision(searched[-1].t - searched[0].t, thinker.clock.seconds, parts)


@asynccontextmanager
async def large_page() -> AsyncIterator[tuple[EnvironmentFactory, Task]]:
    """Give a page of many nodes, each of whose buttons changes its text."""
    config = BrowserConfig(screenshots=False, width=1280, height=720)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        script = "<script>onclick = e => e.target.tagName == 'BUTTON' && (e.target.textContent += '.')</script>"
        (folder / "large.html").write_text(page(NODES) + script)
        address = await stack.enter_async_context(serve(folder))
        environments = BrowserFactory(await stack.enter_async_context(launch(config)), PageSetup(), config, isolated=True)
        yield environments, Task(id="bench/large", instruction="Look.", start=f"http://{address}/large.html")


@asynccontextmanager
async def place(name: str) -> AsyncIterator[tuple[EnvironmentFactory, Task]]:
    """Give the environments and the task of a place."""
    if name == "large page":
        async with large_page() as found:
            yield found
        return
    id = {"miniwob": "miniwob/click-checkboxes-large?seed=1", "trac": "trac/21"}[name]
    config = BrowserConfig(screenshots=False, settle_seconds=10.0, **({"sandbox": "required"} if name == "trac" else {}))
    async with registry.suite(id).environments(config) as environments:
        yield environments, registry.task(id)


@contextmanager
def form_server() -> Iterator[str]:
    """Run the form application on this machine; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with subprocess.Popen([sys.executable, Path(__file__).resolve().parent / "_form.py", port]) as server:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


@asynccontextmanager
async def replayed_forms() -> AsyncIterator[EnvironmentFactory]:
    """Give environments of the form application that return by reset and replay.

    Each has a session of its own, which a reset begins anew.
    """
    config = msgspec.structs.replace(CONFIG, sandbox="never", page_snapshots=False)
    with form_server() as address:
        hosts = {HOST: address}
        async with launch(config, hosts) as browser:  # takes longer than the server's start
            yield BrowserFactory(browser, PageSetup(hosts=hosts), config, isolated=True)


async def at_depths(iterations: int, depths: Sequence[int], noise: _common.Noise) -> dict[int, tuple[float, float]]:
    """Return the seconds of a decision by replay and with forks, by the number of actions committed before."""
    task, found = form(0.3).task, dict[int, tuple[float, float]]()
    for depth in depths:
        both = list[float]()
        for opened in (replayed_forms(), forms()):
            async with opened as environments:
                made = await decide(environments, task, ("button",), thinks=0.0, iterations=iterations, below=depth)
                both.append(made.seconds)
            noise.probe()
        found[depth] = both[0], both[1]
    return found


async def at_once(name: str, iterations: int) -> float:
    async with place(name) as (environments, task):
        await decide(environments, task, ROLES[name], thinks=0.0, iterations=2)
        return (await decide(environments, task, ROLES[name], thinks=0.0, iterations=iterations)).seconds


def versus(before: str, rounds: int, noise: _common.Noise) -> dict[str, list[float]]:
    """Return the ratios of a decision's seconds now to those at another commit, by place and round. The sides run by turns."""
    ratios = {name: list[float]() for name in ROLES}
    with tree(before) as base, tree("") as head:
        for number in range(rounds):
            for name, found in ratios.items():
                sides = dict[Path, float]()
                for there in (base, head) if number % 2 else (head, base):
                    command = [sys.executable, str(Path(__file__).resolve()), "--at-once", name]
                    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(there)}, capture_output=True, text=True, check=True)
                    sides[there] = float(done.stdout.split()[-1])
                    noise.probe()
                found.append(sides[head] / sides[base])
    return ratios


def parsed() -> argparse.Namespace:
    options = _common.parser(__doc__ or "")
    options.add_argument("--before", default="", metavar="COMMIT", help="commit to compare decisions with a model of 0 s with")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--depths", action="store_true", help="measure the decisions by depth alone")
    options.add_argument("--at-once", choices=tuple(ROLES), help="print the seconds of a decision with a model of 0 s, and end")
    return options.parse_args()


async def measure(quick: bool, noise: _common.Noise) -> dict[str, Decision]:
    """Measure each place, delay and number of workers."""
    found = dict[str, Decision]()
    for name in ("miniwob", "trac") if quick else ROLES:
        async with place(name) as (environments, task):
            for delay in (QUICK_DELAY,) if quick else DELAYS:
                for workers in (1,) if quick else WORKERS:
                    made = await decide(
                        environments, task, ROLES[name], thinks=delay, iterations=QUICK_ITERATIONS if quick else ITERATIONS, workers=workers
                    )
                    found[f"{name}, {delay:g} s, {workers} worker{'s' if workers > 1 else ''}"] = made
                    noise.probe()
    return found


def main() -> None:
    options, noise = parsed(), _common.Noise()
    if options.at_once:
        print(asyncio.run(at_once(options.at_once, ITERATIONS)))
        return
    if not (_common.ROOT / ".bench" / "venvs" / "sites").exists():
        _common.lacks("Trac is not installed: run shells/setup.sh --sites")
    try:
        find_runsc()
    except EnvironmentFailure as error:
        _common.lacks(str(error))
    figures, details = list[_common.Figure](), dict[str, Any]()
    if not options.depths:
        found = asyncio.run(measure(options.quick, noise))
        parts = list(next(iter(found.values())).parts)
        rows = [
            [name, f"{each.seconds:.2f}", f"{each.model:.2f}", *(f"{each.parts[part]:.2f}" for part in parts)]
            for name, each in found.items()
        ]
        _common.table(["decision, seconds", "whole", "model", *parts], rows)
        behind = f"{QUICK_DELAY if options.quick else DELAYS[-1]:g} s, 1 worker"
        worst = max(each.vs_model for name, each in found.items() if name.endswith(behind))
        figures.append(_common.Figure("decision_vs_model_2s", worst, 1.1, at_least=False))
        details["decisions"] = {name: {"seconds": each.seconds, "model": each.model, **each.parts} for name, each in found.items()}
    if not options.quick:
        depths = asyncio.run(at_depths(ITERATIONS, DEPTHS, noise))
        header = ["actions before", "by replay, s", "with forks, s", "ratio"]
        _common.table(header, [[str(n), f"{a:.2f}", f"{b:.2f}", f"{a / b:.1f}"] for n, (a, b) in depths.items()])
        figures.append(_common.Figure("decision_vs_replay", depths[10][0] / depths[10][1], 10))
        details["depths"] = depths
    if options.before:
        ratios = versus(options.before, options.rounds, noise)
        print(json.dumps(ratios))
        mean = statistics.geometric_mean(statistics.median(each) for each in ratios.values())
        figures.append(_common.Figure("decision_0s_vs_before", mean, 0.6, at_least=False))
        details |= {"before": options.before, "ratios": ratios}
    _common.finish(options, figures, noise, _common.versions("exact-agent", "playwright"), details)


if __name__ == "__main__":
    main()
