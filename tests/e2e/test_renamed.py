"""What the built-in agent does and thinks does not hang on what a page's author called things: ids, classes, fields and paths.

Each site is searched twice, in a real browser: as it is, and with all those names replaced. The two journals must tell the same, step for
step: the same actions proposed with the same priors, the same values, the same commits. Of URLs the agent only sees whether two are equal
(`situation.moved`: whether another page came before), so a path may have any name, but two paths must stay two.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pytest_httpserver import HTTPServer

from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig, parse
from exact.environments.base import EnvironmentFactory
from exact.environments.browser import Browser, BrowserFactory, PageSetup
from exact.environments.reward import miniwob_pages
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.runner import Runner, create
from exact.search.base import Proposed, Valued
from exact.task import Task

pytestmark = pytest.mark.asyncio(loop_scope="session")
CONFIG = BrowserConfig(screenshots=False, width=600, height=500)
AGENTS = {
    "react": {"algorithm": "react"},
    "mcts": {"algorithm": "mcts", "iterations": 6, "k": 40},
}

# Whatever begins with an underscore is a name that only the author knows.
HOME = """<!doctype html><title>The inn</title><nav id=_top class="_bar"><a class=_link href=/_start>Home</a>
<a class=_link href=/_list/_rooms>Rooms</a> <a class=_link href=/_about>About us</a></nav>
<p class=_lead>Welcome to the inn."""
ROOMS = """<!doctype html><title>Rooms</title><style>._row { display: block } #_tell:empty { display: none }</style>
<a id=_back href=/_start>Home</a><h1>Rooms</h1>
<ul class=_rows><li class=_row>Garden room, 80 <button id=_first onclick="_open()">Reserve</button>
<li class=_row>Tower room, 120 <button id=_second onclick="_open()">Reserve</button></ul>
<dialog id=_asked class=_box><h2>Your stay</h2><form name=_stay id=_form>
<label for=_who>Guest</label> <input id=_who name=_who class=_wide><br>
<label for=_sleep>Bed</label> <select id=_sleep name=_sleep><option>Single<option>Double<option>Twin</select><br>
<input type=checkbox id=_eat name=_eat><label for=_eat>Breakfast</label><br>
<input type=radio name=_pay id=_cash><label for=_cash>Cash</label> <input type=radio name=_pay id=_card><label for=_card>Card</label><br>
<button type=button class=_yes onclick="_done()">Confirm</button> <button type=button class=_no onclick="_asked.close()">Cancel</button>
</form></dialog><p id=_tell class=_note></p>
<script>const _asked = document.getElementById('_asked'), _tell = document.getElementById('_tell');
function _open() { _asked.showModal() }
function _done() { _asked.close(); _tell.textContent = 'Reserved for ' + document.getElementById('_who').value }</script>"""
SITE = {"/_start": HOME, "/_list/_rooms": ROOMS, "/_about": "<!doctype html><title>About us</title><a href=/_start>Home</a><p>Since 1902."}
GOALS = (
    'Open "Rooms", click "Reserve" beside the Tower room, enter "Ann" as the guest, select Double and click "Confirm".',
    "Find out about us.",
)


def renamed(text: str) -> str:
    """Return the text with other names in place of those with an underscore."""
    return re.sub(r"_([a-z]+)", lambda match: "z" + hashlib.sha256(match[1].encode()).hexdigest()[:7], text)


async def told(
    folder: Path, tasks: tuple[Task, ...], open_environments: Callable[[Task], AbstractAsyncContextManager[EnvironmentFactory]], agent: str
) -> list[Any]:
    """Return the proposals, thoughts and actions of an agent in order."""
    config = parse({"search": AGENTS[agent], "limits": {"actions": 6, "transitions": 24}, "browser": msgspec.to_builtins(CONFIG)})
    run = create(folder, tasks, config)
    await Runner(folder=run, config=config, open_environments=open_environments).run()
    return list(_told(folder))


def _told(folder: Path) -> Iterator[Any]:
    for path in sorted(folder.glob("tasks/*/journal.jsonl")):
        for event in read_journal(path):
            if isinstance(event, ev.Told) and isinstance(event.result, Proposed | Valued):
                yield event.result
            elif isinstance(event, ev.Acted | ev.Committed):
                yield type(event).__name__, event.action


def count(found: list[Any], kind: str) -> int:
    return sum(1 for each in found if isinstance(each, tuple) and each[0] == kind)


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_site_with_other_ids_classes_fields_and_paths_is_searched_the_same(
    agent: str, browser: Browser, httpserver: HTTPServer, tmp_path: Path
) -> None:
    for path, html in SITE.items():
        httpserver.expect_request(path).respond_with_data(html, content_type="text/html")
        httpserver.expect_request(renamed(path)).respond_with_data(renamed(html), content_type="text/html")

    @asynccontextmanager
    async def opened(task: Task) -> AsyncIterator[EnvironmentFactory]:
        yield BrowserFactory(browser, PageSetup(), CONFIG, isolated=False)

    both = []
    for naming in (str, renamed):
        start = httpserver.url_for(naming("/_start"))
        tasks = tuple(Task(id=f"inn/goal-{n}", instruction=goal, start=start) for n, goal in enumerate(GOALS))
        both.append(await told(tmp_path / naming.__name__, tasks, opened, agent))
    as_it_is, with_other_names = both
    assert as_it_is == with_other_names
    assert count(as_it_is, "Committed") >= 7 and (agent == "react" or count(as_it_is, "Acted") > 12)


@pytest.mark.parametrize("agent", AGENTS)
async def test_pages_of_a_benchmark_under_other_paths_are_searched_the_same(agent: str, tmp_path: Path) -> None:
    """Four searches, of two tasks under two paths each."""
    moved = tmp_path / "pages"
    for folder in ("core", "common"):
        shutil.copytree(miniwob_pages() / folder, moved / folder)
    (moved / "elsewhere").mkdir()
    tasks = tuple(MiniWob().task(f"miniwob/{name}") for name in ("login-user?seed=103", "click-checkboxes?seed=104"))
    other = []
    for n, task in enumerate(tasks):
        name = str(task.start).rpartition("/")[2]
        shutil.copy(miniwob_pages() / "miniwob" / name, moved / "elsewhere" / f"q{n}.html")
        other.append(msgspec.structs.replace(task, start=str(task.start).replace(f"/miniwob/{name}", f"/elsewhere/q{n}.html")))
    as_they_are = await told(tmp_path / "one", tasks, lambda task: MiniWob().environments(CONFIG), agent)
    elsewhere = await told(tmp_path / "two", tuple(other), lambda task: MiniWob(pages=moved).environments(CONFIG), agent)
    assert as_they_are == elsewhere
    assert count(as_they_are, "Committed") >= 4
