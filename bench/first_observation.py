"""Whether the first observation of an application that boots for some seconds is blank: `bench/_booting.py` has the applications."""

from __future__ import annotations

import asyncio
import threading

from _booting import APPLICATIONS, READY, Application, serve
from _common import Figure, Noise, finish, parser, table, versions
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.observation import Observation
from exact.task import Task

SECONDS = (1.0, 4.0, 8.0)
"""Seconds that the applications need."""


async def first_observation(application: Application, seconds: float) -> Observation:
    """Return the first observation of an application that boots for some seconds."""
    config, gate = BrowserConfig(screenshots=False), threading.Event()
    with HTTPServer(host="127.0.0.1", threaded=True) as server:
        serve(server, application, gate.is_set, gate.wait)
        async with (
            launch(config) as browser,
            BrowserFactory(browser, PageSetup(), config, isolated=True).open(simulation=False) as environment,
        ):
            timer = threading.Timer(seconds, gate.set)
            timer.start()
            try:
                return await environment.reset(Task(id="boot", instruction="", start=server.url_for("/")))
            finally:
                gate.set()
                timer.cancel()


def main() -> None:
    options, noise = parser(__doc__ or "").parse_args(), Noise()
    rows, blank = list[tuple[str, ...]](), 0
    times = SECONDS[:1] if options.quick else SECONDS
    for name, application in APPLICATIONS.items():
        noise.probe()
        seen = [asyncio.run(first_observation(application, seconds)).title == READY for seconds in times]
        blank += seen.count(False)
        rows.append((name, *("ready" if each else "BLANK" for each in seen)))
    table(("application", *(f"{seconds:g} s" for seconds in times)), rows)
    figures = [Figure("first_observations", len(rows) * len(times)), Figure("first_observations_blank", blank, 0, at_least=False)]
    finish(options, figures, noise, versions("playwright"), {"rows": rows})


if __name__ == "__main__":
    main()
