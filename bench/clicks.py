"""Compare `click [id]` with Playwright's click: which element receives it, on 60 pages.

About 200 elements of pages of our own, in kinds that pages of others have (see _click_pages.py), and of MiniWoB++, Trac and Wagtail. Each
element is clicked twice, each time on the page as it is after a reset: by the action `click [id]`, and by Playwright's
`locator.click()` on the same element. A listener in every document, after the place where our guard stops events, records which elements
received the press and the click. So that no click changes a site, nothing follows from it.

A click reached what was *meant* if it was received by the element, a part of it that is no control of its own, its control, or its label.

  agreement         share of the elements that Playwright's click reaches which `click [id]` reaches too
  wrong_targets     elements where `click [id]` pressed or clicked anything else, and Playwright's click did not do the same
  click_ms          median milliseconds of `click [id]`, without the observation after it, where both clicked
  playwright_ms     the same of Playwright's click

Playwright gives up after `PATIENCE` seconds. Elements that it cannot find (in closed shadow roots) count as not clicked.

Then 40 pages change on a signal between the observation and the action, at rest and in mid-animation (see _changing_pages.py), and, in the
whole run, three more while the agent thinks for ten seconds. A page notes in its own words what was acted on.

  changed_wrong_targets  pages on which anything else than what was meant was acted on, or anything at all that is not there any more
  refound                share of the pages that still have exactly one element that was meant, on which it was acted on
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from _changing_pages import CHANGING, SLOW, Changing
from _click_pages import MINIWOB, PAGES, SITES, STYLE
from _common import Figure, Noise, finish, parser, table, versions
from playwright.async_api import Error

from exact.benchmarks.miniwob import MiniWob
from exact.benchmarks.miniwob.pages import serve
from exact.benchmarks.sites.suite import trac, wagtail
from exact.config import BrowserConfig
from exact.environments.base import step_in
from exact.environments.browser import BrowserEnvironment, BrowserFactory, PageSetup, launch
from exact.errors import ActionError
from exact.observation import Element
from exact.task import Task

CONFIG = BrowserConfig(screenshots=False, width=600, height=400, sandbox="never")
PATIENCE = 2.0
"""Seconds that Playwright's click may take."""
HEARD = Path(__file__).with_name("_heard.js").read_text("utf-8")
ROLES = (
    *("button", "link", "checkbox", "radio", "textbox", "searchbox", "combobox", "option", "menuitem", "tab", "DisclosureTriangle"),
    *("graphics-symbol", "StaticText"),
)
"""Roles of elements that are clicked."""
MARK = "function() { (this.nodeType === 1 ? this : this.parentElement).setAttribute('data-bench', ''); return true }"


@dataclass(frozen=True)
class Click:
    """What became of one click."""

    received: tuple[tuple[str, str, str], ...]
    """Kind of the event, `meant`, `inside` (a control inside the element) or `other`, and where the receiver is if it was not meant."""
    refused: str
    seconds: float

    @property
    def reached(self) -> bool:
        return any(kind == "click" and whom == "meant" for kind, whom, _ in self.received)

    @property
    def strayed(self) -> bool:
        return any(whom != "meant" for _, whom, _ in self.received)


@dataclass(frozen=True)
class Pair:
    """Both clicks on one element."""

    kind: str
    page: str
    element: str
    ours: Click
    theirs: Click

    @property
    def wrong(self) -> bool:
        return self.ours.strayed and self.ours.received != self.theirs.received


@dataclass(frozen=True)
class Met:
    """What became of an action on a page that changed."""

    kind: str
    number: int
    refindable: bool
    wrong: bool
    reached: bool
    noted: tuple[str, ...]
    refused: str


def chosen(elements: tuple[Element, ...], most: int) -> list[int]:
    """Return the indices of up to `most` elements, evenly spread over those that one would click."""
    found = [i for i, each in enumerate(elements) if each.role in ROLES and "disabled" not in each.states]
    found = [i for i in found if elements[i].role != "option" or elements[i].box]  # an option of a closed drop-down is drawn nowhere
    return [found[i * len(found) // most] for i in range(most)] if len(found) > most else found


class Bench:
    """Clicks on the elements of pages in one environment."""

    def __init__(self, environment: BrowserEnvironment, noise: Noise) -> None:
        self.environment, self.noise = environment, noise
        self.pairs: list[Pair] = []

    async def page(self, kind: str, name: str, task: Task, most: int) -> None:
        """Click elements of the page that a task starts at."""
        seen = await self.environment.reset(task)
        for index in chosen(seen.elements, most):
            self.noise.probe()
            ours, theirs = await self._ours(task, index), await self._theirs(task, index)
            element = seen.elements[index]
            self.pairs.append(Pair(kind, name, f"{element.role} {element.name!r}", ours, theirs))
        print(f"{len(self.pairs)} elements: {kind} {name}", file=sys.stderr, flush=True)

    async def _ours(self, task: Task, index: int) -> Click:
        id = await self._fresh(task, index)
        action = self.environment.actions.parse(f"click [{id}]")
        refused, start = "", time.perf_counter()
        try:
            await self.environment.episode.interaction.act(action)
        except ActionError as error:
            refused = str(error)
        return await self._click(refused, time.perf_counter() - start)

    async def _theirs(self, task: Task, index: int) -> Click:
        await self._fresh(task, index)
        refused, start = "", time.perf_counter()
        for frame in self.environment.page.frames:
            target = frame.locator("[data-bench]")
            if await target.count():
                start = time.perf_counter()
                try:
                    await target.click(timeout=PATIENCE * 1000)
                except Error as error:
                    refused = str(error).splitlines()[0]
                break
        else:
            refused = "not found"
        return await self._click(refused, time.perf_counter() - start)

    async def _fresh(self, task: Task, index: int) -> str:
        """Open the page again and mark an element of it. Return the element's id."""
        seen = await self.environment.reset(task)
        location = self.environment.episode.observer.ids.location(seen.elements[index].id)
        assert location is not None
        await self.environment.episode.tabs.present.call(location.backend, location.frame, MARK)
        for frame in self.environment.page.frames:
            await frame.evaluate(HEARD)
        return seen.elements[index].id

    async def _click(self, refused: str, seconds: float) -> Click:
        await self.environment.episode.tabs.settle()
        heard = [each for frame in self.environment.page.frames for each in await frame.evaluate("window.heard ?? []")]
        return Click(tuple((kind, whom, where) for kind, whom, where in heard), refused, seconds)


async def own_pages(bench: Bench, address: str, quick: bool) -> None:
    """Click on pages of our own, which are served at an address."""
    for kind, pages in PAGES.items():
        for number in range(1 if quick else len(pages)):
            name = f"{kind.replace(' ', '-')}-{number}"
            await bench.page(
                kind, name, Task(id=f"clicks/{name}", instruction="Look.", start=f"http://{address}/{name}.html"), 1 if quick else 5
            )


async def met(environment: BrowserEnvironment, page: Changing, number: int, start: str) -> Met:
    """Act on a page that changes once it was observed."""
    seen = await environment.reset(Task(id=f"changing/{number}", instruction="Look.", start=start))
    like = [[each.id for each in seen.elements if (each.role, each.name) == (role, name)] for role, name, _ in page.targets]
    ids = [found[nth] for found, (_, _, nth) in zip(like, page.targets, strict=True)]
    await environment.page.evaluate("change()")
    await asyncio.sleep(page.seconds)
    refused = ""
    try:
        came = await step_in(environment, environment.actions.parse(page.action.format(*ids)), seen.fingerprint)
        refused = came.info.get("refused", "")
    except ActionError as error:
        refused = str(error)
    noted = tuple(await environment.page.evaluate("notes"))
    allowed = {(page.meant,)} if page.refindable else {(), (page.meant,)} if page.late else {()}
    wrong = noted not in allowed and noted != ()
    return Met(page.kind, number, page.refindable, wrong, noted == (page.meant,), noted, refused)


async def changing_pages(environment: BrowserEnvironment, address: str, pages: list[Changing]) -> list[Met]:
    """Act on pages that change, which are served at an address."""
    return [await met(environment, page, i, f"http://{address}/changing-{i}.html") for i, page in enumerate(pages)]


async def measure(quick: bool) -> tuple[list[Pair], list[Met], Noise]:
    noise, pairs, changing = Noise(), list[Pair](), [*CHANGING, *(() if quick else SLOW)]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for kind, pages in PAGES.items():
            for number, page in enumerate(pages):
                (folder / f"{kind.replace(' ', '-')}-{number}.html").write_text(STYLE + page)
        for number, each in enumerate(changing):
            (folder / f"changing-{number}.html").write_text(each.html)
        address = await stack.enter_async_context(serve(folder))
        browser = await stack.enter_async_context(launch(CONFIG))
        async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=True).open(simulation=False) as environment:
            changed = await changing_pages(environment, address, changing)
            await own_pages(bench := Bench(environment, noise), address, quick)
            pairs += bench.pairs
    suites: dict[str, tuple[Any, list[Task]]] = {"miniwob": (MiniWob(), [MiniWob().task(f"miniwob/{each}?seed=1") for each in MINIWOB])}
    for suite, (id, addresses) in zip((trac(), wagtail()), SITES.values(), strict=True):
        task = suite.task(f"{suite.name}/{id}")
        host = urlsplit(task.start)
        suites[suite.name] = suite, [msgspec.structs.replace(task, start=f"http://{host.netloc}{each}") for each in addresses]
    for name, (suite, tasks) in suites.items():
        if quick and name != "miniwob":
            continue
        async with suite.environments(CONFIG) as environments, environments.open(simulation=False) as environment:
            bench = Bench(environment, noise)
            for task in tasks[: 2 if quick else None]:
                await bench.page(name, task.id if name == "miniwob" else task.start, task, 1 if quick else 7 if name == "miniwob" else 5)
            pairs += bench.pairs
    return pairs, changed, noise


def rows(pairs: list[Pair]) -> Iterator[list[str]]:
    """Yield the rows of the table: what became of the clicks of each kind, and milliseconds."""
    for kind in [*dict.fromkeys(each.kind for each in pairs), "all"]:
        some = [each for each in pairs if kind in (each.kind, "all")]
        theirs = [each for each in some if each.theirs.reached]
        both = [each for each in theirs if each.ours.reached]
        ours = [each for each in some if each.ours.reached and not each.theirs.reached]
        counts = (len({each.page for each in some}), len(some), len(theirs), len(both), len(ours), sum(each.wrong for each in some))
        yield [kind, *map(str, counts), *(f"{median(each):.0f}" for each in milliseconds(both))]


def milliseconds(pairs: list[Pair]) -> tuple[list[float], list[float]]:
    """Return the milliseconds of our clicks and of Playwright's."""
    return [each.ours.seconds * 1000 for each in pairs], [each.theirs.seconds * 1000 for each in pairs]


def median(values: list[float]) -> float:
    """Return the median; NaN of nothing."""
    return statistics.median(values) if values else float("nan")


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    pairs, changed, noise = asyncio.run(measure(options.quick))
    table(["kind", "pages", "elements", "Playwright reaches", "we too", "we alone", "wrong", "ms", "Playwright ms"], list(rows(pairs)))
    for each in pairs:
        if each.wrong or (each.theirs.reached and not each.ours.reached):
            print(f"{each.page}, {each.element}: {each.ours.refused or each.ours.received}; Playwright: {each.theirs.received}")
    for met in changed:
        if met.wrong or met.reached != met.refindable:
            print(f"changing page {met.number}, {met.kind}: {met.noted or met.refused}")
    theirs = [each for each in pairs if each.theirs.reached]
    both = [each for each in theirs if each.ours.reached]
    there = [each for each in changed if each.refindable]
    ours_ms, theirs_ms = map(median, milliseconds(both))
    figures = [
        Figure("agreement", len(both) / len(theirs), 1.0),
        Figure("wrong_targets", sum(each.wrong for each in pairs), 0, at_least=False),
        Figure("changed_wrong_targets", sum(each.wrong for each in changed), 0, at_least=False),
        Figure("refound", sum(each.reached for each in there) / len(there), 0.9),
        Figure("click_ms", ours_ms),
        Figure("playwright_ms", theirs_ms),
    ]
    details = {"elements": len(pairs), "pages": len({each.page for each in pairs}), "clicks": [asdict(each) for each in pairs]}
    details["changing"] = [asdict(each) for each in changed]
    finish(options, figures, noise, versions("exact-agent", "playwright", "miniwob"), details)


if __name__ == "__main__":
    main()
