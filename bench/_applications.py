"""Applications of a desktop: whether each starts, is seen, and survives a snapshot, a restore and a fork in gVisor."""

from __future__ import annotations

import json
import shutil
import time
from typing import Any, NamedTuple

from exact.environments.sandbox.factory import SandboxedFactory, SandboxedWorker
from exact.errors import ActionError, ExactError
from exact.task import Task

SHEET = "".join(f"row {row},{row * 7},{row * 11}\n" for row in range(1, 40))
PAGE = "<title>Page</title><h1>Heading</h1><button>Go</button><input placeholder=name>"
OFFICE = ("--norestore", "--nologo")
CHROMIUM = ("--no-sandbox", "--no-first-run", "--force-renderer-accessibility", "--password-store=basic", "--disable-gpu")


class Application(NamedTuple):
    """Program with what it opens, and an action that it answers."""

    command: tuple[str, ...]
    action: str
    files: dict[str, str] = {}


APPLICATIONS = {
    "mousepad": Application(("mousepad", "--disable-server"), 'type "x"'),
    "galculator": Application(("galculator",), 'press "7"'),
    "pcmanfm": Application(("pcmanfm",), 'press "Alt+f"'),
    "terminal": Application(("gnome-terminal",), 'type "echo x"'),
    "eog": Application(("eog",), 'press "F10"'),
    "evince": Application(("evince",), 'press "F10"'),
    "Calc": Application(
        ("soffice", "--calc", *OFFICE, "~/sheet.csv", "--infilter=CSV:44,34,76,1"), 'press "ArrowDown"', {"sheet.csv": SHEET}
    ),
    "Writer": Application(("soffice", "--writer", *OFFICE), 'type "x"'),
    "Impress": Application(("soffice", "--impress", *OFFICE), 'press "Escape"'),
    "GIMP": Application(("gimp", "--no-splash"), 'press "Alt+f"'),
    "VLC": Application(("vlc", "--no-qt-privacy-ask"), 'press "Alt+m"'),
    "Thunderbird": Application(("thunderbird",), 'press "F10"'),
    "Chromium": Application(("chromium", *CHROMIUM, "~/page.html"), 'press "Control+t"', {"page.html": PAGE}),
}
"""Applications by name."""


_OFFICE_FORMAT = "urn:oasis:names:tc:opendocument:xmlns:"
_CELL = '<table:table-cell office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell>'
_SMALL = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="{_OFFICE_FORMAT}office:1.0" xmlns:style="{_OFFICE_FORMAT}style:1.0" xmlns:text="{_OFFICE_FORMAT}text:1.0"
 xmlns:table="{_OFFICE_FORMAT}table:1.0" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.spreadsheet">
<office:automatic-styles>
<style:style style:name="c" style:family="table-column"><style:table-column-properties style:column-width="0.15in"/></style:style>
<style:style style:name="r" style:family="table-row"><style:table-row-properties style:row-height="0.07in"
 style:use-optimal-row-height="false"/></style:style>
</office:automatic-styles><office:body><office:spreadsheet><table:table table:name="Small">
<table:table-column table:style-name="c" table:number-columns-repeated="70"/>
{f'<table:table-row table:style-name="r">{_CELL * 70}</table:table-row>' * 75}
</table:table></office:spreadsheet></office:body></office:document>
"""
LARGE_SHEET = Application(("soffice", "--calc", *OFFICE, "~/small.fods"), 'press "ArrowDown"', {"small.fods": _SMALL})
"""A spreadsheet whose cells are so small that more are in sight than are listed."""


class Survived(NamedTuple):
    """What one application did."""

    name: str
    starts: float = 0.0
    """Seconds from the reset to the first observation."""
    elements: int = 0
    step: float = 0.0
    snapshot: float = 0.0
    megabytes: float = 0.0
    """Size of the image."""
    restore: float = 0.0
    fork: float = 0.0
    equal: bool = False
    """Whether restored and forked states have the fingerprint of the snapshot."""
    answers: bool = False
    """Whether the fork and the restored application still act."""
    fault: str = ""


def task_of(application: Application) -> Task:
    setup = {"applications": [application.command], "files": application.files, "seconds": 120.0}
    return Task(id="desktop/bench", instruction="", private={"desktop": json.dumps(setup)})


async def survived(environments: SandboxedFactory, environment: SandboxedWorker, name: str) -> Survived:
    """Start an application, act, keep it, act again, restore and fork it."""
    application = APPLICATIONS[name]
    if name != "terminal" and not shutil.which(application.command[0]):
        return Survived(name, fault="not installed")
    found: dict[str, Any] = {}
    try:
        start = time.perf_counter()
        seen = await environment.reset(task_of(application))
        found |= {"starts": time.perf_counter() - start, "elements": len(seen.elements)}
        start = time.perf_counter()
        await environment.step(environment.actions.parse(application.action))
        found["step"] = time.perf_counter() - start
        before, start = environments.bytes, time.perf_counter()
        snapshot = await environment.snapshot()
        found |= {"snapshot": time.perf_counter() - start, "megabytes": (environments.bytes - before) / 1e6}
        await environment.step(environment.actions.parse('press "Escape"'))
        start = time.perf_counter()
        back = await environment.restore(snapshot)
        found["restore"] = time.perf_counter() - start
        start = time.perf_counter()
        async with environments.fork(snapshot, simulation=True) as branch:
            found |= {
                "fork": time.perf_counter() - start,
                "equal": back.fingerprint == branch.observation.fingerprint == snapshot.fingerprint,
            }
            for each in (branch, environment):
                await each.step(each.actions.parse('press "Escape"'))
            found["answers"] = True
        environments.drop(snapshot)
    except (TimeoutError, ActionError, ExactError) as error:
        return Survived(name, **found, fault=" ".join(str(error).split())[:160])
    return Survived(name, **found)
