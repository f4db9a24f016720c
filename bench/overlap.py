"""Measure the share of restore time hidden behind model calls, and the speed-up of four workers in real environments.

The bench searches the form application (see _form.py; 0.3 s a page) in environments that fork. Policy and judge take as long as a model, 2
s by default, and give the same answers each time. From the journal: `wait` is the time that the search waited for an environment to
arrive; the used restores are those and the prefetched ones that the search then needed.

  restore_hidden      1 - wait / (seconds of all used restores); goal 0.9
  restore_hidden_first_visit  the same for a search of Trac, in environments that were never used before, behind a model of 1 s; goal 0.8
  hit_rate            share of the requested states that an environment had already reached
  wasted              share of the prefetched restores that were not needed
  speedup_4_workers   seconds of one worker over seconds of four, for the same iterations with a model that takes 1 s; the median of
                      three pairs, one after the other; goal 2.5

    python bench/overlap.py --json bench/results/overlap.json
    python bench/overlap.py --quick
"""

from __future__ import annotations

import asyncio
import hashlib
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import _common
from _environments import form, forms

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.benchmarks import registry
from exact.config import BrowserConfig, parse
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import EnvironmentFactory
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.runner import Runner, create, reopen
from exact.task import Task

PAGE_SECONDS = 0.3
FIRST = "trac/21"


def draw(*about: object) -> float:
    """Return a number in [0, 1) that is the same in each run."""
    return int.from_bytes(hashlib.blake2b(repr(about).encode(), digest_size=6).digest()) / 2**48


class Thinker:
    """A policy and a judge that take so many seconds and know nothing. The policy clicks elements of some roles."""

    def __init__(self, seconds: float, roles: Sequence[str] = ("button",)) -> None:
        self.seconds, self.roles = seconds, roles

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        await asyncio.sleep(self.seconds)
        buttons = [element.id for element in context.observation.elements if element.role in self.roles][:k]
        weights = [0.5 + draw(context.observation.fingerprint, button) for button in buttons]
        return tuple(
            Proposal(action=actions.parse(f"click [{button}]"), prior=weight / sum(weights), rationale="any")
            for button, weight in zip(buttons, weights, strict=True)
        )

    async def evaluate(self, context: Context) -> Evaluation:
        await asyncio.sleep(self.seconds)
        return Evaluation(value=0.3 + 0.4 * draw(context.observation.fingerprint), rationale="a guess")


class Overlap(NamedTuple):
    """Restores in a journal."""

    seconds: float
    wait: float
    used: float
    """Seconds of the restores used, those that were waited for included."""
    moved: int
    hits: int
    prepared: int

    @property
    def hidden(self) -> float:
        return 1 - self.wait / self.used if self.used else 0.0


class Pair(NamedTuple):
    """The same search with one worker and with four."""

    one: Overlap
    four: Overlap

    @property
    def speedup(self) -> float:
        return self.one.seconds / self.four.seconds


def overlap(journal: list[ev.AnyEvent]) -> Overlap:
    """Return the restores of one search."""
    ready = dict[int, float]()
    wait = used = 0.0
    moved = hits = prepared = 0
    for event in journal:
        if isinstance(event, ev.Prepared):
            if event.ahead < 0:
                ready[event.node] = event.seconds
                prepared += 1
        elif isinstance(event, ev.Acted) and event.ahead:
            wait, used, moved, hits = wait + event.seconds, used + ready.get(event.node, 0.0), moved + 1, hits + 1
        elif isinstance(event, ev.Arrived):
            cost = ready.get(event.node, 0.0) if event.prepared else event.seconds
            wait, used = wait + event.seconds, used + cost
            moved, hits = moved + (event.prepared or event.route != "reuse"), hits + event.prepared
    began = next(event.t for event in journal if isinstance(event, ev.Reset))
    ended = next(event.t for event in journal if isinstance(event, ev.Decided))
    return Overlap(ended - began, wait, used, moved, hits, prepared)


async def search(
    environments: EnvironmentFactory,
    iterations: int,
    thinks: float,
    task: Task | None = None,
    roles: Sequence[str] = ("button",),
    **more: Any,
) -> Overlap:
    """Search to one decision. task: another than that of the form application."""
    task = task or form(PAGE_SECONDS).task
    settings = parse(
        {
            "search": {"iterations": iterations, "k": 3, "depth": 5, "merging": "none", **more},
            "limits": {"actions": 1},
            "reflection": {"kind": "none"},
        }
    )
    thinker = Thinker(thinks, roles)
    with tempfile.TemporaryDirectory() as folder:
        run = create(Path(folder) / "run", (task,), settings)
        run, settings = reopen(run.path)
        runner = Runner(folder=run, config=settings, open_environments=lambda _: nullcontext(environments))
        agent = Agent(policy=thinker, value=thinker)
        await replace(runner, build_agent=lambda config, models: agent).run()
        return overlap(list(read_journal(run.task_folder(task) / "journal.jsonl")))


async def first_visit(iterations: int) -> Overlap:
    """Search an application of others behind a model of one second, in environments that were never used before."""
    task, config = registry.task(FIRST), BrowserConfig(screenshots=False, sandbox="required", settle_seconds=10.0)
    async with registry.suite(FIRST).environments(config) as environments:
        return await search(environments, iterations, 1.0, task, ("link", "button"), prefetch=1)


async def measure(quick: bool, thinks: float, noise: _common.Noise) -> tuple[dict[str, Overlap], list[Pair]]:
    """Measure searches without and with prefetched environments, then with one and with four workers, in turn."""
    iterations, crowd = (3, 6) if quick else (30, 32)
    ahead, pairs = dict[str, Overlap](), list[Pair]()
    async with forms() as environments:
        for spare in (1,) if quick else (0, 1):
            ahead[f"{spare} to spare"] = await search(environments, iterations, thinks, prefetch=spare)
            noise.probe()
        for _ in range(1 if quick else 3):
            one, four = [await search(environments, crowd, 1.0, workers=number, prefetch=1) for number in (1, 4)]
            pairs.append(Pair(one, four))
            noise.probe()
    ahead["first visit of Trac"] = await first_visit(3 if quick else 20)
    noise.probe()
    return ahead, pairs


def main() -> None:
    options = _common.parser(__doc__ or "")
    options.add_argument("--thinks", type=float, default=2.0, metavar="S", help="seconds for an answer of the model (default 2)")
    chosen = options.parse_args()
    noise = _common.Noise()
    ahead, pairs = asyncio.run(measure(chosen.quick, chosen.thinks, noise))
    workers = {
        f"{name}, {number}": each
        for number, pair in enumerate(pairs, 1)
        for name, each in zip(("1 worker", "4 workers"), pair, strict=True)
    }
    rows = [
        [name, f"{each.seconds:.1f}", f"{each.wait:.1f}", f"{each.used:.1f}", str(each.moved), str(each.hits), str(each.prepared)]
        for name, each in {**ahead, **workers}.items()
    ]
    _common.table(["search", "seconds", "waited", "restores used, s", "moved", "hits", "prepared"], rows)
    one = ahead["1 to spare"]
    figures = [
        _common.Figure("hit_rate", one.hits / max(1, one.moved)),
        _common.Figure("wasted", (one.prepared - one.hits) / max(1, one.prepared)),
        _common.Figure("restore_hidden", one.hidden, 0.9),
        _common.Figure("restore_hidden_first_visit", ahead["first visit of Trac"].hidden, 0.8),
        _common.Figure("speedup_4_workers", statistics.median(pair.speedup for pair in pairs), 2.5),
    ]
    details = {
        "thinks": chosen.thinks,
        "page_seconds": PAGE_SECONDS,
        "ahead": {name: each._asdict() for name, each in ahead.items()},
        "workers": {name: each._asdict() for name, each in workers.items()},
        "speedups": [pair.speedup for pair in pairs],
    }
    _common.finish(chosen, figures, noise, _common.versions("exact-agent", "playwright"), details)


if __name__ == "__main__":
    main()
