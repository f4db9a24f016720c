"""Input to a real X server."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from typing import Any

import pytest

from exact.environments.desktop.screen import X_PROPERTY, Screen
from exact.environments.desktop.session import DesktopSession


@pytest.fixture
def screen(has_desktop: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    session = DesktopSession(320, 240)
    try:
        session.start()
        for name in ("DISPLAY", "XAUTHORITY"):
            monkeypatch.setenv(name, session.env[name])
        made = Screen()
        yield made
        made.close()
    finally:
        session.stop()


def test_the_clicks_of_a_double_click_are_sent_at_once(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    display: Any = screen._display
    sent: list[str] = []
    flush = display.flush
    monkeypatch.setattr(display, "flush", lambda: (sent.append("flush"), flush()))
    screen.click(1, 2)
    assert sent == ["flush"]
    assert not screen._held


def test_all_of_the_window_manager_s_answer_is_read(screen: Screen) -> None:
    end = time.monotonic() + 20
    while not screen.manager(0.1) and time.monotonic() < end:
        pass  # it starts
    screen.take()
    for _ in range(20):
        assert screen.manager(5)
        select.select([screen], [], [], 0.02)
        left: Any = screen._display
        assert X_PROPERTY not in [left.next_event().type for _ in range(left.pending_events())]


def test_a_late_answer_of_the_window_manager_is_no_answer_to_the_next_question(screen: Screen) -> None:
    end = time.monotonic() + 20
    while not screen.manager(1) and time.monotonic() < end:
        pass  # it starts
    for _ in range(20):
        assert not screen.manager(0)
        assert screen.manager(5)
        select.select([screen], [], [], 0.02)
        left: Any = screen._display
        assert X_PROPERTY not in [left.next_event().type for _ in range(left.pending_events())]
