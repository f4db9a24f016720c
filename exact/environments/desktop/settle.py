"""Idleness of a desktop: its applications answer, and neither they nor the screen have reported a change for a moment."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence

from exact.environments.desktop.accessibility import Accessibility, property_of
from exact.environments.desktop.screen import Screen
from exact.errors import EnvironmentFailure

QUIET = 0.04
"""Seconds without a change that count as idle if applications answer at once."""
LATE = {"soffice": 0.6}
"""Seconds without a report after an input, by the name of an application that continues by itself: LibreOffice's tool bars follow it
0.3 s later."""
_HUNG_SECONDS = 45.0
"""Seconds after which the window manager counts as hung."""
_SLOWER = 4.0
"""The same as a multiple of an answer's time, on a slower machine."""
_ANSWERS, _LONGEST = 60.0, 30.0
"""Time that may pass until it is idle, as a multiple of an answer's time, and its maximum in seconds."""


def settle(bus: Accessibility, screen: Screen, applications: Sequence[str], seconds: float, late: float = 0.0) -> bool:
    """Wait until a desktop is idle, and until applications have reported nothing for `late` seconds more, whatever they draw.

    Return False if it still changed after that many seconds, or more if it answers slowly: typed text is still on its way then. Raises
    Silent if an application hangs.
    """
    first = time.monotonic()
    end, last = first + seconds, first + max(seconds, _LONGEST)
    while True:
        began = time.monotonic()
        _answered(bus, screen, applications)
        took = time.monotonic() - began
        end = min(last, max(end, first + _ANSWERS * took))
        bus.take()
        screen.take()
        changed = changes(bus, screen, min(max(QUIET, _SLOWER * took), max(0.0, end - time.monotonic())))
        idle = not changed and not _answered(bus, screen, applications)
        if idle and not (late and reports(bus, min(late, max(0.0, end - time.monotonic())))):
            return True
        if time.monotonic() >= end:
            return False


def _answered(bus: Accessibility, screen: Screen, applications: Sequence[str]) -> bool:
    """Wait until all applications have handled their input. Return whether anything was reported or drawn meanwhile.

    An application that is busy with a key or click reports nothing, and answers when it is done.
    """
    screen.sync()
    if not screen.manager(_HUNG_SECONDS):
        raise EnvironmentFailure(f"the desktop broke: its window manager does not answer for {_HUNG_SECONDS:g} s")
    heard = bus.events
    bus.ask([property_of((name, "/org/a11y/atspi/accessible/root"), "Accessible", "ChildCount") for name in applications])
    bus.take()
    return screen.take() or bus.events > heard


def reports(bus: Accessibility, seconds: float) -> bool:
    """Return whether applications report anything within `seconds`; return at once when one does."""
    ready, _, _ = select.select([bus.fileno()], [], [], seconds)
    return bool(ready)


def changes(bus: Accessibility, screen: Screen, seconds: float) -> bool:
    """Return whether anything is reported or drawn within `seconds`; return at once when it is.

    Messages about neither, such as the window manager's about the properties of our own window, are read and do not count.
    """
    end = time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([bus.fileno(), screen.fileno()], [], [], max(0.0, end - time.monotonic()))
        heard = bus.events
        bus.take()
        if screen.take() or bus.events > heard:
            return True
        if not ready or time.monotonic() > end:
            return False
