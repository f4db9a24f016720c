"""Precision and recall of the presumption of writes, on steps in Trac, Wagtail, MoinMoin and MiniWoB++.

Each task is walked in the live environment along its reference, with two random clicks after it (MiniWoB++: as the built-in agent acts,
without these). Of each step is recorded what was presumed of it before it was carried out, and what it then did. A step wrote if it sent a
request whose method writes, or a GET that changes MoinMoin by its source; on MiniWoB++, whose pages send nothing, if it ended the episode.

The same walks are then taken in a simulation under `speculation: observe`, steps that were not presumed to write included.

  precision_..., recall_...   of the presumption, by application
  unpresumed_writes           observed writes that were not presumed
  sent_under_observe          writes that a simulation sent; of MoinMoin, that the wiki itself received

    python bench/presumption.py --json bench/results/presumption.json     about 10 minutes on two quiet cores
    python bench/presumption.py --quick                                   two tasks of Trac and five of MiniWoB++
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import _common
import _ways as ways
from _guided import meant, references
from _moin.ways import WAYS

from exact.action import Action
from exact.agents.agent import build_agent
from exact.benchmarks import registry
from exact.benchmarks.open import open_environments
from exact.benchmarks.own.files import read
from exact.config import Config, parse
from exact.context import Context
from exact.environments.base import SAFE_METHODS, Environment, EnvironmentFactory, SideEffect
from exact.environments.browser.environment import BrowserEnvironment
from exact.environments.browser.presume.presume import StepHistory, WritePresumption
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Task

Next = Callable[[int, Observation], "Awaitable[Action | None]"]
"""Returns the next action of a walk: of a step's number, in a state; None at its end."""
CONFIG = parse({"browser": {"screenshots": False, "sandbox": "never", "speculation": "observe", "settle_seconds": 2.0}})
MOST_STEPS, MOST_OF_AGENT = 14, 6
"""Steps of one walk, and those of the built-in agent."""
SITES = ("trac", "wagtail")
MINIWOB = [
    "click-button",
    "click-dialog",
    "click-link",
    "click-tab",
    "click-checkboxes",
    "click-option",
    "enter-text",
    "enter-password",
    "login-user",
    "search-engine",
    "use-autocomplete",
    "email-inbox",
    "social-media",
    "choose-list",
    "enter-date",
    "book-flight",
    "form-sequence",
    "read-table",
    "navigate-tree",
    "click-shades",
    "focus-text",
    "click-menu",
    "count-shape",
    "use-spinner",
    "tic-tac-toe",
    "click-collapsible",
    "multi-layouts",
    "terminal",
    "simple-arithmetic",
    "guess-number",
]


class Walks:
    """Walks of one application, and the steps that they recorded."""

    def __init__(
        self, application: str, is_write: Callable[[Sequence[SideEffect], bool], bool], *, received: Callable[[], int] | None = None
    ) -> None:
        """`received`: number of writes that the server has received so far; None: those that the steps report are counted."""
        self.application, self._is_write, self._received = application, is_write, received
        self.rows: list[dict[str, Any]] = []
        self.sent = self.simulated = 0

    async def walk(self, environments: EnvironmentFactory, task: Task, follow: Callable[[Environment], Next], *, clicks: int = 2) -> None:
        """Walk a task live, then in a simulation, with the same random clicks at its end."""
        for simulation in (False, True):
            async with environments.open(simulation=simulation) as environment:
                before = self._received() if self._received else 0
                try:
                    await self._walk(environment, task, follow(environment), simulation=simulation, clicks=clicks)
                except EnvironmentFailure as error:
                    print(f"{task.id}: {error}", file=sys.stderr)
                if self._received and simulation:
                    self.sent += self._received() - before
        print(f"{task.id}: {len(self.rows)} steps", file=sys.stderr, flush=True)

    async def _walk(self, environment: Environment, task: Task, following: Next, *, simulation: bool, clicks: int) -> None:
        seen, dice = await environment.reset(task), random.Random(task.id)
        presumption, number = WritePresumption(StepHistory()), 0

        async def click(_: int, seen: Observation) -> Action | None:
            return clicked(seen, dice, environment)

        ways_to_go: list[Next] = [following, *[click] * clicks]
        while ways_to_go:
            action = await ways_to_go[0](number, seen)
            number += 1
            if action is None or action.name == "stop" or number > MOST_STEPS:
                ways_to_go.pop(0)
                number = 0 if action is None else number
                continue
            if ways_to_go[0] is not following:
                ways_to_go.pop(0)
            presumed = presumption.of(action, seen, cast(BrowserEnvironment, environment).episode.observer.controls)
            try:
                step = await environment.step(action)
            except ActionError:
                continue
            if simulation:
                self.simulated += 1
                self.sent += 0 if self._received else sum(effect.is_write for effect in step.effects)
            else:
                wrote = self._is_write(step.effects, step.terminated)
                presumption.note(action, seen, wrote=wrote, complete=False)
                label = next((f'{each.role} "{each.name}"' for each in seen.elements if each.id in action.elements), "")
                self.rows.append(
                    {"task": task.id, "action": action.key, "element": label, "url": seen.url, "presumed": presumed.why if presumed else "",
                     "wrote": wrote, "requests": [f"{effect.method} {effect.url}" for effect in step.effects if effect.kind == "request"]}
                )  # fmt: skip
            if step.terminated or step.observation is None:
                return
            seen = step.observation


def clicked(seen: Observation, dice: random.Random, environment: Environment) -> Action | None:
    """Return a click on a random button or link, buttons twice as likely; None where there is none."""
    buttons, links = ([each.id for each in seen.elements if each.role == role and each.visible] for role in ("button", "link"))
    found = (buttons if buttons and dice.random() < 0.67 else links) or buttons
    return environment.actions.action("click", dice.choice(found)) if found else None


def by_method(effects: Iterable[SideEffect], terminated: bool) -> bool:
    """Return whether a step sent a request whose method writes."""
    return any(each.kind == "request" and each.method not in SAFE_METHODS and each.write is not False for each in effects)


def on_moin(effects: Sequence[SideEffect], terminated: bool) -> bool:
    """Return whether a step sent what changes MoinMoin, by its source."""
    from third_party import MOIN

    sent = [f"{each.method} {'/' + each.url.partition('://')[2].partition('/')[2]}" for each in effects if each.kind == "request"]
    return any(MOIN.writes.match(each) for each in sent)


async def on_sites(name: str, quick: bool) -> Walks:
    """Walk the tasks of Trac or Wagtail along their references."""
    walks, known = Walks(name, by_method), references()
    tasks = [registry.task(f"{each.id.partition('?')[0]}") for each in registry.expand((f"{name}/@writes",))][: 2 if quick else None]
    async with registry.suite(tasks[0].id).environments(CONFIG.browser) as environments:
        for task in tasks:
            steps = known[task.id.partition("?")[0]]

            def follow(environment: Environment, steps: list[Any] = steps) -> Next:
                async def following(number: int, seen: Observation) -> Action | None:
                    return meant(steps[number], seen, environment.actions) if number < len(steps) else None

                return following

            await walks.walk(environments, task, follow)
    return walks


async def on_miniwob(quick: bool) -> Walks:
    """Walk tasks of MiniWoB++ as the built-in agent acts, without random clicks."""
    walks = Walks("miniwob", lambda effects, terminated: terminated)
    agent = build_agent(Config(), lambda role: None)  # type: ignore[arg-type,return-value]
    tasks = [registry.task(f"miniwob/{name}?seed=3") for name in (MINIWOB[:5] if quick else MINIWOB)]
    async with registry.suite(tasks[0].id).environments(CONFIG.browser) as environments:
        for task in tasks:

            def follow(environment: Environment, task: Task = task) -> Next:
                async def following(number: int, seen: Observation) -> Action | None:
                    context = Context(task=task.shown, instruction=seen.instruction or task.instruction, observation=seen)
                    found = await agent.policy.propose(context, environment.actions, 3)
                    return max(found, key=lambda each: each.prior).action if found and number < MOST_OF_AGENT else None

                return following

            await walks.walk(environments, task, follow, clicks=0)
    return walks


@asynccontextmanager
async def moin(folder: Path) -> AsyncIterator[Sequence[Task]]:
    """Run MoinMoin and yield its tasks."""
    import third_party

    os.environ["MOIN_PASSWORD"] = third_party.PASSWORD
    port = third_party.free_port()
    with third_party.made(folder), third_party.server(third_party.MOIN, folder, port):
        yield read(third_party.site_files(third_party.MOIN, folder / "site", port, "outside"))


async def on_wiki(folder: Path) -> Walks:
    """Walk the tasks of MoinMoin along their ways."""
    from third_party import MOIN, received

    log = folder / "wiki" / "served" / "requests.jsonl"
    walks = Walks("moin", on_moin, received=lambda: len(received(MOIN, log)))
    async with moin(folder / "wiki") as tasks:
        for task in tasks:
            way = WAYS.way(task.instruction)

            def follow(environment: Environment, way: list[ways.Step] = way) -> Next:
                async def following(number: int, seen: Observation) -> Action | None:
                    text = ways.next_step(way, f"URL: {seen.url}\n{seen.text}")[1]
                    return environment.actions.parse(text) if text else None

                return following

            async with open_environments(task, CONFIG, benchmark=False) as environments:
                await walks.walk(environments, task, follow)
    return walks


async def measure(quick: bool) -> list[Walks]:
    """Walk all applications."""
    import third_party

    found = [await on_sites(name, quick) for name in (SITES[:1] if quick else SITES)]
    if not quick and third_party.MOIN.interpreter().exists():
        with tempfile.TemporaryDirectory() as folder:
            found.append(await on_wiki(Path(folder)))
    return [*found, await on_miniwob(quick)]


def main() -> None:
    options = _common.parser(__doc__ or "").parse_args()
    noise = _common.Noise()
    noise.probe()
    walks = asyncio.run(measure(options.quick))
    figures, lines = list[_common.Figure](), list[list[str]]()
    for each in walks:
        wrote, presumed = sum(row["wrote"] for row in each.rows), sum(bool(row["presumed"]) for row in each.rows)
        both = sum(bool(row["wrote"] and row["presumed"]) for row in each.rows)
        lines.append([each.application, *map(str, (len(each.rows), wrote, presumed, both, each.simulated, each.sent))])
        if presumed:
            figures.append(_common.Figure(f"precision_{each.application}", both / presumed))
        if wrote:
            figures.append(_common.Figure(f"recall_{each.application}", both / wrote))
    _common.table(["application", "steps", "wrote", "presumed", "both", "simulated", "sent"], lines)
    missed = [row for each in walks for row in each.rows if each.application != "miniwob" and row["wrote"] and not row["presumed"]]
    for row in missed:
        print(f"not presumed: {row['task']} {row['action']} {row['element']}: {row['requests']}")
    figures += [
        _common.Figure("unpresumed_writes", len(missed)),
        _common.Figure("sent_under_observe", sum(each.sent for each in walks), 0, at_least=False),
    ]
    noise.probe()
    rows = {each.application: each.rows for each in walks}
    _common.finish(options, figures, noise, _common.versions("exact-agent", "playwright"), {"steps": rows})


if __name__ == "__main__":
    main()
