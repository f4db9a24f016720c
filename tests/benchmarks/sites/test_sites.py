"""Reference and wrong action sequences score as they should, in process and inside gVisor; what a branch writes, no sibling sees."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request

import msgspec
import pytest

from exact.benchmarks.sites import Site, trac, wagtail
from exact.benchmarks.sites.seeds import seed
from exact.config import BrowserConfig
from exact.environments.base import Branch
from exact.environments.browser.forking import ForkingWorlds
from exact.errors import EnvironmentError_
from exact.task import Outcome
from tests.benchmarks.sites.walk import REFERENCE, action, scores

BESIDE = BrowserConfig(screenshots=False, sandbox="never", settle_seconds=30.0, answer_seconds=60.0)
"""Patient: the machine may be busy, and a page that is half there has not what a sequence names."""
INSIDE = msgspec.structs.replace(BESIDE, sandbox="required")
SAMPLE = {"trac": ("trac/21",), "wagtail": ("wagtail/17",)}
"""Walked inside gVisor here; all are by `bench/sites.py --references`."""


@pytest.mark.parametrize("made", [trac, wagtail])
async def test_reference_sequences_score_1_and_wrong_ones_0(made: type[Site], applications: None, executable: str) -> None:
    """Every fourth; all are walked by `bench/sites.py --references`."""
    site = made()  # type: ignore[call-arg]
    async with site.worlds(BESIDE) as worlds:
        assert await scores(worlds, site, site.ids()[::4]) == {}


@pytest.mark.parametrize("made", [trac, wagtail])
async def test_a_sample_scores_the_same_inside_gvisor(made: type[Site], applications: None, runsc: None, executable: str) -> None:
    site = made()  # type: ignore[call-arg]
    async with site.worlds(INSIDE) as worlds:
        assert isinstance(worlds, ForkingWorlds)
        assert await scores(worlds, site, SAMPLE[site.name]) == {}


async def took(branch: Branch, *steps: list[object]) -> str:
    """The text of the page at the end."""
    seen = branch.observation
    for step in steps:
        transition = await branch.step(action(branch, seen, step))
        assert transition.observation is not None
        seen = transition.observation
    return seen.text


async def test_what_one_branch_destroys_is_there_in_its_siblings(applications: None, runsc: None, executable: str) -> None:
    site, page = trac(), ["goto", "/wiki/OldIdeas"]
    delete = REFERENCE["trac/21"]["right"][:-1]
    async with site.worlds(INSIDE) as worlds, worlds.open(speculative=True) as world:
        assert isinstance(worlds, ForkingWorlds)
        await world.reset(site.task("trac/21"))
        snapshot = await world.snapshot()
        async with worlds.fork(snapshot, speculative=True) as one, worlds.fork(snapshot, speculative=True) as other:
            assert "does not exist" in await took(one, *delete, page)
            assert "Nobody needs these any more" in await took(other, page)
            sandbox = ["goto", "/wiki/SandBox"], ["click", "button", "Delete page", 0], ["click", "button", "Delete page", 0]
            assert "does not exist" in await took(other, *map(list, sandbox), ["goto", "/wiki/SandBox"])
            assert (await one.evaluate(Outcome(actions=()))).success
            assert not (await other.evaluate(Outcome(actions=()))).success
        restored = await world.restore(snapshot)
        assert restored.fingerprint == snapshot.fingerprint
        assert not (await world.evaluate(Outcome(actions=()))).success, "nothing is gone where nothing was done"


async def test_data_is_made_once_and_the_same(applications: None, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    import sqlite3

    from exact.benchmarks.sites.seeds import interpreter

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
    first = await seed("trac", interpreter())
    assert await seed("trac", interpreter()) == first
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    second = await seed("trac", interpreter())
    dumps = []
    for folder in (first, second):
        with sqlite3.connect(folder / "db" / "trac.db") as database:
            dumps.append([line for line in database.iterdump() if "last_visit" not in line and "password" not in line])
        database.close()
    assert dumps[0] == dumps[1]


async def test_a_reset_is_for_those_who_know_its_token(applications: None, executable: str) -> None:
    site = trac()
    async with site.worlds(BESIDE) as worlds, worlds.open(speculative=False) as world:
        await world.reset(site.task("trac/1"))
        seen = await world.step(action(world, await world.reset(site.task("trac/1")), ["goto", "/__reset__"]))
        assert seen.observation is not None and "Not found" in seen.observation.text
        address = world._setup.hosts["trac.test"]  # type: ignore[attr-defined]

        def post() -> int:
            try:
                with urllib.request.urlopen(f"http://{address}/__reset__", b"") as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code

        assert await asyncio.to_thread(post) == 404


async def test_applications_that_do_not_start_are_no_score(applications: None, executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exact.benchmarks.sites.suite.SERVED", __import__("pathlib").Path("/nowhere"))
    with pytest.raises(EnvironmentError_, match="before it was ready"):
        async with trac().worlds(BESIDE):
            pass
