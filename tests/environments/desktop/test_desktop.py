"""A real desktop: Xvfb, openbox and two GTK applications."""

from __future__ import annotations

import os
import signal
import struct
import time
from pathlib import Path

import pytest

from exact.environments.desktop.computer13 import read_computer13 as computer13
from exact.environments.desktop.factory import desktop_factory
from exact.environments.desktop.grammar import COMPUTER_13
from exact.environments.process.worker import Worker
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.task import Outcome

from .applications import CALCULATOR, EDITOR, Do, desktop_task, id_of, needs_gtk, running, value_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_clicks_and_keys_reach_applications_and_what_they_show_is_observed(desktop: Worker, do: Do) -> None:
    seen = await desktop.reset(desktop_task(CALCULATOR))
    for key in "78*9":
        seen = await do(f"click [{id_of(seen, 'button', key)}]")
    assert value_of(await do('press "Enter"')) == "702"


async def test_two_clicks_in_two_steps_are_no_double_click(desktop: Worker, do: Do) -> None:
    seen = await desktop.reset(desktop_task(EDITOR))
    field = id_of(seen, "textbox")
    await do(f"click [{field}]")
    await do(f"click [{field}]")
    assert value_of(await do('type "x"')) in ("one\ntwo\nx", "one\ntwox\n", "one\ntwo\nx\n", "onex\ntwo\n")


async def test_equal_resets_look_alike_after_any_actions(desktop: Worker, do: Do) -> None:
    task = desktop_task(EDITOR, CALCULATOR)
    first = await desktop.reset(task)
    await do(f'fill [{id_of(first, "textbox")}] "spoilt"')
    await do('press "Control+s"')
    await do(f"click [{id_of(first, 'menuitem', 'File')}]")
    again = await desktop.reset(task)
    assert (again.text, again.fingerprint) == (first.text, first.fingerprint)


async def test_to_copy_leads_to_another_state_that_looks_the_same(desktop: Worker, do: Do) -> None:
    seen = await desktop.reset(desktop_task(EDITOR))
    await do(f"click [{id_of(seen, 'textbox')}]")
    before = await do('press "Control+a"')
    whole = await do('press "Control+c"')
    assert whole.text == before.text and whole.fingerprint != before.fingerprint
    assert (await do('press "Control+c"')).fingerprint == whole.fingerprint
    await do('press "Control+Home"')
    await do('press "Shift+Right"')
    await do('press "Control+c"')
    part = await do('press "Control+a"')
    assert part.text == whole.text and part.fingerprint not in (whole.fingerprint, before.fingerprint)


def home_of(pid: int) -> Path:
    """Return the home folder of a process."""
    told = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(Path(each[5:].decode()) for each in told if each.startswith(b"HOME="))


async def test_folders_look_as_old_as_files_whenever_a_task_begins(desktop: Worker) -> None:
    await desktop.reset(desktop_task(CALCULATOR, files={"box/inner/a.txt": "a"}))
    home = home_of(running(desktop.pid, "galculator"))
    assert {int((home / each).stat().st_mtime) for each in ("box", "box/inner", "box/inner/a.txt")} == {1_700_000_000}


async def test_any_text_is_written_and_a_condition_on_a_file_sees_it(desktop: Worker, do: Do) -> None:
    text = "Déjà vu: 日本 ₤5\n\tThird (line) <&> ÅÉÎ"
    seen = await desktop.reset(desktop_task(EDITOR, checks=[{"file": "note.txt", "equals": text}]))
    field = id_of(seen, "textbox")
    seen = await do(desktop.actions.action("fill", field, text).key)
    assert value_of(seen) == text
    assert (await desktop.evaluate(Outcome(actions=()))).reason.startswith("file note.txt is 'one two'")
    await do('press "ctrl+s"')
    assert (await desktop.evaluate(Outcome(actions=()))).success


async def test_a_menu_opens_by_a_click_and_the_next_observation_shows_its_items(desktop: Worker, do: Do) -> None:
    before = await desktop.reset(desktop_task(EDITOR))
    seen = await do(f"click [{id_of(before, 'menuitem', 'File')}]")
    assert id_of(seen, "menuitem", "Save As...")
    with pytest.raises(ActionError, match="is disabled"):
        await do(f"click [{id_of(seen, 'menuitem', 'Detach Tab')}]")
    with pytest.raises(ActionError, match="the menu 'File' is open: choose from it, or press"):
        await do(f'fill [{id_of(seen, "textbox")}] "x"')
    closed = await do('press "Escape"')
    assert [each.name for each in closed.elements] == [each.name for each in before.elements]


async def test_an_action_behind_a_dialog_is_refused_and_changes_nothing(desktop: Worker, do: Do) -> None:
    before = await desktop.reset(desktop_task(EDITOR))
    seen = await do('press "Control+o"')
    assert id_of(seen, "dialog", "Open File") and id_of(seen, "cell", "note.txt")
    with pytest.raises(ActionError, match="behind the dialog 'Open File': answer that first"):
        await do(f"click [{id_of(before, 'menuitem', 'Edit')}]")
    assert id_of(await do("wait"), "dialog", "Open File")


async def test_an_option_is_chosen_by_its_label_and_a_missing_one_names_the_others(desktop: Worker, do: Do) -> None:
    await desktop.reset(desktop_task(EDITOR))
    seen = await do('press "Control+r"')
    choice = id_of(seen, "combobox", "Down")
    with pytest.raises(ActionError, match=r"has no option 'Sideways': did you mean .* It has: 'Up', 'Down'"):
        await do(f'select [{choice}] "Sideways"')
    assert "Up" in [each.value for each in (await do(f'select [{choice}] "Up"')).elements if each.id == choice]


async def test_the_other_button_opens_a_menu_and_two_clicks_take_a_word(desktop: Worker, do: Do) -> None:
    seen = await desktop.reset(desktop_task(EDITOR, files={"note.txt": "\n" * 12 + "word " * 60 + "\n" * 12}))
    field = id_of(seen, "textbox")
    assert id_of(await do(f"right_click [{field}]"), "menuitem", "Select All")
    await do('press "Escape"')
    await do(f"double_click [{field}]")
    seen = await do('type "x"')
    assert (value_of(seen) or "").count("x") == 1


async def test_the_wheel_turns_what_is_under_the_pointer(desktop: Worker, do: Do) -> None:
    seen = await desktop.reset(desktop_task(EDITOR, files={"note.txt": "line\n" * 200}))
    field = id_of(seen, "textbox")
    for letter in "AB":
        await do(f"click [{field}]")
        seen = await do(f'type "{letter}"')
        await do("scroll down")
    text = value_of(seen) or ""
    assert 0 < text.index("A") + 50 < text.index("B"), "the second click found another line where the first one did"


async def test_a_window_that_is_covered_comes_to_the_front(desktop: Worker, do: Do) -> None:
    seen = await desktop.reset(desktop_task(EDITOR, CALCULATOR))
    assert seen.title == "galculator"
    assert value_of(await do(f'fill [{id_of(seen, "textbox")}] "front"')) == "front"
    assert value_of(await do(f"click [{id_of(seen, 'button', '7')}]"), last=True) == "7"


@pytest.mark.parametrize(
    ("action", "why"),
    [("click [999]", r"there is no element \[999\] now"), ('fill [1] "x"', "is no field"), ("click_at 5000 1", "outside the screen")],
)
async def test_an_action_that_does_not_fit_is_refused(action: str, why: str, desktop: Worker, do: Do) -> None:
    before = await desktop.reset(desktop_task(CALCULATOR))
    with pytest.raises(ActionError, match=why):
        await do(action)
    assert (await do("wait")).fingerprint == before.fingerprint


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["no-such-program"], "no-such-program cannot be started: No such file"),
        (["sh", "-c", "exit 3"], "sh did not start: it ended with status 3"),
        (["sleep", "60"], "sleep did not start: it showed no window within 1 s"),
    ],
)
async def test_an_application_that_does_not_start_is_named(command: list[str], why: str, desktop: Worker) -> None:
    with pytest.raises(EnvironmentFailure, match=why):
        await desktop.reset(desktop_task(command, seconds=1.0))


async def test_an_application_that_hangs_is_no_state_and_a_reset_repairs_it(desktop: Worker, do: Do) -> None:
    await desktop.reset(desktop_task(CALCULATOR))
    os.kill(running(desktop.pid, "galculator"), signal.SIGSTOP)
    with pytest.raises(EnvironmentFailure, match=r'galculator does not answer after press "7": it hangs'):
        await do('press "7"')
    assert value_of(await desktop.reset(desktop_task(CALCULATOR))) == "0"


async def test_a_display_that_is_killed_is_said_and_a_reset_starts_another(desktop: Worker, do: Do) -> None:
    await desktop.reset(desktop_task(CALCULATOR))
    os.kill(running(desktop.pid, "Xvfb"), signal.SIGKILL)
    with pytest.raises(EnvironmentFailure, match=r"the desktop broke|the display broke|hangs"):
        await do('press "7"')
    await desktop.reset(desktop_task(CALCULATOR))
    assert value_of(await do('press "7"')) == "7"


async def test_an_application_that_was_closed_is_gone_from_the_next_observation(desktop: Worker, do: Do) -> None:
    await desktop.reset(desktop_task(EDITOR, CALCULATOR))
    seen = await do('press "alt+F4"')
    assert [each.name for each in seen.elements if each.role == "window"] == ["~/note.txt - Mousepad"]


async def test_a_setup_that_cannot_be_read_or_leaves_the_home_folder_is_refused(desktop: Worker) -> None:
    for setup, why in (({"aplications": []}, "unknown field `aplications`"), ({"files": {"../x": ""}}, "outside the home folder")):
        with pytest.raises(UsageError, match=why):
            await desktop.reset(desktop_task(CALCULATOR, **setup))


async def test_the_thirteen_actions_of_osworld_move_the_real_pointer_and_keys(has_desktop: None) -> None:
    async with desktop_factory(actions="computer_13") as environments, environments.open(simulation=True) as environment:
        seen = await environment.reset(desktop_task(CALCULATOR))
        assert struct.unpack(">II", (seen.screenshot or b"")[16:24]) == (1280, 800)
        box = next(each.box for each in seen.elements if each.name == "7")
        assert box is not None
        at = {"x": box.x + box.width / 2, "y": box.y + box.height / 2}
        told = [
            {"action_type": "CLICK", "parameters": at},
            {"action_type": "CLICK", "parameters": {**at, "num_clicks": 3}},
            {"action_type": "MOUSE_DOWN"},
            {"action_type": "MOUSE_UP"},
            {"action_type": "TYPING", "parameters": {"text": "1"}},
            {"action_type": "KEY_DOWN", "parameters": {"key": "shift"}},
            {"action_type": "PRESS", "parameters": {"key": "8"}},
            {"action_type": "KEY_UP", "parameters": {"key": "shift"}},
            {"action_type": "PRESS", "parameters": {"key": "2"}},
            {"action_type": "HOTKEY", "parameters": {"keys": ["enter"]}},
        ]
        for action in (each for one in told for each in computer13(one)):
            assert environment.actions.parse(action.key) == action == COMPUTER_13.parse(action.key)
            seen = (await environment.step(action)).observation or seen
        assert value_of(seen) == str(777771 * 2)
        assert (await environment.step(computer13("FAIL")[0])).terminated


async def test_a_program_of_pyautogui_moves_the_real_pointer_and_keys(has_desktop: None) -> None:
    async with desktop_factory(actions="pyautogui") as environments, environments.open(simulation=True) as environment:
        seen = await environment.reset(desktop_task(EDITOR))
        box = next(each.box for each in seen.elements if each.role == "textbox")
        assert box is not None
        program = (
            f"import pyautogui, time\npyautogui.click({box.x + 5}, {box.y + 5})\npyautogui.hotkey('ctrl', 'a')\n"
            "for word in ['a<b', 'ä']:\n    pyautogui.write(word + '\\n')\n    time.sleep(0.1)"
        )
        with pytest.raises(ActionError, match="import os"):
            await environment.step(environment.actions.action("python", program + "\nimport os"))
        transition = await environment.step(environment.actions.action("python", program))
        assert value_of(transition.observation) == "a<b\nä\n"
        assert (await environment.step(environment.actions.action("python", "pyautogui.press('esc')"))).observation is not None
        assert (await environment.step(environment.actions.action("fail"))).terminated


async def test_dragging_takes_what_lies_between_two_points(has_desktop: None) -> None:
    async with desktop_factory(actions="computer_13") as environments, environments.open(simulation=True) as environment:
        seen = await environment.reset(desktop_task(EDITOR))
        box = next(each.box for each in seen.elements if each.role == "textbox")
        assert box is not None
        told = [
            {"action_type": "MOVE_TO", "parameters": {"x": box.x + 3, "y": box.y + 3}},
            {"action_type": "DRAG_TO", "parameters": {"x": box.x + box.width / 2, "y": box.y + box.height / 2}},
            {"action_type": "TYPING", "parameters": {"text": "z"}},
        ]
        for action in (each for one in told for each in computer13(one)):
            seen = (await environment.step(action)).observation or seen
        assert (value_of(seen) or "").strip() == "z"


async def test_a_temporary_folder_with_too_long_a_name_for_sockets_is_refused_with_the_way_out(
    has_desktop: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / ("x" * 90)).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with pytest.raises(
        UsageError, match=rf"^{folder}.* is \d+ bytes too long a name for the sockets of a desktop: set TMPDIR to a shorter"
    ):
        async with desktop_factory() as environments, environments.open(simulation=True):
            pass
    assert not list(folder.glob("exact-desktop-*"))


async def test_a_key_on_the_screen_is_seen_once_it_is_released(desktop: Worker, do: Do) -> None:
    """Half of the keys were seen as pressed before. On a busy machine one may be released late."""
    await desktop.reset(desktop_task(CALCULATOR))
    seen = [await do(f'press "{key}"') for key in "78945612"]
    assert sum("pressed" in each.states for one in seen for each in one.elements) <= 1


LATER = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk
window, label = Gtk.Window(title="Later"), Gtk.Label(label="before")
window.add(label)
window.show_all()
GLib.timeout_add(2000, lambda: label.set_text("after"))
Gtk.main()
"""


async def test_an_observation_without_an_input_shows_what_changed_by_itself(desktop: Worker) -> None:
    needs_gtk()
    seen = await desktop.reset(desktop_task(["/usr/bin/python3", "~/later.py"], files={"later.py": LATER}))
    end = time.monotonic() + 20
    while "after" not in seen.text and time.monotonic() < end:
        seen = await desktop._move("observe", {}, 30, Observation)
    assert "after" in seen.text
