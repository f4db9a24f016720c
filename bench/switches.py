"""Count the files of exact/ that parts of an attempt in a real browser enter, and the switches between them.

A profiler notes each function of the package that is called or resumed, in all threads and tasks, except while it measures nothing. A file
is entered when one of its functions is; a switch is a function in another file than the function before it in the same thread. A coroutine
that is resumed enters each of its callers again, as Python does. The agent is a scripted language model over HTTP with one worker, and the
tasks are pages of MiniWoB++; `built-in` simulations have the built-in policy and value function instead.

  first observation   from the opened journal to the observation of the task's start
  simulation          a piece of work with a step: arrival, action, evaluation and proposals
  restore             one arrival of a simulated environment by another route than staying or stepping on
  to the prompt       from a need of an answer to the request of the model: the path is read, and the prompt is written
  model call          from the request to the journalled answer

  files_a_simulation, switches_a_simulation   medians over the built-in simulations of all pages
  files_..., switches_...                     the same for the other parts, with the language model

    python bench/switches.py --json bench/results/switches.json
    python bench/switches.py --pairs        the pairs of files with the most switches in built-in simulations
"""

from __future__ import annotations

import asyncio
import functools
import re
import statistics
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from _common import Figure, Noise, finish, parser, table, versions

import exact
from exact.benchmarks.miniwob import MiniWob
from exact.config import parse
from exact.environments.restore.slot import Slot
from exact.models.scripted import Question, ScriptedServer
from exact.runs.attempt.agent_calls import AgentCalls
from exact.runs.journal import events as ev
from exact.runs.journal.spending import JournalledModel
from exact.runs.runner import Runner, create, reopen
from exact.search.base import Selection
from exact.task import Task

PACKAGE = str(Path(exact.__file__).parent)
PAGES = ("click-tab-2?seed=1", "click-checkboxes-large?seed=1", "click-collapsible-2?seed=1")
PARTS = ("first observation", "simulation", "restore", "to the prompt", "model call")


@dataclass
class Passage:
    """The way of one part of an attempt through the files of the package."""

    files: set[str] = field(default_factory=set)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    last: dict[int, str] = field(default_factory=dict)
    """By thread."""

    def enter(self, file: str) -> None:
        thread = threading.get_ident()
        before, self.last[thread] = self.last.get(thread), file
        self.files.add(file)
        if before not in (None, file):
            self.pairs[before or "", file] += 1


class Tracer:
    """Passages of an attempt, by their part. Several parts may be under way at once, one within the other."""

    def __init__(self) -> None:
        self.under_way: dict[str, Passage] = {}
        self.done: defaultdict[str, list[Passage]] = defaultdict(list)

    def begin(self, part: str) -> None:
        self.under_way[part] = Passage()

    def end(self, part: str, *, counts: bool = True) -> None:
        passage = self.under_way.pop(part, None)
        if passage is not None and counts:
            self.done[part].append(passage)

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and self.under_way and frame.f_code.co_filename.startswith(PACKAGE):
            for passage in self.under_way.values():
                passage.enter(frame.f_code.co_filename[len(PACKAGE) + 1 :])

    def watch(self, task: Task, state: object, event: ev.AnyEvent) -> None:
        """Delimit the first observation and the simulations by the events of the journal."""
        match event:
            case ev.Opened():
                self.begin("first observation")
            case ev.Reset():
                self.end("first observation")
            case ev.Asked(answer=Selection(needs=needs)) if "step" in needs:
                self.end("simulation")
                self.begin("simulation")
            case ev.Asked() | ev.Decided():
                self.end("simulation")


@contextmanager
def traced() -> Iterator[Tracer]:
    """Trace the package during the block."""
    tracer = Tracer()

    def around(owner: Any, name: str, begins: str, ends: str, counts: Callable[[Any], bool] = lambda _: True) -> tuple[Any, str, Any]:
        inner = getattr(owner, name)

        @functools.wraps(inner)
        async def outer(*args: Any, **options: Any) -> Any:
            if ends != begins:
                tracer.end(ends)
            tracer.begin(begins)
            try:
                result = await inner(*args, **options)
                if ends == begins or begins == "model call":
                    tracer.end(begins, counts=counts(result))
                return result
            finally:
                tracer.end(begins, counts=False)

        setattr(owner, name, outer)
        return owner, name, inner

    wrapped = [
        around(Slot, "arrive", "restore", "restore", lambda arrival: arrival.route not in ("reuse", "advance")),
        around(AgentCalls, "proposals", "to the prompt", ""),
        around(JournalledModel, "complete", "model call", "to the prompt"),
    ]
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        yield tracer
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        for owner, name, inner in wrapped:
            setattr(owner, name, inner)


def answer(question: Question, sample: int) -> str:
    """Answer as a model that clicks any element, and as a judge that approves."""
    if "Verdict" in question.messages[0][1]:
        return "It is clear from the page.\nVerdict: B"
    ids = re.findall(r"\[(\d+)\] (?:button|checkbox|tab|link|heading)", question.messages[-1][1])
    return f"Any.\nAction: click [{ids[sample % len(ids)]}]"


async def attempt(page: str, iterations: int, *, llm: bool) -> Tracer:
    """Search one page to a commit."""
    async with ScriptedServer(answer) as server:
        settings: dict[str, Any] = {
            "search": {"algorithm": "mcts", "iterations": iterations, "k": 3},
            "reflection": {"kind": "none"},
            "limits": {"actions": 1},
        }
        if llm:
            model = {"model": "scripted", "base_url": server.base_url, "price": {"input": 0, "output": 0}}
            settings |= {"policy": {"kind": "llm", "samples": 4}, "value": {"kind": "llm", "samples": 1}, "models": {"policy": model}}
        suite = MiniWob()
        with tempfile.TemporaryDirectory() as folder:
            create(Path(folder) / "run", (suite.task(f"miniwob/{page}"),), parse(settings))
            run, config = reopen(Path(folder) / "run")
            async with suite.environments(config.browser) as environments:
                with traced() as tracer:
                    opened = nullcontext(environments)
                    await Runner(folder=run, config=config, open_environments=lambda _: opened, watch=tracer.watch).run()
    return tracer


def medians(passages: list[Passage]) -> tuple[float, float]:
    """Return the files entered and the switches, at the median."""
    return statistics.median(len(each.files) for each in passages), statistics.median(each.pairs.total() for each in passages)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--pairs", action="store_true", help="print the pairs of files with the most switches, and nothing else")
    chosen, noise = options.parse_args(), Noise()
    found = defaultdict[str, list[Passage]](list)
    for page in PAGES[:1] if chosen.quick else PAGES:
        for llm in (False, True):
            noise.probe()
            for part, passages in asyncio.run(attempt(page, 6 if chosen.quick else 20, llm=llm)).done.items():
                if llm or part == "simulation":
                    found[part if llm else f"{part}, built-in"] += passages
    built_in = found["simulation, built-in"]
    if chosen.pairs:
        pairs = sum((each.pairs for each in built_in), Counter[tuple[str, str]]())
        table(["from", "to", "a simulation"], [[*pair, f"{count / len(built_in):.1f}"] for pair, count in pairs.most_common(60)])
        return
    counted = {part: medians(passages) for part, passages in found.items()}
    table(
        ["part", "passages", "files", "switches"],
        [[part, str(len(found[part])), f"{files:.0f}", f"{switches:.0f}"] for part, (files, switches) in sorted(counted.items())],
    )
    print()
    figures = list[Figure]()
    for part in PARTS:
        name = part.replace(" ", "_") + ("_llm" if part == "simulation" else "")
        files, switches = counted.get(part, (0.0, 0.0))
        figures += [Figure(f"files_{name}", files), Figure(f"switches_{name}", switches)]
    files, switches = counted["simulation, built-in"]
    figures += [Figure("files_a_simulation", files, 80, at_least=False), Figure("switches_a_simulation", switches, 1994, at_least=False)]
    details = {"parts": {part: {"passages": len(found[part]), "files": f, "switches": s} for part, (f, s) in counted.items()}}
    finish(chosen, figures, noise, versions("exact-agent", "playwright", "miniwob"), details)


if __name__ == "__main__":
    main()
