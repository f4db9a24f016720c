"""Applications of other toolkits than GTK 3: each reports in its own way, and is observed and used alike. Absent ones are skipped."""

from __future__ import annotations

import os
import shutil

import pytest

from exact.environments.desktop.roles import ENABLED, SENSITIVE, states
from exact.environments.process.worker import Worker
from exact.observation import Observation

from .applications import Do, desktop_task, id_of, needs_gtk, value_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


def needs(*programs: str) -> None:
    if lack := [name for name in programs if not shutil.which(name)]:
        pytest.skip(f"{', '.join(lack)} not installed")


def names(seen: Observation, role: str) -> list[str]:
    return [each.name for each in seen.elements if each.role == role]


async def test_a_menu_of_gtk_2_is_seen_while_it_is_open_and_only_then(desktop: Worker, do: Do) -> None:
    needs("pcmanfm")
    before = await desktop.reset(desktop_task(["pcmanfm"]))
    seen = await do(f"click [{id_of(before, 'menuitem', 'File')}]")
    assert {"New Window", "Create New...", "Close Window"} < set(names(seen, "menuitem"))
    seen = await do(f"hover [{id_of(seen, 'menuitem', 'Create New...')}]")
    assert "Folder" in names(await do("wait"), "menuitem")
    await do('press "Escape"')
    assert names(await do('press "Escape"'), "menuitem") == names(before, "menuitem")


async def test_the_text_of_a_terminal_is_seen(desktop: Worker, do: Do) -> None:
    needs("lxterminal")
    seen = await desktop.reset(desktop_task(["lxterminal", "--command", "cat"]))
    await do('type "hello there"')
    seen = await do('press "Enter"')
    assert value_of(seen) == "hello there\nhello there", seen.text
    assert not any("disabled" in each.states for each in seen.elements if each.role == "tab")


async def test_a_bar_in_a_window_is_no_dialog_before_it(desktop: Worker, do: Do) -> None:
    needs("eog")
    seen = await desktop.reset(desktop_task(["eog", "~/broken.png"], files={"broken.png": "no picture"}))
    assert any("Could not load image" in each.name for each in seen.elements), seen.text
    assert "Preferences" in [each.name for each in (await do(f"click [{id_of(seen, 'button', 'Menu')}]")).elements]


LATE = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk
GLib.set_prgname("soffice")
window, box, entry = Gtk.Window(title="Late"), Gtk.Box(), Gtk.Entry()
button = Gtk.Button(label="Undo", sensitive=False)
window.add(box)
box.add(entry)
box.add(button)
entry.connect("changed", lambda _: GLib.timeout_add(300, lambda: button.set_sensitive(True)))
window.show_all()
Gtk.main()
"""
"""A program whose tool bar follows 0.3 s after an input, as LibreOffice's does."""


async def test_a_tool_bar_that_follows_late_is_waited_for(desktop: Worker, do: Do) -> None:
    needs_gtk()
    seen = await desktop.reset(desktop_task(["/usr/bin/python3", "~/late.py"], files={"late.py": LATE}))
    assert "disabled" in next(each.states for each in seen.elements if each.name == "Undo"), seen.text
    seen = await do('type "x"')
    assert "disabled" not in next(each.states for each in seen.elements if each.name == "Undo"), seen.text


async def test_a_sheet_is_seen_by_its_visible_cells(desktop: Worker, do: Do) -> None:
    needs("soffice")
    office = ["soffice", "--calc", "--norestore", "--nologo", "~/a.csv", "--infilter=CSV:44,34,76,1"]
    seen = await desktop.reset(desktop_task(office, files={"a.csv": "one,two\n3,4.5\n"}, seconds=90))
    cells = {each.name: each for each in seen.elements if each.role == "cell"}
    assert [cells[name].value for name in ("A1", "B1", "A2", "B2", "C3")] == ["one", "two", "3", "4.5", None]
    assert 200 < len(cells) < 3000 and not any("disabled" in each.states for each in cells.values())
    await do(f"click [{cells['C2'].id}]")
    await do('type "=A2*2"')
    seen = await do('press "Enter"')
    after = {each.name: each for each in seen.elements if each.role == "cell"}
    assert (after["C2"].value, after["C2"].id, after["C2"].box) == ("6", cells["C2"].id, cells["C2"].box)
    seen = await do(f"click [{id_of(seen, 'menuitem', 'Format')}]")
    assert "Clear Direct Formatting" in names(seen, "menuitem")


async def test_a_splash_screen_is_not_the_application(desktop: Worker, do: Do) -> None:
    needs("gimp")
    seen = await desktop.reset(desktop_task(["gimp"], seconds=90))
    assert seen.title == "GNU Image Manipulation Program" and id_of(seen, "group", "Crop Tool: Remove edge areas from image or layer")


async def test_the_page_in_a_browser_is_seen(desktop: Worker, do: Do) -> None:
    needs("chromium")
    page = "<title>T</title><h1>Hi</h1><button onclick='this.textContent=\"Gone\"'>Go</button><input placeholder=nm>"
    page += "<table border=1><tr><td><a href=/x>Link</a></td></tr><tr><td>plain</td></tr></table>"
    options = ["--no-sandbox", "--no-first-run", "--force-renderer-accessibility", "--password-store=basic"]
    await desktop.reset(desktop_task(["chromium", *options, "~/page.html"], files={"page.html": page}, seconds=60))
    seen = await do("wait")
    for _ in range(10):
        if "Go" in names(seen, "button"):
            break
        seen = await do("wait")
    assert not [each for each in seen.elements if "\ufffc" in f"{each.name}{each.value}"], seen.text
    assert "Gone" in names(await do(f"click [{id_of(seen, 'button', 'Go')}]"), "button")
    seen = await do(f'fill [{id_of(seen, "textbox", "nm")}] "written"')
    assert "written" in [each.value for each in seen.elements]


async def test_a_menu_of_qt_is_seen(desktop: Worker, do: Do) -> None:
    needs("vlc")
    if os.geteuid() == 0:
        pytest.skip("vlc refuses to run as root: seen in a sandbox, where applications run as a user")
    seen = await desktop.reset(desktop_task(["vlc", "--no-qt-privacy-ask"], seconds=60))
    assert "Open File..." in names(await do(f"click [{id_of(seen, 'menuitem', 'Media')}]"), "menuitem")


@pytest.mark.parametrize(
    ("bits", "role", "disabled"), [(0, "button", True), (SENSITIVE, "button", False), (ENABLED, "cell", False), (0, "tab", False)]
)
async def test_what_can_be_used_is_not_called_disabled(bits: int, role: str, disabled: bool) -> None:
    assert ("disabled" in states(bits, role)) is disabled
