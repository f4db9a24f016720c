"""Several goals in one live browser: nothing is lost between them, nothing is sent twice after a kill, and hands leave by the gate too."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.async_api import async_playwright

import exact
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from exact.runs.journal import events as ev
from exact.runs.journal.session import HandedOver, OpenedAgain
from exact.runs.journal.store import RunFolder
from tests.e2e.kills import MARK, gone
from tests.e2e.sessions import GOALS, SETTINGS, Clerk, arguments, first
from tests.e2e.sites.register import Register, serve_register

pytestmark = pytest.mark.asyncio(loop_scope="module")
SITES = Path(__file__).parent / "sites"


@pytest.fixture(scope="module")
def site(executable: str) -> Iterator[tuple[Register, str]]:
    with serve_register() as served:
        yield served


@pytest.fixture
def register(site: tuple[Register, str]) -> Iterator[Register]:
    yield from site[0].as_new()


async def test_a_session_has_the_cookies_of_a_profile_and_leaves_it_as_it_is(
    register: Register, site: tuple[Register, str], executable: str, tmp_path: Path
) -> None:
    register.notice, profile = "/seen", tmp_path / "profile"
    async with async_playwright() as driver:
        own = await driver.chromium.launch_persistent_context(profile, executable_path=executable, args=["--no-sandbox"])
        page = await own.new_page()
        await page.goto(site[1])
        await page.evaluate("document.cookie = 'read=1; max-age=999'")
        await own.close()
    before = {path: path.read_bytes() for path in profile.rglob("*") if path.is_file()}
    async with exact.session(**first(site[1]), profile=str(profile)) as session:
        await session.solve("Type Ann")
        assert await session.page.title() == "Form"
    assert {path: path.read_bytes() for path in profile.rglob("*") if path.is_file()} == before


async def test_a_field_that_was_not_sent_is_there_for_the_next_goal(register: Register, site: tuple[Register, str]) -> None:
    clerk = Clerk()
    async with exact.session(**first(site[1], clerk=clerk)) as session:
        await session.solve("Type Ann")
        solution = await session.solve("Add Ann")
    assert register.names == ["Ann"] and len(solution.actions) == 2
    [told] = clerk.seen[-1].earlier
    assert told.actions == ('click link "Forms"', 'fill textbox "Name" "Ann"', 'stop "typed"')


async def test_the_page_is_read_and_not_acted_in(register: Register, site: tuple[Register, str]) -> None:
    async with exact.session(**first(site[1])) as session:
        await session.solve("Type Ann")
        page = session.page
        assert (await page.url(), await page.title()) == (f"{site[1]}form", "Form")
        assert await page.get_by_label("Name").input_value() == "Ann" and "Names are public." in await page.text()
        link = page.get_by_role("link").filter(has_text="Cancel")
        assert (await link.count(), await link.first.get_attribute("href"), await link.is_visible()) == (1, "/", True)
        assert await page.locator("form").filter(has=page.get_by_role("button")).count() == 1
        box = await link.bounding_box()
        assert box is not None and box["width"] > 0 and (await page.screenshot()).startswith(b"\x89PNG")
        for view, act in (
            (page, "goto"),
            (page, "evaluate"),
            (link, "click"),
            (link, "evaluate"),
            (page, "keyboard"),
            (link, "what_comes_later"),
        ):
            with pytest.raises(
                exact.UsageError, match=rf"^{act} does not only read: use `async with session\.page_for_acting\(\) as page`"
            ):
                getattr(view, act)
    assert register.names == []


async def test_what_observations_hide_is_not_read_either(site: tuple[Register, str]) -> None:
    hides = {"login": {"secrets": {"colour": "Names are public."}}, "mask": ["h1"]}
    async with exact.session(**first(site[1], **hides)) as session:
        await session.solve("Type Ann")
        text = await session.page.text()
        assert "<secret:colour>" in text and "public" not in text and "Add a name" not in text
        assert await session.page.locator("h1").inner_text() == "(masked)"


async def test_hands_act_where_the_next_goal_begins_and_leave_by_the_gate(
    register: Register, site: tuple[Register, str], tmp_path: Path
) -> None:
    elsewhere = site[1].replace("127.0.0.1", "localhost")
    async with exact.session(**first(site[1], tmp_path)) as session:
        await session.solve("Type Ann")
        async with session.page_for_acting() as page:
            await page.get_by_label("Name").fill("Eve")
            asked = f"fetch('{elsewhere}send', {{method: 'POST', body: new URLSearchParams({{name: 'x'}}), mode: 'no-cors'}})"
            assert await page.evaluate(f"{asked}.then(() => 'sent', () => 'refused')") == "refused"
            with pytest.raises(Exception, match="requests beside the page would pass the gate by"):
                await page.request.post(f"{elsewhere}send", form={"name": "y"})
            other = await page.context.new_page()
            with pytest.raises(Exception, match="ERR_"):
                await other.goto(elsewhere)
            await other.close()
        solution = await session.solve("Add Eve")
    assert register.names == ["Eve"] and len(solution.actions) == 2
    assert [type(event) for event in RunFolder.open(tmp_path).session()].count(HandedOver) == 1


async def test_a_write_by_hand_needs_the_yes_that_agents_need(register: Register, site: tuple[Register, str]) -> None:
    asked, told = list[str](), asyncio.Event()

    async def approve(text: str, question: Any) -> bool:
        asked.append(f"{question.method} {question.fields}")
        told.set()
        return False

    async with exact.session(**first(site[1]), approve=approve) as session:
        await session.solve("Type Ann")
        async with session.page_for_acting() as page:
            await page.get_by_role("button").click(no_wait_after=True)
            await asyncio.wait_for(told.wait(), 60)
    assert (register.names, asked) == ([], ["POST {'name': 'Ann'}"])


async def test_a_point_undoes_browser_and_site_together(tmp_path: Path, executable: str) -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    service = {"command": ["python3", str(SITES / "http_rows.py"), "8124"], "ready_url": "http://127.0.0.1:8124/", "reads": [str(SITES)]}
    start = exact.Task(
        id="rows", instruction="", start="http://127.0.0.1:8124/", metadata={"services": msgspec.json.encode([service]).decode()}
    )
    config = exact.Config.parse(SETTINGS | {"browser": {"sandbox": "required", "screenshots": False}})

    class Grocer(Clerk):
        async def propose(self, context: exact.Context, actions: exact.ActionSpace, k: int) -> list[str]:
            [heading] = [each.name for each in context.observation.elements if each.role == "heading"]
            fruit = context.instruction
            button = next(each for each in context.observation.elements if each.name == f"Add {fruit}")
            return ['stop "done"' if fruit in heading else f"click [{button.id}]"]

    async with exact.session(start, **arguments(Grocer(), config=config, out=tmp_path)) as session:
        rows = session.page.locator("h1")
        await session.solve("apple")
        point = await session.snapshot()
        await session.solve("pear")
        async with session.page_for_acting() as page:
            await page.get_by_role("button", name="Add quince").click()
        assert await rows.inner_text() == "Rows: apple, pear, quince"
        await session.restore(point)
        assert await rows.inner_text() == "Rows: apple"
        await session.solve("quince")
        assert await rows.inner_text() == "Rows: apple, quince"


def killed(out: Path, url: str, register: Register, *, hangs: bool) -> list[str]:
    """Kill a session in its second goal: while the agent thinks about sending, or while the site has the request. Return what stays."""
    environ = {**os.environ, MARK: str(out), **({"EXACT_TEST_HANGS": "1"} if hangs else {})}
    with subprocess.Popen([sys.executable, "-m", "tests.e2e.sessions", str(out), url], stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ended\n"
            if hangs:
                assert process.stdout.readline() == b"typed\n"
            else:
                register.held.clear()
                register.came.clear()
                assert register.came.wait(60)
        finally:
            process.kill()
    return gone(out)


async def test_a_kill_in_the_second_goal_loses_and_repeats_nothing(register: Register, site: tuple[Register, str], tmp_path: Path) -> None:
    assert await asyncio.to_thread(killed, tmp_path, site[1], register, hangs=True) == []
    assert register.names == ["Ann"]
    clerk = Clerk()
    async with exact.session(**arguments(clerk, resume=tmp_path)) as session:
        before = [line["actions"] for line in exact.open_run(tmp_path).results()]
        solution = await session.solve(GOALS[0])
        assert clerk.seen == [] and [solution.result.actions] == before
        assert (await session.solve(GOALS[1])).answer == "added"
        assert session.lost == (
            "the earlier browser is gone, and its page was opened again: texts that were typed and not sent, and what only scripts knew, "
            "cannot be had again"
        )
    assert register.names == ["Ann", "Bob"]
    assert [each["status"] for each in exact.open_run(tmp_path).results()] == ["judged", "judged"]
    [opened] = [event for event in RunFolder.open(tmp_path).session() if isinstance(event, OpenedAgain)]
    assert opened.url == f"{site[1]}form"
    assert [type(event) for event in exact.open_run(tmp_path).journal(exact.open_run(tmp_path).tasks[1])].count(ev.Resumed) == 1


async def test_a_kill_during_a_write_is_said_and_not_sent_again(register: Register, site: tuple[Register, str], tmp_path: Path) -> None:
    assert await asyncio.to_thread(killed, tmp_path, site[1], register, hangs=False) == []
    register.held.set()
    async with exact.session(**arguments(resume=tmp_path)) as session:
        await session.solve(GOALS[0])
        with pytest.raises(
            exact.UncertainCommit, match=r"may have been carried out before the crash: .* give the goal again with repeat_uncertain=True"
        ):
            await session.solve(GOALS[1])
        assert register.names == ["Ann", "Bob"]
        assert (await session.solve("Type Eve")).answer == "typed"
    assert register.names == ["Ann", "Bob"]
