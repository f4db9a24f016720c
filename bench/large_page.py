"""Measure observations of a page of 10,000 nodes against the browser's own time, and the growth of memory.

CDP's own time is that of the two commands of an observation, `DOMSnapshot.captureSnapshot` and `Accessibility.getFullAXTree`, sent
together over the same session and awaited, as an observation sends them. An observation adds the join of both, boxes and visibility, ids,
text, and the fingerprint. Both are measured in turn on the same page. After them one row in a hundred changes and the page is observed
again, where only the change is asked of the accessibility tree. Then the page is observed 1,000 times while one of its rows changes each
time, and the memory after the first 200 observations is compared with that at the end. A page of 20,000 nodes is observed last.

  observe_vs_cdp        seconds of an observation of the whole over seconds of CDP's part: median of the rounds' ratios
  change_vs_whole       seconds of an observation after a change of one percent over those of the whole, likewise
  observe_20000_s       seconds of an observation of the whole of 20,000 nodes, median
  memory_growth_mib     resident memory after the last observation, less that after the first fifth
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
from _common import Figure, Noise, finish, parser, table, versions

from exact.benchmarks.miniwob.pages import serve
from exact.config import BrowserConfig
from exact.environments.browser import BrowserEnvironment, BrowserFactory, PageSetup, launch
from exact.environments.browser.observe import capture, describe
from exact.environments.browser.observe.dom import STYLES
from exact.environments.browser.page.cdp import raw_send
from exact.task import Task

NODES = 10_000
ROW = "<li><a href=/{0}>Row {0}</a><button>Open {0}</button>"
"""Five nodes: an item, a link, a button, and their texts."""
CONFIG = BrowserConfig(screenshots=False, width=1280, height=720)
CHANGE = "n => { for (let i = 0; i < document.links.length; i += 100) document.links[i].textContent = `Row ${i} ${n}` }"


def page(nodes: int) -> str:
    """HTML of a page with so many nodes."""
    return f"<!doctype html><title>Large</title><ul>{''.join(ROW.format(i) for i in range(nodes // 5))}</ul>"


async def by_cdp(environment: BrowserEnvironment) -> float:
    """Seconds that the browser's part of an observation takes."""
    send, frame = raw_send(environment.episode.tabs.present.cdp), environment.episode.tabs.present.main_frame
    start = time.perf_counter()
    drawn = send("DOMSnapshot.captureSnapshot", {"computedStyles": list(STYLES)})
    await asyncio.gather(drawn, send("Accessibility.getFullAXTree", {"frameId": frame}))
    return time.perf_counter() - start


async def by_us(environment: BrowserEnvironment, *, whole: bool) -> tuple[float, int]:
    """Seconds that an observation takes, and how many elements it has. `whole`: nothing is known of the page."""
    if whole:
        environment.episode.tabs.present.accessible.forget()
    start = time.perf_counter()
    seen = capture.build_capture(
        environment.episode.tabs.present,
        environment.episode.observer.ids,
        CONFIG,
        await asyncio.gather(*capture.capture_commands(environment.episode.tabs.present, environment.episode.tabs.config)),
    )
    describe.elements_text(seen.elements)
    describe.fingerprint(seen.url, seen.elements)
    return time.perf_counter() - start, len(seen.elements)


def resident() -> float:
    """MiB of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


async def measure(rounds: int, observations: int) -> dict[str, Any]:
    noise, elements = Noise(), 0
    ratios, theirs, ours, changed, double = list[float](), list[float](), list[float](), list[float](), list[float]()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "large.html").write_text(page(NODES))
        (folder / "double.html").write_text(page(2 * NODES))
        address = await stack.enter_async_context(serve(folder))
        environments = BrowserFactory(await stack.enter_async_context(launch(CONFIG)), PageSetup(), CONFIG, isolated=True)
        environment = await stack.enter_async_context(environments.open(simulation=False))
        task = Task(id="bench/large", instruction="Look.", start=f"http://{address}/large.html")
        await environment.reset(task)
        for number in range(-2, rounds):  # the first two warm up
            noise.probe()
            one = await by_cdp(environment)
            other, elements = await by_us(environment, whole=True)
            await environment.page.evaluate(CHANGE, number)
            again, _ = await by_us(environment, whole=False)
            if number >= 0:
                changed.append(again / other)
                theirs.append(one)
                ours.append(other)
                ratios.append(other / one)
        memory = []
        for number in range(observations):
            await environment.page.evaluate("i => { document.links[i % document.links.length].textContent = 'seen ' + i }", number)
            await environment.episode.observer.observe_page(environment.episode.tabs.config, environment.episode.tabs.downloads, "")
            if number % (observations // 5) == observations // 5 - 1:
                memory.append(resident())
                print(f"{number + 1} of {observations} observations", file=sys.stderr, flush=True)
        await environment.reset(msgspec.structs.replace(task, start=f"http://{address}/double.html"))
        double = [(await by_us(environment, whole=True))[0] for _ in range(5)]
    return {
        "changed": changed, "seconds_20000": double,
        "nodes": NODES, "elements": elements, "cdp_seconds": theirs, "observe_seconds": ours, "ratios": ratios,
        "resident_mib": memory, "noise": noise,
    }  # fmt: skip


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    found = asyncio.run(measure(*((5, 50) if options.quick else (30, 1000))))
    noise = found.pop("noise")
    middle = statistics.median
    table(
        ("", "seconds"),
        [("CDP", f"{middle(found['cdp_seconds']):.3f}"), ("an observation", f"{middle(found['observe_seconds']):.3f}")],
    )
    print(f"{found['elements']} elements; memory in MiB after each fifth: {', '.join(f'{each:.1f}' for each in found['resident_mib'])}")
    figures = [
        Figure("observe_vs_cdp", middle(found["ratios"]), 1.15, at_least=False),
        Figure("change_vs_whole", middle(found["changed"]), 0.2, at_least=False),
        Figure("observe_20000_s", middle(found["seconds_20000"]), 2.0, at_least=False),
        Figure("memory_growth_mib", found["resident_mib"][-1] - found["resident_mib"][0], 8.0, at_least=False),
    ]
    finish(options, figures, noise, versions("exact-agent", "playwright"), {"large_page": found})


if __name__ == "__main__":
    main()
