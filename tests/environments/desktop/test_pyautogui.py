"""Programs of `pyautogui`: which input events they are, and that nothing else comes of them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.environments.desktop.grammar import COMPUTER_13
from exact.environments.desktop.pyautogui import MOST_SECONDS, read_pyautogui
from exact.errors import ActionError

SIZE = (1920, 1080)


def read(text: str) -> list[str]:
    return [action.key for action in read_pyautogui(text, SIZE, (100.0, 200.0))]


@pytest.mark.parametrize(
    ("program", "events"),
    [
        ("import pyautogui\npyautogui.hotkey('ctrl', 's')", ['press "Control+s"']),
        ("pyautogui.hotkey(['ctrl', 'shift', 't'])", ['press "Control+Shift+t"']),
        ("pyautogui.hotkey('a', 'b')", ['key_down "a"', 'key_down "b"', 'key_up "b"', 'key_up "a"']),
        ("pyautogui.click(960, 540)", ["move_to 960 540", "click_here left 1"]),
        ("pyautogui.click(x=1, y=2, clicks=3, interval=0.1, button='right')", ["move_to 1 2", "click_here right 3"]),
        ("pyautogui.doubleClick()", ["click_here left 2"]),
        ("pyautogui.click((3, 4))", ["move_to 3 4", "click_here left 1"]),
        ("from pyautogui import typewrite as t\nt('a<b>\\n', interval=0.05)", ['type "a<b>\\n"']),
        ("pyautogui.write(['h', 'i', 'enter'])", ['press "h"', 'press "i"', 'press "Enter"']),
        (
            "import pyautogui as p, time\nfor i in range(2):\n    p.press('down')\n    time.sleep(1.5)",
            ['press "ArrowDown"', "wait", "wait"] * 2,
        ),
        (
            "for key in ['up', 'pgdn', '<']:\n    pyautogui.press(key, presses=2)",
            [f'press "{k}"' for k in ("ArrowUp", "PageDown", "<") for _ in "12"],
        ),
        ("with pyautogui.hold('shift'):\n    pyautogui.press('left')", ['key_down "Shift"', 'press "ArrowLeft"', 'key_up "Shift"']),
        ("pyautogui.moveRel(5, -6)\npyautogui.dragTo(50, 60, 0.5, button='left')", ["move_to 105 194", "drag_to 50 60"]),
        (
            "pyautogui.moveTo(10, 10)\npyautogui.drag(5, 5, button='right')",
            ["move_to 10 10", "mouse_down right", "move_to 15 15", "mouse_up right"],
        ),
        ("w, h = pyautogui.size()\nx, y = w / 2, h // 3\npyautogui.click(x, y)", ["move_to 960 360", "click_here left 1"]),
        ("pyautogui.scroll(-5, 10, 20)", ["move_to 10 20", "scroll_by 0 -5"]),
        ("n = 1\nn += 2\npyautogui.write(f'row {n}' + '!' * 2)", ['type "row 3!!"']),
        ("pyautogui.PAUSE = 0.5\npyautogui.FAILSAFE = False\nprint('now')\npyautogui.press('esc')", ['press "Escape"']),
        ("WAIT", ["wait"]),
        ("FAIL", ["fail"]),
        ("DONE", ['stop ""']),
    ],
)
def test_a_program_is_its_input_events(program: str, events: list[str]) -> None:
    assert read(program) == events


@pytest.mark.parametrize(
    ("program", "named"),
    [
        ("import os\nos.system('true')", "import os"),
        ("from time import monotonic\nmonotonic()", "time.monotonic"),
        ("open('/etc/passwd')", "open"),
        ("__import__('os')", "__import__"),
        ("pyautogui.__class__", "pyautogui.__class__"),
        ("pyautogui.click.__globals__['x']", "__globals__"),
        ("pyautogui.screenshot('/tmp/x.png')", "pyautogui.screenshot"),
        ("pyautogui.locateCenterOnScreen('x.png')", "locateCenterOnScreen"),
        ("while True:\n    pyautogui.press('a')", "a loop without a known end"),
        ("if pyautogui.size()[0] > 5: pyautogui.press('a')", "a condition"),
        ("def f(): pass", "a function"),
        ("[].append(1)", "append"),
        ("pyautogui.clik(1, 2)", "did you mean pyautogui.click"),
        ("pyautogui.click(1920, 5)", "outside the screen of 1920 x 1080"),
        ("pyautogui.press('entr')", "did you mean 'Enter'"),
        ("pyautogui.press(7)", "is no key"),
        ("pyautogui.click('save.png')", "is no number"),
        ("pyautogui.press('a', presses=10**4)", "is not allowed"),
        ("for i in range(10000000): pyautogui.press('a')", "too long"),
        ("x = 'a' * 1000\nx = x * 1000", "is not allowed"),
        ("time.sleep(1e6)", f"more than {MOST_SECONDS:g} s"),
        ("pyautogui.moveTo(1e400, 5)", "is not allowed"),
        ("pyautogui.click(1, 2", "cannot be read"),
        ("pyautogui.hold(keys=3)", "is no key"),
        ("x = 5", "does nothing"),
        ("", "does nothing"),
    ],
)
def test_what_is_refused_is_named(program: str, named: str) -> None:
    with pytest.raises(ActionError) as refused:
        read(program)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


_NAMES = st.sampled_from(
    [
        "pyautogui",
        "os",
        "time",
        "x",
        "__import__",
        "eval",
        "exec",
        "open",
        "pyautogui.click",
        "pyautogui.write",
        "subprocess.run",
        "sys.modules",
    ]
)
_ATOMS = st.one_of(
    _NAMES, st.integers(-5000, 5000).map(str), st.floats().map(str), st.text(max_size=8).map(repr),
    st.sampled_from(["'ctrl'", "[]", "{}", "lambda: 0", "None", "...", "b'x'", "1j", "(yield)", "await x", "*x", "x := 5", "'a' * 9**9"]),
)  # fmt: skip
_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(_NAMES, st.lists(inner, max_size=3)).map(lambda t: f"{t[0]}({', '.join(t[1])})"),
        st.tuples(inner, st.sampled_from("+-*/%@|"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["__class__", "mro", "format", "press"])).map(".".join),
        st.tuples(inner, inner).map(lambda t: f"{t[0]}[{t[1]}]"),
        inner.map(lambda each: f"[{each} for x in {each}]"),
        inner.map(lambda each: "f'{" + each.replace("'", "") + "}'"),
    ),
    max_leaves=6,
)
_STATEMENTS = st.one_of(
    _EXPRESSIONS,
    _EXPRESSIONS.map(lambda each: f"x = {each}"),
    _EXPRESSIONS.map(lambda each: f"for x in {each}: pyautogui.press(x)"),
    _EXPRESSIONS.map(lambda each: f"with {each}: pass"),
    _EXPRESSIONS.map(lambda each: f"assert {each}"),
    _NAMES.map(lambda each: f"import {each}"),
    _NAMES.map(lambda each: f"from {each} import system"),
    _EXPRESSIONS.map(lambda each: f"class X({each}): pass"),
    st.text(max_size=30),
)


HARMFUL = (
    "open ", "exec", "import", "os.", "subprocess.", "socket.", "shutil.", "tempfile.", "ctypes.", "urllib.", "http.", "marshal.",
    "pickle.", "code.__new__", "function.__new__", "signal.", "sqlite3.", "glob.", "pathlib.", "webbrowser.", "mmap.",
)  # fmt: skip
"""How the names begin of what an interpreter reports when a program does something."""


class Watched:
    """What the interpreter of this process reports to be doing."""

    def __init__(self) -> None:
        self.on, self.seen = False, set[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.on:
            self.seen.add(f"open {arguments[0]}" if event == "open" else event)


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    found = Watched()  # a hook cannot be taken back: it hears nothing once it is off
    yield found
    found.on = False


@settings(max_examples=5000)
@given(program=st.lists(_STATEMENTS, min_size=1, max_size=4).map("\n".join))
def test_5000_programs_execute_nothing_but_input_events(program: str, watched: Watched) -> None:
    watched.seen.clear()
    gc.disable()  # what others left behind says something when it is collected
    watched.on = True
    try:
        found = read_pyautogui(program, SIZE)
    except ActionError:
        found = ()
    finally:
        watched.on = False
        gc.enable()
    assert not {each for each in watched.seen if each.startswith(HARMFUL)} - {"open <unknown>"}, (
        "the parser looks for an error's line there"
    )
    assert all(action.name in COMPUTER_13.verbs for action in found)
