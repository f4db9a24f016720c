"""Fixtures that several parts share: a headless browser, and environments of pages served on loopback."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import pytest_asyncio
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup, find_browser, launch
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.task import Task

from . import hanging, short
from .hanging import pytest_runtest_protocol  # noqa: F401

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

CONFIG = BrowserConfig(screenshots=False, width=600, height=400, start_seconds=2.0)
Visit = Callable[..., AbstractAsyncContextManager[tuple[BrowserEnvironment, Observation]]]


def pytest_addoption(parser: pytest.Parser) -> None:
    hanging.pytest_addoption(parser)
    short.pytest_addoption(parser)
    parser.addoption("--parity-live", action="store_true", help="compare with the peers themselves, not with what was recorded of them")
    parser.addoption("--parity-record", action="store_true", help="also write what the peers say to the recorded files")


def pytest_configure(config: pytest.Config) -> None:
    short.pytest_configure(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    short.leave_out(config, items)
    short.put_long_files_first(items)


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what exact stores for a user out of the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def executable() -> str:
    """Path of a headless browser; tests that need one are skipped where there is none."""
    try:
        return str(find_browser())
    except EnvironmentFailure as error:
        pytest.skip(str(error))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(executable: str) -> AsyncIterator[Browser]:
    """Open one browser for all tests. They run in the session's loop: `pytestmark = pytest.mark.asyncio(loop_scope="session")`."""
    async with launch(CONFIG) as launched:
        yield launched


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Give this process and its children a folder for temporary files, and return a function that lists it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return lambda: sorted(each.name for each in folder.iterdir())


@pytest.fixture
def task_at(httpserver: HTTPServer) -> Callable[..., Task]:
    """`task_at(path)`: a task that starts at a page of the server; its origin is `http://localhost:port`, so `127.0.0.1` is another."""

    def made(path: str = "/", **fields: Any) -> Task:
        return Task(id="test/page", instruction="Try it.", start=f"http://localhost:{httpserver.port}{path}", **fields)

    return made


@pytest.fixture
def visit(browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task]) -> Visit:
    """`async with visit(html, ...) as (environment, observation)`: an environment at a page served on loopback, reset."""

    @asynccontextmanager
    async def opened(
        html: str = "",
        *,
        setup: PageSetup | None = None,
        config: BrowserConfig = CONFIG,
        isolated: bool = False,
        simulation: bool = False,
        **environments: Any,
    ) -> AsyncIterator[tuple[BrowserEnvironment, Observation]]:
        httpserver.expect_request("/").respond_with_data(f"<!doctype html><title>Test</title>{html}", content_type="text/html")
        kind = BrowserFactory(browser, setup or PageSetup(), config, isolated=isolated, **environments)
        async with kind.open(simulation=simulation) as environment:
            yield environment, await environment.reset(task_at())

    return opened
