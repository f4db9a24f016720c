"""What `desktop_env` asks by a program is answered without running it."""

from __future__ import annotations

import pytest

from exact.environments.desktop.vm.commands import answer

START = "import pyautogui; import time; pyautogui.FAILSAFE = False; "


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import os; print(os.path.expanduser('~/.config/vlc/vlcrc'))", "/home/user/.config/vlc/vlcrc\n"),
        ("import os; print(os.path.join(os.getenv('HOME'), '.config', 'x'))", "/home/user/.config/x\n"),
        ("import os; print(os.path.join(os.path.expanduser('~'), 'a'))", "/home/user/a\n"),
        ("import platform; print(platform.system())", "Linux\n"),
    ],
)
def test_a_path_that_is_asked_for_is_computed(program: str, said: str) -> None:
    assert answer(START + program, {"HOME": "/home/user"}) == said


@pytest.mark.parametrize(
    "program",
    [
        "pyautogui.click(1, 2)",
        "print(open('/etc/passwd').read())",
        "print(os.getenv('SECRET'))",
        "print(os.path.join(os.listdir('/')))",
        "print(os.path.expanduser('~')); pyautogui.click(1, 2)",
        "print(f'{1}')",
        "print(",
    ],
)
def test_anything_else_is_no_question(program: str) -> None:
    assert answer(START + program, {"HOME": "/home/user"}) is None
