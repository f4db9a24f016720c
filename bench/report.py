"""Measure reports of large trees: seconds to build, size, and seconds until they are interactive in a browser.

The real search grows trees of 100, 1,000 and 5,000 states over an artificial environment of pages, and journals them as a run does; a
twentieth of the states has a screenshot. Each report is built into a page and opened in headless Chromium from the disk. *Interactive* is
the time from the start of the navigation until the page answers, and then until every state is unfolded and drawn; a report opens with the
committed path only where not all states are visible. A *zoom frame* is the time from one frame to the next while each frame changes the
scale, with all states unfolded; the figure is the 95th percentile. In the same run a bare page with a canvas draws the same states as
plain rectangles with texts and lines: `times_bare_canvas` is the cost of everything else. Graphviz `dot` lays the same tree out as SVG.

`live_cpu_percent` is the additional processor time of a search that is watched over two connections of the live view, which runs in its
own process. Both searches are the same and run in turn; the figure is the median of the pairs' ratios.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from _common import ROOT, Figure, Noise, finish, parser, table, versions

sys.path.insert(0, str(ROOT))

from playwright.async_api import Browser, Page, async_playwright

from exact.environments.browser.launch.find import find_browser
from exact.report import build_report
from exact.report.export.picture import dot
from exact.report.model.reading import Reading
from exact.runs.journal.store import RunFolder
from exact.search.base import Selection
from tests.report import journals

SIZES = (100, 1_000, 5_000)
PICTURED = 20
"""Every how-manieth state has a screenshot."""

OPENED = "performance.getEntriesByName('interactive')[0].startTime"
UNFOLD = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const began = performance.now();
  view.untried = false; view.expand(); view.fit();
  await frame(); await frame();
  return [performance.now() - began, view.placed.size];
}"""
ZOOM = """async frames => {
  const frame = () => new Promise(requestAnimationFrame), times = [];
  view.area.call(view.zoom.transform, d3.zoomIdentity.translate(20, 20).scale(0.05));
  let before = await frame();
  for (let i = 0; i < frames; i += 1) {
    view.area.call(view.zoom.scaleBy, i % 40 < 20 ? 1.15 : 1 / 1.15);
    const now = await frame();
    times.push(now - before);
    before = now;
  }
  return times;
}"""
PLACES = "[...view.placed.values()].map(p => [p.y, p.x, titleOf(p.data), p.parent ? p.parent.y : 0, p.parent ? p.parent.x : 0])"
BARE = """<!doctype html><meta charset=utf-8><title>bare</title><style>canvas { width: 100vw; height: 100vh }</style><canvas></canvas>
<script type=application/json id=data>%s</script><script>
const places = JSON.parse(document.getElementById("data").textContent);
const canvas = document.querySelector("canvas"), pen = canvas.getContext("2d");
[canvas.width, canvas.height] = [innerWidth, innerHeight];
const most = Math.max(...places.map(p => p[1])) + 60, scale = Math.min(1, innerHeight / most);
pen.scale(scale, scale);
pen.beginPath();
for (const [x, y, , px, py] of places) { pen.moveTo(px + 216, py); pen.lineTo(x, y); }
pen.stroke();
pen.font = "12px sans-serif";
for (const [x, y, text] of places) {
  pen.fillStyle = "#eee"; pen.fillRect(x, y - 25, 216, 50);
  pen.fillStyle = "#000"; pen.fillText(text, x + 8, y);
}
requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("interactive")));
</script>"""
SEARCH = """
import asyncio, sys, time
from pathlib import Path
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import form
from tests.runs.toys import config, toy_runner
settings = config(search={"algorithm": "mcts", "iterations": 200, "k": 4, "commit": "plan"}, limits={"actions": 3})
runner = toy_runner(Path(sys.argv[1]), ToyFactory(form(6), latency=lambda: asyncio.sleep(float(sys.argv[2]))), settings, noise=0.1)
sys.stdin.readline()
began = time.process_time()
asyncio.run(runner.run())
print(time.process_time() - began)
"""


def page_of(name: str) -> journals.Page:
    """Return a page with five links."""
    moves = {f"click [{place}]": f"{name}{place}" for place in range(5)}
    text = "\n".join(f'[{place}] link "Go on to {name}{place}, which has a name of ordinary length"' for place in range(5))
    elements = tuple((str(place), "link", f"Go on to {name}{place}") for place in range(5))
    return journals.Page(name, elements, 0.3 + sum(map(ord, name)) % 100 / 200, "It is one of many pages.", moves, text)


@contextmanager
def unsynced():
    """Write without waiting for the disk while trees are made."""
    real, os.fsync = os.fsync, lambda file: None
    try:
        yield
    finally:
        os.fsync = real


def grown(folder: Path, states: int) -> RunFolder:
    """Make an unfinished run with that many states."""
    run, config = journals.new_run(folder, f"grown/{states}", iterations=10 * states, c=4.0, depth=9, k=5, revisit="exhaust")
    environment = journals.Grown(page_of)
    recorder = journals.Recorder(run, run.manifest.tasks[0], config, environment, screenshots=False)
    with unsynced():
        recorder.begin()
        while len(recorder.state.search.tree.nodes) < states:
            recorder.screenshots = len(recorder.state.search.tree.nodes) % PICTURED == 0
            answer = recorder.ask()
            assert isinstance(answer, Selection)
            recorder._fulfil(answer)
    recorder.journal.close()
    return run


async def opened(browser: Browser, path: Path, mark: str = OPENED) -> tuple[Page, float]:
    """Open a file as a page, and return it with the seconds until it answered."""
    page = await browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
    await page.goto(path.as_uri())
    while True:
        with suppress(Exception):
            return page, float(await page.evaluate(mark)) / 1000
        await asyncio.sleep(0.01)


async def in_browser(browser: Browser, report: Path, folder: Path, rounds: int, frames: int) -> dict[str, float]:
    """Medians over rounds; zoom frames of all rounds together."""
    first, whole, bare, zoom, shown = list[float](), list[float](), list[float](), list[float](), 0
    for _ in range(rounds):
        page, seconds = await opened(browser, report)
        unfolded, shown = await page.evaluate(UNFOLD)
        first.append(seconds)
        whole.append(seconds + unfolded / 1000)
        zoom += await page.evaluate(ZOOM, frames)
        plain = folder / "bare.html"
        plain.write_text(BARE % json.dumps(await page.evaluate(PLACES)).replace("<", "\\u003c"))
        await page.close()
        page, seconds = await opened(browser, plain)
        bare.append(seconds)
        await page.close()
    return {
        "opened_s": statistics.median(first), "interactive_s": statistics.median(whole), "bare_s": statistics.median(bare),
        "zoom_ms": statistics.quantiles(zoom, n=20)[18], "zoom_median_ms": statistics.median(zoom), "shown": shown,
    }  # fmt: skip


def graphviz(run: RunFolder) -> tuple[float, int] | None:
    """Seconds and bytes of the same tree as SVG by `dot`; None where it is not installed or takes too long."""
    if shutil.which("dot") is None:
        return None
    from exact.config import load_recorded

    task = run.manifest.tasks[0]
    reading = Reading(run.task_folder(task) / "journal.jsonl", load_recorded(run.path), run.blobs)
    text, began = dot(reading.state.search.tree), time.perf_counter()
    try:
        done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None
    return time.perf_counter() - began, len(done.stdout)


def searched(folder: Path, pause: float, *, watched: bool) -> tuple[float, int]:
    """Processor seconds of one search in a process of its own, and the bytes that its watchers were sent."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    search = subprocess.Popen(
        [sys.executable, "-c", SEARCH, str(folder / "run"), str(pause)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    view = subprocess.Popen(
        [sys.executable, "-m", "exact.cli", "view", str(folder), "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment
    ) if watched else None  # fmt: skip
    sent, over = [0, 0], threading.Event()
    watchers = list[threading.Thread]()
    try:
        if view is not None:
            assert view.stdout
            address = view.stdout.readline().strip()
            watchers = [threading.Thread(target=watch, args=(f"{address}run/0/events", sent, i, over), daemon=True) for i in range(2)]
            for watcher in watchers:
                watcher.start()
        out, _ = search.communicate("\n", timeout=120)
        if watched:
            time.sleep(0.6)  # what was written last is sent
    finally:
        over.set()
        for process in (search, view):
            if process is not None:
                process.terminate()
                process.wait()
    for watcher in watchers:
        watcher.join(5)
    return float(out), min(sent) if watched else 0


def watch(url: str, sent: list[int], place: int, over: threading.Event) -> None:
    """Read server-sent events until it is over; a server that is not there yet, or tells to load again, is asked again."""
    epoch = ""
    while not over.is_set():
        with suppress(OSError):
            page = urllib.request.urlopen(url.removesuffix("events"), timeout=5).read().decode()
            found = page.partition('"epoch":"')[2].partition('"')[0]
            epoch = found or epoch
            if not epoch:
                time.sleep(0.02)
                continue
            with urllib.request.urlopen(f"{url}?since={epoch}.0", timeout=5) as stream:
                for line in stream:
                    sent[place] += len(line)
                    if over.is_set():
                        return


def live(rounds: int, pause: float) -> dict[str, Any]:
    """Compare the watched search with the other one, in turn."""
    alone, watched, sent = list[float](), list[float](), 0
    for _ in range(rounds):
        for seconds, seen in ((alone, False), (watched, True)):
            with tempfile.TemporaryDirectory(prefix="exact-bench-") as folder:
                took, sent_now = searched(Path(folder), pause, watched=seen)
                seconds.append(took)
                sent = max(sent, sent_now)
    if not sent:
        raise SystemExit("report: the watchers were sent nothing, so nothing was measured")
    ratios = [one / other - 1 for one, other in zip(watched, alone, strict=True)]
    low, high = interval(ratios)
    percents = {"percent": 100 * statistics.median(ratios), "interval": [100 * low, 100 * high]}
    return {"alone_s": alone, "watched_s": watched, "sent_bytes": sent, **percents}


def interval(values: list[float], draws: int = 2000) -> tuple[float, float]:
    """Return the 95 percent bootstrap interval of the median."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(draws))
    return medians[draws // 40], medians[-draws // 40]


async def main() -> None:
    options = parser(__doc__ or "").parse_args()
    rounds, frames = (1, 40) if options.quick else (5, 120)
    noise, rows, details = Noise(), list[list[str]](), dict[str, Any]()
    with tempfile.TemporaryDirectory(prefix="exact-bench-") as name:
        folder = Path(name)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=str(find_browser()))
            for size in SIZES:
                run = grown(folder / str(size), size)
                noise.probe()
                began = time.perf_counter()
                path = build_report(run, run.manifest.tasks[0])
                built, kib = time.perf_counter() - began, path.stat().st_size / 1024
                found = await in_browser(browser, path, folder, rounds, frames)
                noise.probe()
                drawing = None if options.quick and size > 1_000 else graphviz(run)
                details[str(size)] = {
                    "build_s": built,
                    "kib": kib,
                    **found,
                    "dot_s": drawing and drawing[0],
                    "dot_bytes": drawing and drawing[1],
                }
                rows.append([
                    f"{size:,}", f"{built:.2f}", f"{kib:,.0f}", f"{found['opened_s']:.2f}", f"{found['interactive_s']:.2f}",
                    f"{found['interactive_s'] / found['bare_s']:.1f}", f"{found['zoom_median_ms']:.0f}", f"{found['zoom_ms']:.0f}",
                    "not run" if drawing is None else f"{drawing[0]:.2f}", "" if drawing is None else f"{drawing[1] / 1024:,.0f}",
                ])  # fmt: skip
            await browser.close()
    table(["states", "build s", "KiB", "opened s", "all drawn s", "x bare canvas", "zoom ms", "p95", "dot s", "dot KiB"], rows)
    watched = live(1 if options.quick else 25, 0.005)
    alone, seen = (statistics.median(watched[name]) for name in ("alone_s", "watched_s"))
    low, high = watched["interval"]
    print(f"\nsearch alone {alone:.3f} s of processor, watched {seen:.3f} s: {watched['percent']:+.1f} % [{low:+.1f}, {high:+.1f}]")
    last = details["5000"]
    figures = [
        Figure("interactive_s_5000", last["interactive_s"], 0.5, at_least=False),
        Figure("times_bare_canvas_5000", last["interactive_s"] / last["bare_s"]),
        Figure("zoom_ms_5000", last["zoom_ms"], 50.0, at_least=False),
        Figure("kib_5000", last["kib"]),
        Figure("build_s_5000", last["build_s"]),
        Figure("live_cpu_percent", watched["percent"], 3.0, at_least=False),
    ]
    finish(options, figures, noise, versions("playwright", "starlette", "uvicorn"), {"sizes": details, "live": watched})


if __name__ == "__main__":
    asyncio.run(main())
