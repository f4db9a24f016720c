"""How long a desktop is waited for."""

from __future__ import annotations

import select
import socket
from contextlib import closing
from typing import Any

import pytest

from exact.environments.desktop import settle


class Clock:
    """A desktop on a clock of its own. Its answers take a time, and it changes until a moment."""

    def __init__(self, answer: float, busy: float) -> None:
        self.now, self.answer, self.busy = 0.0, answer, busy

    def monotonic(self) -> float:
        return self.now

    def take(self) -> bool:
        return False

    def answered(self, *_: Any) -> bool:
        self.now += self.answer
        return self.now < self.busy

    def changes(self, bus: Any, screen: Any, seconds: float) -> bool:
        self.now += min(seconds, self.answer)
        return self.now < self.busy


@pytest.mark.parametrize(
    ("answer", "busy", "idle", "until"),
    [
        (0.002, 1.0, True, 1.1),
        (0.002, 60.0, False, 3.1),
        (0.2, 8.0, True, 10.0),
        (0.2, 60.0, False, 13.0),
        (5.0, 600.0, False, 45.0),
    ],
)
def test_a_desktop_that_answers_slowly_is_waited_for_longer(
    answer: float, busy: float, idle: bool, until: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock: Any = Clock(answer, busy)
    monkeypatch.setattr(settle, "time", clock)
    monkeypatch.setattr(settle, "_answered", clock.answered)
    monkeypatch.setattr(settle, "changes", clock.changes)
    assert settle.settle(clock, clock, (), 3.0) is idle
    assert clock.now <= until


class Quiet:
    """A bus, and a screen, with a message that tells of no change."""

    def __init__(self) -> None:
        self.here, there = socket.socketpair()
        there.send(b"a property")
        self.there, self.events, self.drawn = there, 0, False

    def fileno(self) -> int:
        return self.here.fileno()

    def take(self) -> bool:
        if select.select([self.here], [], [], 0)[0]:
            self.here.recv(100)
        return self.drawn

    def close(self) -> None:
        self.here.close()
        self.there.close()


def test_a_message_that_tells_of_no_change_is_none() -> None:
    with closing(Quiet()) as bus, closing(Quiet()) as screen:
        given: Any = (bus, screen)
        assert not settle.changes(*given, 0.01)
        screen.there.send(b"drawn")
        screen.drawn = True
        assert settle.changes(*given, 60)


def test_messages_without_end_that_tell_of_no_change_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Quiet()) as bus, closing(Quiet()) as screen:
        monkeypatch.setattr(screen, "take", lambda: False)  # what arrived is there still
        given: Any = (bus, screen)
        assert not settle.changes(*given, 0.01)
