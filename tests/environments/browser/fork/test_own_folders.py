"""An application of one's own writes to its files in the sandbox's memory, wherever they are, and this machine's stay as they are."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from exact.benchmarks.open import open_environments
from exact.benchmarks.own.files import SiteFile, TaskEntry, own_task
from exact.config import BrowserConfig, Config
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sandbox.service import Service
from exact.errors import EnvironmentFailure
from exact.task import Task
from tests.environments.browser.fork.test_factory import add

pytestmark = pytest.mark.asyncio(loop_scope="session")

APPLICATION = Path(__file__).parents[2] / "sandbox" / "places.py"
CONFIG = Config(browser=BrowserConfig(screenshots=False, width=600, height=400))


@pytest.fixture
def home(executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home directory with the application in `shop/app`. Skipped where there is no browser or no usable runsc."""
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "shop" / "app").mkdir(parents=True)
    shutil.copy(APPLICATION, tmp_path / "home" / "shop" / "app" / "app.py")
    yield tmp_path / "home"


def database(path: Path, row: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("create table rows(text)")
        made.execute("insert into rows values (?)", (row,))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def site(folder: Path, *databases: str, reads: tuple[str, ...] = ()) -> Task:
    url = "http://127.0.0.1:8000/"
    service = Service(command=("python3", "app.py", "8000", *databases), ready_url=url, reads=reads)
    return own_task(SiteFile(name="places", url=url, services=(service,)), TaskEntry(id="add", instruction="Add."), folder)


async def test_each_database_is_read_changed_and_rolled_back_and_none_on_this_machine(home: Path, tmp_path: Path) -> None:
    named = {
        "own": database(home / "shop" / "app" / "own.db", "own"),
        "beside": database(home / "shop" / "beside.db", "beside"),
        "at-home": database(home / "at-home.db", "home"),
        "folder": database(tmp_path / "data" / "deep" / "data.db", "data"),
        "read": database(home / "private" / "read.db", "read"),
    }
    paths = ("own.db", "../beside.db", "~/at-home.db", str(named["folder"]), "../../private/read.db", str(tmp_path / "data" / "new.db"))
    before = contents(tmp_path)
    task = site(home / "shop" / "app", *paths)
    async with open_environments(task, CONFIG, benchmark=False) as opened, opened.open(simulation=True) as environment:
        assert "Rows: own; beside; home; data; read;" in (await environment.reset(task)).text
        snapshot = await environment.snapshot()
        assert "Rows: apple own; apple beside; apple home; apple data; apple read; apple" in await add(environment, "apple")
        assert "Rows: own; beside; home; data; read;" in (await environment.restore(snapshot)).text
        assert "Rows: own; beside; home; data; read;" in (await environment.reset(task)).text
    assert contents(tmp_path) == before


async def test_that_an_application_begins_without_its_data_is_said(home: Path) -> None:
    database(home / "shop.db", "hidden")
    (home / "shop" / "app" / "app.py").write_text(f"import sys\nsys.argv.append('{home}/shop.db')\n{APPLICATION.read_text()}")
    (home / "link").symlink_to("shop/app")
    said: list[str] = []
    task = site(home / "link")
    async with open_environments(task, CONFIG, benchmark=False, notify=said.append) as opened, opened.open(simulation=True) as environment:
        assert "hidden" not in (await environment.reset(task)).text
    assert len(said) == 1 and f"began with a new {home}/shop.db, because the sandbox hides" in said[0] and "`reads`" in said[0]
    said.clear()
    task = site(home / "link", reads=("~/shop.db",))
    async with open_environments(task, CONFIG, benchmark=False, notify=said.append) as opened, opened.open(simulation=True) as environment:
        assert "hidden" in (await environment.reset(task)).text
    assert said == []
