"""Measure what a start costs: the import, the help, a list of tasks, and a run until its first page.

Each round starts every command once, in a process of its own and by turns; figures are medians over the rounds. `import exact` and
`exact --help` are in milliseconds more than a bare interpreter.

A run counts from the start of its process until its journal says that the task's page was
observed; beside it a program of Playwright's alone starts the same browser and loads the same page, and the figure is the difference.
`import exact` is also run once with warnings as errors: it must print nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

from _common import ROOT, Figure, Noise, finish, interval, parser, table, versions

PYTHON = sys.executable
EXACT = [PYTHON, "-m", "exact"]
COMMANDS = {
    "bare python": [PYTHON, "-c", "pass"],
    "import exact": [PYTHON, "-c", "import exact"],
    "exact --help": [*EXACT, "--help"],
    "exact list tasks miniwob": [*EXACT, "list", "tasks", "miniwob"],
}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPATH": str(ROOT)}
"""Compiled files may be kept, as on a user's machine."""
TASK = "miniwob/click-test"
PAGE = "miniwob/html/miniwob/click-test.html"
ALONE = """
import sys
from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[1])
    page = browser.new_page()
    page.goto(sys.argv[2])
    print("loaded", flush=True)
    browser.close()
"""
LONGEST = 120.0
"""Seconds within which a first page must be there."""


def milliseconds(command: list[str]) -> float:
    """Return how long a command takes."""
    start = time.perf_counter()
    subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
    return 1000 * (time.perf_counter() - start)


def browser_alone(browser: str) -> float:
    """Return the milliseconds until a program of Playwright's has loaded the page."""
    page = distribution("miniwob").locate_file(PAGE)
    start = time.perf_counter()
    with subprocess.Popen([PYTHON, "-c", ALONE, browser, Path(str(page)).as_uri()], env=ENVIRONMENT, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None and program.stdout.readline() == b"loaded\n"
        return 1000 * (time.perf_counter() - start)


def first_page() -> float:
    """Return the milliseconds until a run has observed its first page."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [*EXACT, "run", TASK, "--set", "search.iterations=1", "--out", str(out)]
        start = time.perf_counter()
        with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            while not any(b'"event":"reset"' in journal.read_bytes() for journal in out.glob("tasks/*/journal.jsonl")):
                if run.poll() is not None or time.perf_counter() - start > LONGEST:
                    run.kill()
                    sys.exit(f"no first page: try `exact run {TASK}`")
                time.sleep(0.005)
            return 1000 * (time.perf_counter() - start)


def measure(rounds: int, noise: Noise, programs: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Milliseconds of each program in each round; one more round before them is not counted."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        noise.probe()
        for name, program in programs.items():
            spent = program()
            if number:
                times[name].append(spent)
    return times


def silent() -> bool:
    """Return whether the import prints nothing where warnings are errors."""
    done = subprocess.run([PYTHON, "-W", "error", "-c", "import exact"], env=ENVIRONMENT, capture_output=True)
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    from exact.environments.browser.launch.find import find_browser

    browser, noise = str(find_browser()), Noise()
    small: dict[str, Callable[[], float]] = {name: lambda command=command: milliseconds(command) for name, command in COMMANDS.items()}  # type: ignore[misc]
    times = measure(5 if options.quick else 40, noise, small)
    pages = measure(2 if options.quick else 15, noise, {"browser alone": lambda: browser_alone(browser), "exact run": first_page})
    bare = times["bare python"]
    more = {name: [a - b for a, b in zip(times[name], bare, strict=True)] for name in COMMANDS if name != "bare python"}
    beyond = [a - b for a, b in zip(pages["exact run"], pages["browser alone"], strict=True)]
    shown = {
        "bare python": bare,
        **{f"{name}, more than bare python": spent for name, spent in more.items()},
        "exact list tasks miniwob, whole": times["exact list tasks miniwob"],
        "browser alone, until the page is loaded": pages["browser alone"],
        "exact run, until the page is observed": pages["exact run"],
        "exact run, more than the browser alone": beyond,
    }
    table(("ms", "median", "min", "max"), [(name, *(f"{value:.1f}" for value in interval(spent))) for name, spent in shown.items()])
    figures = [
        Figure("help_ms_over_python", interval(more["exact --help"])[0], 150, at_least=False),
        Figure("import_ms_over_python", interval(more["import exact"])[0], 100, at_least=False),
        Figure("import_is_silent", float(silent()), 1),
        Figure("list_of_tasks_s", interval(times["exact list tasks miniwob"])[0] / 1000, 0.5, at_least=False),
        Figure("first_page_s_over_browser", interval(beyond)[0] / 1000, 0.25, at_least=False),
    ]
    details = {"milliseconds": {name: [round(value, 2) for value in spent] for name, spent in {**times, **pages}.items()}}
    finish(options, figures, noise, versions("exact-agent", "click", "playwright"), details)


if __name__ == "__main__":
    main()
