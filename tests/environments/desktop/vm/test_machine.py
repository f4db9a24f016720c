"""The patience of a machine with applications that start, and with windows that a program opens."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from exact.environments.desktop.accessibility import Silent
from exact.environments.desktop.pyautogui import read_pyautogui
from exact.environments.desktop.screen import TopLevelWindow
from exact.environments.desktop.session import DesktopSession
from exact.environments.desktop.vm.commands import Commands, StepFaults
from exact.environments.desktop.vm.document import Opening, titles
from exact.environments.desktop.vm.machine import Machine, _up_to_openings


class Starting:
    """An application that answers the third time that it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.asked < 3:
            raise Silent([":1.5"])
        return "there"


def test_an_application_that_starts_is_asked_again() -> None:
    assert Machine._patiently(Starting()) == "there"


def test_patience_ends() -> None:
    with pytest.raises(Silent):
        Machine._patiently(Starting(), seconds=-1.0)


def test_a_program_waits_where_it_opens_a_terminal() -> None:
    program = "import pyautogui; pyautogui.hotkey('ctrl', 'alt', 't'); pyautogui.write('stty size'); pyautogui.press('enter')"
    parts = list(_up_to_openings(read_pyautogui(program, (1920, 1080))))
    assert [[event.name for event in part] for part in parts] == [["press"], ["type", "press"]]
    assert not list(_up_to_openings(()))


def test_a_step_that_an_agent_may_have_made_impossible_counts_in_a_set_up_alone() -> None:
    faults = StepFaults()
    with subprocess.Popen(["false"]) as ended:
        faults.launched("false", ended)
    faults.refused("no such window")
    assert faults.take(setup=False) == []
    faults.refused("no such window")
    faults.broke("the display broke")
    assert faults.take(setup=True) == ["the display broke", "no such window", "launch: false ended with status 1"]


def test_a_step_of_a_set_up_whose_program_is_not_there_has_failed(tmp_path: Path) -> None:
    faults, session = StepFaults(), cast("DesktopSession", SimpleNamespace(env=dict(os.environ), home=tmp_path))
    commands = Commands(session, lambda program: None, faults)
    for command in ("no-such-program now", "false"):
        done, status = commands.execute({"command": command, "shell": True})
        assert status == 200 and done["returncode"]
    [fault] = faults.take(setup=True)
    assert fault.startswith("execute: no-such-program now: ") and "not found" in fault


def window(id: int, pid: int, title: str = "") -> TopLevelWindow:
    return TopLevelWindow(id, pid, title, (0, 0, 9, 9))


def test_a_window_with_the_id_of_one_that_has_closed_is_new() -> None:
    assert not Opening([window(1, 10)]).seen([window(1, 10)])
    assert Opening([window(1, 10)]).seen([window(1, 11)]), "of another process"
    again = Opening([window(1, 10)])
    assert not again.seen([]) and again.seen([window(1, 10)]), "which was gone in between"


def test_a_window_of_chromium_has_the_title_that_tasks_expect_too() -> None:
    assert titles(window(1, 1, "New Tab - Chromium")) == ["New Tab - Chromium", "New Tab - Google Chrome"]
    assert titles(window(1, 1, "Terminal")) == ["Terminal"]
