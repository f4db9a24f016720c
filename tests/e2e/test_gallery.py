"""Every ability of a browser environment, on a page of its own: it acts, is observed, and comes back."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from exact.config import BrowserConfig, GeolocationConfig
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup, launch
from exact.errors import ActionError
from exact.observation import Observation
from exact.task import Task

from .gallery_tour import TOUR, Stop, act, go
from .sites import gallery

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG = BrowserConfig(
    screenshots=False,
    width=600,
    height=400,
    geolocation=GeolocationConfig(latitude=52.5, longitude=13.4),
    permissions=("geolocation",),
    download_bytes=1_000_000,
)
HOST = "http://gallery.localhost"
Enter = Callable[..., AbstractAsyncContextManager[tuple[BrowserEnvironment, Observation]]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(executable: str) -> AsyncIterator[Browser]:
    with gallery.serving() as port:
        address = f"127.0.0.1:{port}"
        async with launch(CONFIG, {"gallery.localhost": address, "other.test": address}) as browser:
            yield browser


def task_of(page: str, folder: Path, **metadata: str) -> Task:
    """Return a task with two files to upload."""
    for name, text in (("notes.txt", "hello"), ("more.csv", "a,b")):
        (folder / name).write_text(text)
    files = (str(folder / "notes.txt"), str(folder / "more.csv"))
    return Task(
        id=f"gallery{page}", instruction="Look.", start=HOST + page, origins=("http://other.test",), files=files, metadata={**metadata}
    )


@pytest.fixture
def enter(site: Browser, tmp_path: Path) -> Enter:
    """`async with enter("/page") as (environment, observation)`."""

    @asynccontextmanager
    async def opened(page: str, config: BrowserConfig = CONFIG, **metadata: str) -> AsyncIterator[tuple[BrowserEnvironment, Observation]]:
        async with BrowserFactory(site, PageSetup(), config, isolated=True).open(simulation=False) as environment:
            yield environment, await environment.reset(task_of(page, tmp_path, **metadata))

    return opened


async def taken(environment: BrowserEnvironment, seen: Observation, stop: Stop) -> Observation:
    for text, expected in stop.steps:
        seen = await go(environment, seen, text)
        assert expected in seen.text, f"after {text}:\n{seen.text}"
    return seen


@pytest.mark.parametrize("stop", TOUR, ids=lambda stop: stop.name)
async def test_it_acts_is_observed_and_comes_back_by_replay(enter: Enter, stop: Stop) -> None:
    if stop.name == "pdf":
        pytest.importorskip("pypdf")
    async with enter(stop.page) as (environment, seen):
        last = await taken(environment, seen, stop)
        task = environment.episode.task
        assert task is not None
        again = await taken(environment, await environment.reset(task), stop)
        assert again.text == last.text and again.fingerprint == last.fingerprint


async def test_a_cross_origin_frame_is_seen_and_acted_in_beyond_the_view(enter: Enter) -> None:
    async with enter("/frames") as (environment, seen):
        far = [each for each in seen.elements if each.name == "Press"][1]
        assert not far.visible
        after = await environment.step(environment.actions.parse(f"click [{far.id}]"))
        assert after.observation is not None and "pressed 1" in after.observation.text
        note = [each for each in after.observation.elements if each.role == "textbox"][1]
        filled = await environment.step(environment.actions.parse(f'fill [{note.id}] "over there"'))
        assert filled.observation is not None and 'value="over there"' in filled.observation.text


async def test_frames_that_ask_for_a_process_of_their_own_are_seen_and_acted_in(enter: Enter) -> None:
    async with enter("/isolated") as (environment, seen):
        buttons = [each for each in seen.elements if each.name == "Press"]
        assert len(buttons) == 3
        for number, button in enumerate(buttons, 1):
            after = await go(environment, seen, f"click [{button.id}]")
            assert after.text.count("pressed 1") == number


async def test_a_download_is_kept_as_name_size_and_hash(enter: Enter) -> None:
    async with enter("/download") as (environment, seen):
        step = await act(environment, seen, 'click ["Report"]')
        [effect] = step.effects
        digest = hashlib.sha256(gallery.REPORT).hexdigest()
        assert (effect.kind, effect.detail, effect.size, effect.digest) == ("download", "report.csv", len(gallery.REPORT), digest)
        assert step.observation is not None and step.observation.downloads == (f"report.csv ({effect.size} bytes, sha256 {digest[:16]})",)
        assert step.observation.fingerprint != seen.fingerprint
        made = (await act(environment, step.observation, 'click ["Made here"]')).effects
        assert [(each.detail, each.size) for each in made] == [("made.txt", 16)]


async def test_a_download_over_the_limit_is_refused_and_nothing_changes(enter: Enter) -> None:
    async with enter("/download") as (environment, seen):
        with pytest.raises(ActionError, match=r"large.bin was not downloaded: it is larger than the 1,000,000 bytes"):
            await act(environment, seen, 'click ["Large"]')
        step = await act(environment, seen, 'click ["Large and more"]')
        assert step.observation is not None and "also" in step.observation.text and "larger than" in step.info["download"]
        assert step.observation.downloads == ()


async def test_files_that_the_task_does_not_declare_are_not_given(enter: Enter) -> None:
    async with enter("/upload") as (environment, seen):
        with pytest.raises(ActionError, match=r"no file 'note.txt': did you mean 'notes.txt'"):
            await act(environment, seen, 'upload ["Report"] "note.txt"')
        with pytest.raises(ActionError, match="no file '/etc/passwd'"):
            await act(environment, seen, 'upload ["Report"] "/etc/passwd"')
        with pytest.raises(ActionError, match="takes one file"):
            await act(environment, seen, 'upload ["Report"] "notes.txt, more.csv"')
        with pytest.raises(ActionError, match="asks for no file"):
            await act(environment, seen, 'upload ["Nothing"] "notes.txt"')


async def test_environments_that_share_a_browser_have_a_clipboard_each(enter: Enter) -> None:
    async with enter("/clipboard") as (one, first), enter("/clipboard") as (other, second):
        for environment, seen, text in ((one, first, "of one"), (other, second, "of other")):
            seen = await go(environment, seen, f'fill ["From"] "{text}"')
            await go(environment, seen, 'press "Ctrl+a"')
            await go(environment, seen, 'press "Ctrl+c"')
        for environment, seen, text in ((one, first, "of one"), (other, second, "of other")):
            await go(environment, seen, 'click ["To"]')
            assert f'"To" value="{text}"' in (await go(environment, seen, 'press "Ctrl+v"')).text
        await one.reset(task := one.episode.task or Task(id="none", instruction=""))
        await go(one, first, f'fill [{first.elements[1].id}] "x"')
        await go(one, first, 'press "Ctrl+a"')
        assert "of one" not in (await go(one, first, 'press "Ctrl+v"')).text, task


async def test_the_focus_follows_popups_and_tabs_are_changed_by_number(enter: Enter) -> None:
    async with enter("/tabs") as (environment, seen):
        opened = await go(environment, seen, 'click ["Opens a tab"]')
        assert opened.url.endswith("/canvas") and opened.tabs == (HOST + "/tabs",)
        back = await go(environment, opened, "tab 1")
        assert back.url.endswith("/tabs") and back.tabs == (HOST + "/canvas",)
        third = await go(environment, back, 'click ["Opens a window"]')
        assert third.url.endswith("/hover") and third.tabs == (HOST + "/tabs", HOST + "/canvas")
        fourth = await go(environment, third, "new_tab")
        assert fourth.url == "about:blank" and len(fourth.tabs) == 3
        there = await go(environment, fourth, f'goto "{HOST}/keys"')
        assert there.url == HOST + "/keys"
        closed = await go(environment, there, "close_tab")
        assert closed.url.endswith("/hover"), "the one that was looked at before"
        with pytest.raises(ActionError, match="there is no tab 3: the other tabs are 1 to 2"):
            await go(environment, closed, "tab 3")
        await go(environment, closed, "close_tab")
        only = await go(environment, closed, "close_tab")
        assert only.tabs == ()
        with pytest.raises(ActionError, match="only tab"):
            await go(environment, only, "close_tab")


async def test_go_forward_undoes_go_back(enter: Enter) -> None:
    async with enter("/tabs") as (environment, seen):
        there = await go(environment, seen, 'click ["Goes on"]')
        assert (await go(environment, there, "go_back")).url == seen.url
        assert (await go(environment, there, "go_forward")).fingerprint == there.fingerprint
        with pytest.raises(ActionError, match="no page to go forward to"):
            await go(environment, there, "go_forward")


@pytest.mark.parametrize(
    ("button", "answer", "outcome"),
    [
        ("Warn", "accept", "minded"),
        ("Ask", "accept", "agreed"),
        ("Ask", "dismiss", "declined"),
        ("Ask", 'click ["Cancel"]', "declined"),
        ("Question", "accept", "name nobody"),
        ("Question", 'answer "Ann"', "name Ann"),
        ("Question", "dismiss", "name null"),
        ("Later", 'click ["OK"]', "late"),
    ],
)
async def test_a_dialog_is_observed_and_answered(enter: Enter, button: str, answer: str, outcome: str) -> None:
    async with enter("/dialogs") as (environment, seen):
        step = await act(environment, seen, f'click ["{button}"]')
        asked = step.observation
        assert asked is not None and [effect.kind for effect in step.effects] == ["dialog"]
        assert asked.elements[0].role == "alertdialog" and asked.fingerprint != seen.fingerprint
        with pytest.raises(ActionError, match=r"a dialog is open and says '.*': accept it, dismiss it"):
            await act(environment, seen, 'click ["Warn"]')
        assert outcome in (await go(environment, asked, answer)).text
        with pytest.raises(ActionError, match="no dialog is open"):
            await act(environment, seen, "accept")


async def test_a_text_is_filled_into_a_question_and_a_second_dialog_follows_the_first(enter: Enter) -> None:
    async with enter("/dialogs") as (environment, seen):
        asked = await go(environment, seen, 'click ["Question"]')
        filled = await go(environment, asked, 'fill [textbox "answer"] "Bea"')
        assert 'value="Bea"' in filled.text and filled.fingerprint != asked.fingerprint
        assert "name Bea" in (await go(environment, filled, 'click ["OK"]')).text
        one = await go(environment, seen, 'click ["Twice"]')
        with pytest.raises(ActionError, match="asks for no text"):
            await go(environment, one, 'answer "x"')
        two = await go(environment, one, "accept")
        assert "One?" in one.text and "Two?" in two.text and one.fingerprint != two.fingerprint
        assert "not both" in (await go(environment, two, "dismiss")).text


async def test_a_reset_does_not_wait_for_an_answer(enter: Enter) -> None:
    async with enter("/dialogs") as (environment, seen):
        await go(environment, seen, 'click ["Ask"]')
        task = environment.episode.task
        assert task is not None
        async with asyncio.timeout(20):
            assert (await environment.reset(task)).fingerprint == seen.fingerprint


async def test_equal_questions_after_different_actions_are_different_states(enter: Enter) -> None:
    async with enter("/dialogs") as (environment, seen):
        draft = await go(environment, seen, 'fill ["Draft"] "x"')
        first = await go(environment, draft, 'click ["Ask"]')
        await go(environment, first, "dismiss")
        task = environment.episode.task
        assert task is not None
        second = await go(environment, await environment.reset(task), 'click ["Ask"]')
        assert first.text.partition("]")[2] == second.text.partition("]")[2] and first.fingerprint != second.fingerprint


async def test_a_page_asks_before_it_is_left(enter: Enter) -> None:
    async with enter("/dialogs") as (environment, seen):
        drafted = await go(environment, seen, 'fill ["Draft"] "half"')
        asked = await go(environment, drafted, 'click ["Away"]')
        assert "may be lost" in asked.text and 'button "Stay"' in asked.text
        stayed = await go(environment, asked, "dismiss")
        assert stayed.url == seen.url and 'value="half"' in stayed.text
        await go(environment, stayed, f'goto "{HOST}/keys"')
        assert (await go(environment, stayed, "accept")).url == HOST + "/keys"


async def test_a_page_that_greets_with_a_dialog_begins_with_it(enter: Enter) -> None:
    async with enter("/greeting") as (environment, seen):
        assert "Welcome" in seen.text
        assert "after the welcome" in (await go(environment, seen, "accept")).text


async def test_dialogs_are_accepted_when_configured(enter: Enter) -> None:
    async with enter("/dialogs", browser=json.dumps({"dialogs": "accept"})) as (environment, seen):
        assert "agreed" in (await go(environment, seen, 'click ["Ask"]')).text


async def test_masked_content_appears_nowhere(enter: Enter) -> None:
    config = BrowserConfig(width=600, height=400, mask=(".secret",), html=True)
    async with enter("/masked", config) as (environment, seen):
        told = " ".join((seen.text, seen.title, seen.html, repr(seen.elements)))
        for secret in ("4711", "9876", "inner secret"):
            assert secret not in told
        assert "(masked)" in seen.text and "inner public" in seen.text and "Pay (masked)" in seen.text
        assert seen.screenshot is not None and not _reds(seen.screenshot)
        await environment.reset(Task(id="gallery/masked", instruction="", start=HOST + "/masked", metadata={"browser": '{"mask": []}'}))
        plain = await go(environment, seen, "wait")
        assert "4711.50" in plain.text and plain.screenshot is not None and _reds(plain.screenshot)


def _reds(png: bytes) -> int:
    """Pixels of plain red."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(png)) as picture:
        return sum(count for count, colour in picture.convert("RGB").getcolors(1 << 24) or [] if colour == (255, 0, 0))


async def test_each_task_has_its_own_terms(enter: Enter) -> None:
    terms = {"width": 500, "height": 300, "scale": 2.0, "locale": "de-DE", "timezone": "Europe/Berlin", "user_agent": "Mine/1"}
    async with enter("/terms", browser=json.dumps(terms)) as (environment, seen):
        assert "500 | 300 | 2 | de-DE | Europe/Berlin | 12.345,6 | Mine/1" in seen.text
        other = await environment.reset(Task(id="gallery/terms", instruction="", start=HOST + "/terms"))
        assert "600 | 400 | 1 | en-US | UTC | 12,345.6" in other.text


async def test_html_has_the_ids_of_the_tree(enter: Enter) -> None:
    async with enter("/choices", browser=json.dumps({"html": True})) as (_, seen):
        colour = next(each for each in seen.elements if each.name == "Colour")
        assert f'<select exact="{colour.id}"' in seen.html and "<script" not in seen.html and "onchange" not in seen.html


async def test_a_pdf_that_cannot_be_read_says_so(enter: Enter) -> None:
    pytest.importorskip("pypdf")
    async with enter("/pdf") as (environment, seen):
        assert "This PDF cannot be read" in (await go(environment, seen, 'click ["Broken"]')).text


async def test_a_page_that_never_settles_is_observed_and_says_so(enter: Enter) -> None:
    async with enter("/restless", browser=json.dumps({"settle_seconds": 0.3})) as (environment, seen):
        step = await act(environment, seen, 'click ["Here"]')
        assert step.observation is not None and "still changing after 0.3 s" in step.info["unsettled"]


@pytest.mark.parametrize(
    ("before", "action", "words"),
    [
        ("", 'click ["Off"]', "is disabled"),
        ("", 'fill ["Fixed"] "x"', "is read-only"),
        ("", 'click ["Under"]', 'is covered by <div> "Cover"'),
        ("", 'select ["Town"] "Berne"', "has no option 'Berne': did you mean 'Bern'"),
        ('click ["Remove"]', 'click ["Goner"]', "has vanished"),
        ('click ["Detach"]', 'click ["Press"]', "has vanished"),
        ("", "click [999]", r"there is no element \[999\]: name an id"),
    ],
)
async def test_an_impossible_action_says_why(enter: Enter, before: str, action: str, words: str) -> None:
    async with enter("/trouble") as (environment, seen):
        now = await go(environment, seen, before) if before else seen
        with pytest.raises(ActionError, match=words):
            await act(environment, seen, action)
        async with asyncio.timeout(5):
            assert (await go(environment, now, "wait")).fingerprint == now.fingerprint, "nothing was changed by it"


async def test_a_trace_is_written_on_request(enter: Enter, tmp_path: Path) -> None:
    config = BrowserConfig(screenshots=False, traces=str(tmp_path / "traces"))
    async with enter("/keys", config) as (environment, seen):
        await go(environment, seen, 'press "x"')
    [trace] = (tmp_path / "traces").iterdir()
    assert trace.stat().st_mode & 0o777 == 0o600 and trace.read_bytes()[:2] == b"PK"


async def test_dialogs_of_two_pages_are_answered_one_after_the_other(enter: Enter) -> None:
    async with enter("/tabs") as (environment, seen):
        opened = await go(environment, seen, 'click ["Opens a tab"]')
        for page in environment.page.context.pages:
            await page.evaluate("void setTimeout(() => { confirm('Of ' + location.pathname); document.title = 'answered' })")
        async with asyncio.timeout(10):
            while not (environment.episode.tabs.dialogs.is_asked and environment.episode.tabs.dialogs._next):  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.01)
        with pytest.raises(ActionError, match="a dialog is open and says 'Of /") as refused:
            await go(environment, opened, "wait")
        second = await go(environment, opened, "accept")
        assert {second.elements[0].name} == {"Of /tabs", "Of /canvas"} - {
            name for name in ("Of /tabs", "Of /canvas") if name in str(refused.value)
        }
        after = await go(environment, second, "dismiss")
        assert after.title == "answered" and after.elements[0].role != "alertdialog"
