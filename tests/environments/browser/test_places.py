"""A typed secret is covered in pictures by the browser's own positions, and masked in the field that it was typed into, in any form."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig, LoginConfig
from exact.environments.browser import Browser, BrowserFactory, PageSetup
from exact.observation import Observation
from exact.task import Task

from .pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORD = "plover!Gneiss_58"
HEAD = """<!doctype html><meta charset=utf-8><style>body { margin: 0; background: white; color: #d00; font: 20px monospace }
#field { position: absolute; left: 20px; top: 10px; height: 30px; color: black }</style>"""
FIELD = "<input id=field aria-label=Word>"
HERE = "<script>const echo = document.getElementById('echo'); field.oninput = () => show(field.value); {}</script>"
SHOW = HERE.format("const show = text => echo.textContent = text")
IN_FRAME = """<iframe style="position: absolute; top: 100px; left: 40px; border: 0; width: 200px; height: 100px; transform-origin: 0 0;
transform: scale(2)" srcdoc="<style>p { margin: 50px 0 0; color: #d00; font: 12px monospace }</style><p id=echo>"></iframe>"""
ECHOES = {
    "in a frame that is scaled": IN_FRAME
    + "<script>field.oninput = () => frames[0].document.getElementById('echo').textContent = field.value</script>",
    "as it moves": "<p id=echo style='position: absolute'></p>"
    + HERE.format(
        "const show = text => echo.textContent = text; let y = 99;"
        "(function f() { y = y > 400 ? 99 : y + 9; echo.style.top = y + 'px'; requestAnimationFrame(f) })()"
    ),
    "with a large first letter": "<style>#echo::first-letter { font-size: 60px }</style><p id=echo style='margin-top: 100px'></p>" + SHOW,
    "rotated": "<p id=echo style='position: absolute; top: 300px; left: 100px; transform: rotate(60deg)'></p>" + SHOW,
    "in a closed shadow root": "<div id=echo style='position: absolute; top: 100px'></div>"
    + HERE.format("const root = echo.attachShadow({mode: 'closed'}); const show = text => root.innerHTML = `<p>${text}`"),
    "at the end of a large page": f"<div hidden>{'<i></i>' * 45_000}</div><p id=echo style='position: fixed; top: 200px'></p>" + SHOW,
}
CODED = HERE.format(
    "const coded = text => [...text].map(each => String.fromCharCode(each.charCodeAt(0) + 5)).join('');"
    "const show = text => { if (text.length == 16) { field.value = coded(text); echo.textContent = `It is ${field.value}.` } }"
)
CIPHER = "".join(chr(ord(each) + 5) for each in WORD)


def reds(seen: Observation) -> set[int]:
    """Return the bands of 10 pixels of a screenshot that show something red."""
    assert seen.screenshot is not None
    with Image.open(io.BytesIO(seen.screenshot)) as image:
        red = (np.asarray(image.convert("RGB")).astype(int) @ [1, -1, -1]) > 60
    return {int(row) // 10 for row in np.flatnonzero(red.any(axis=1))}


def factory(browser: Browser, **more: object) -> BrowserFactory:
    config = BrowserConfig(width=640, height=600, login=LoginConfig(secrets={"word": WORD}), **more)  # type: ignore[arg-type]
    return BrowserFactory(browser, PageSetup(), config, isolated=False)


def task(server: HTTPServer, page: str) -> Task:
    server.expect_request("/").respond_with_data(HEAD + page, content_type="text/html")
    return Task(id="echo", instruction="", start=f"http://localhost:{server.port}/")


@pytest.mark.parametrize("echo", ECHOES)
async def test_a_typed_secret_that_a_page_echoes_is_in_no_picture(browser: Browser, httpserver: HTTPServer, echo: str) -> None:
    async with factory(browser).open(simulation=True) as environment:
        seen = await environment.reset(task(httpserver, FIELD + ECHOES[echo]))
        seen = await look(environment, f'fill [{find(seen, "Word").id}] "<word>"')
    assert WORD not in seen.text and reds(seen) == set()


async def test_a_picture_without_a_secret_is_whole(browser: Browser, httpserver: HTTPServer) -> None:
    async with factory(browser).open(simulation=True) as environment:
        seen = await environment.reset(task(httpserver, FIELD + ECHOES["rotated"]))
        seen = await look(environment, f'fill [{find(seen, "Word").id}] "plain text"')
    assert reds(seen) >= {30, 31}


async def test_a_field_is_masked_by_its_place_in_whatever_form_the_page_brings_the_secret(browser: Browser, httpserver: HTTPServer) -> None:
    page = f"{FIELD}<p id=echo style='margin-top: 100px'></p><style>#field {{ color: #d00 }}</style>{CODED}"
    async with factory(browser, html=True).open(simulation=True) as environment:
        seen = await environment.reset(task(httpserver, page))
        seen = await look(environment, f'fill [{find(seen, "Word").id}] "<word>"')
        assert 'textbox "Word" value="(masked)"' in seen.text and "It is (masked)." in seen.text
        assert CIPHER not in seen.text and CIPHER not in (seen.html or "").replace("&amp;", "&")
        assert not reds(seen) & {1, 2, 3}
        seen = await look(environment, f'fill [{find(seen, "Word").id}] "open text"')
        assert 'value="open text"' in seen.text and reds(seen) & {1, 2, 3}


async def test_what_is_edited_in_place_is_masked_by_its_place_too(browser: Browser, httpserver: HTTPServer) -> None:
    page = "<div contenteditable role=textbox aria-label=Note id=note>.</div><script>note.oninput = () => { const text = note.textContent;"
    page += (
        "if (text.length > 15) note.innerHTML = [...text].map(each => `<b>${String.fromCharCode(each.charCodeAt(0) + 5)}</b>`).join('') }"
    )
    async with factory(browser).open(simulation=True) as environment:
        seen = await environment.reset(task(httpserver, page + "</script>"))
        await do(environment, f"click [{find(seen, 'Note').id}]")
        await do(environment, 'press "Control+a"')
        seen = await look(environment, 'type "<word>"')
    assert '"u"' not in seen.text and CIPHER[:3] not in seen.text and reds(seen) == set(), seen.text


async def test_the_place_of_a_secret_is_part_of_a_snapshot(browser: Browser, httpserver: HTTPServer) -> None:
    page = f"{FIELD}<p id=echo style='margin-top: 100px'></p>{CODED}"
    async with factory(browser, page_snapshots=True).open(simulation=True) as environment:
        seen = await environment.reset(task(httpserver, page))
        seen = await look(environment, f'fill [{find(seen, "Word").id}] "<word>"')
        snapshot = await environment.snapshot()
        await do(environment, f'fill [{find(seen, "Word").id}] "open text"')
        back = await environment.restore(snapshot)
    assert back.text == seen.text and "(masked)" in back.text
