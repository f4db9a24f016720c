"""The gallery in a sandbox: all abilities in one environment, a tab each; a branch of its snapshot must show what was seen, and go on
alike."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import pytest_asyncio

from exact.environments.browser import BrowserEnvironment, PageSetup
from exact.environments.browser.fork.factory import ForkingFactory, forking
from exact.environments.check import check
from exact.environments.sandbox.runsc import find_runsc
from exact.environments.sandbox.service import Service
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation

from .gallery_tour import TOUR, Stop, act, go
from .sites import gallery
from .test_gallery import CONFIG, HOST, task_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

SERVICE = Service(
    command=("python3", gallery.__file__, "8000"), ready_url="http://127.0.0.1:8000/", reads=(gallery.__file__,), stateless=True
)
SETUP = PageSetup(hosts={"gallery.localhost": "127.0.0.1:8000", "other.test": "127.0.0.1:8000"})
TERMS = msgspec.structs.replace(CONFIG, scale=2.0, locale="de-DE", timezone="Europe/Berlin", user_agent="Mine/1", settle_seconds=10.0)


class Seen(NamedTuple):
    """One ability's tab before and after the restore, or the reason why it could not be tried."""

    url: str = ""
    before: str = ""
    after: str = ""
    failed: str = ""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def environments(executable: str) -> AsyncIterator[ForkingFactory]:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    async with forking(TERMS, SETUP, services=[SERVICE]) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tour(environments: ForkingFactory, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """Try every ability in a tab of one environment, and observe it again in a fork."""
    task, found = task_of("/", tmp_path_factory.mktemp("files")), dict[str, Seen]()
    async with environments.open(simulation=True) as environment:
        seen = await environment.reset(task)
        for stop in TOUR:
            found[stop.name], seen = await visited(environment, seen, stop)
        snapshot = await environment.snapshot()
        async with environments.fork(snapshot, simulation=True) as branch:
            assert branch.observation.fingerprint == snapshot.fingerprint
            after = await around(branch, branch.observation)
    return {name: each._replace(after=after.get(each.url, "")) for name, each in found.items()}


async def visited(environment: BrowserEnvironment, seen: Observation, stop: Stop) -> tuple[Seen, Observation]:
    seen = await go(environment, await go(environment, seen, "new_tab"), f'goto "{HOST}{stop.page}"')
    for text, expected in stop.steps:
        try:
            seen = await go(environment, seen, text)
        except ActionError as error:
            return Seen(failed=f"{text}: {error}"), seen
        if expected not in seen.text:
            return Seen(failed=f"after {text}:\n{seen.text}"), seen
    return Seen(seen.url, seen.text), seen


async def around(environment: BrowserEnvironment, seen: Observation) -> dict[str, str]:
    """Return the observation of each tab by its address."""
    found = {seen.url: seen.text}
    while new := [number for number, url in enumerate(seen.tabs, 1) if url not in found]:
        seen = await go(environment, seen, f"tab {new[0]}")
        found[seen.url] = seen.text
    return found


@pytest.mark.parametrize("stop", TOUR, ids=lambda stop: stop.name)
async def test_it_works_in_a_sandbox_and_comes_back(tour: dict[str, Seen], stop: Stop) -> None:
    if stop.name == "pdf":
        pytest.importorskip("pypdf")
    seen = tour[stop.name]
    assert not seen.failed, seen.failed
    assert seen.before and seen.after == seen.before


async def test_downloads_tabs_and_dialogs_in_a_sandbox(environments: ForkingFactory, tmp_path: Path) -> None:
    async with environments.open(simulation=True) as environment:
        seen = await environment.reset(task_of("/download", tmp_path))
        step = await act(environment, seen, 'click ["Report"]')
        assert [(effect.kind, effect.detail, effect.size) for effect in step.effects] == [("download", "report.csv", len(gallery.REPORT))]
        with pytest.raises(ActionError, match="larger than the 1,000,000 bytes"):
            await act(environment, seen, 'click ["Large"]')
        opened = await go(environment, seen, f'goto "{HOST}/tabs"')
        there = await go(environment, opened, 'click ["Opens a tab"]')
        snapshot = await environment.snapshot()
        await go(environment, there, "close_tab")
        asked = await go(environment, await go(environment, opened, f'goto "{HOST}/dialogs"'), 'click ["Ask"]')
        with pytest.raises(EnvironmentFailure, match="no snapshot now: a dialog is open"):
            await environment.snapshot()
        assert "declined" in (await go(environment, asked, "dismiss")).text
        back = await environment.restore(snapshot)
        assert back.fingerprint == there.fingerprint and back.tabs == there.tabs and back.downloads == there.downloads != ()


async def test_terms_are_those_of_the_environments(environments: ForkingFactory, tmp_path: Path) -> None:
    async with environments.open(simulation=True) as environment:
        seen = await environment.reset(task_of("/terms", tmp_path))
        assert "600 | 400 | 2 | de-DE | Europe/Berlin | 12.345,6 | Mine/1" in seen.text


async def test_the_gallery_forks_as_the_contract_asks(environments: ForkingFactory, tmp_path: Path) -> None:
    names = ("resets alike", "forks are independent")  # that snapshots are states: above, page by page; in depth: `exact check`
    found = await check(environments, task_of("/choices", tmp_path), quick=True, names=names)
    assert [finding for finding in found if not finding.passed] == []
