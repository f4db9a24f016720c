"""The X screen: pointer, keys, windows and pictures. XTEST through python-xlib, pictures by mss."""

from __future__ import annotations

import hashlib
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.environments.desktop.keys import Keyboard
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from mss.base import MSSBase
    from mss.screenshot import ScreenShot

BUTTONS = {"left": 1, "middle": 2, "right": 3}
_UP, _DOWN, _LEFT, _RIGHT = 4, 5, 6, 7
_QUICKLY = 1
X_PROPERTY = 28
"""PropertyNotify of X.h."""
_X_SELECTION = 31
"""SelectionNotify of X.h."""
_NO_TEXT = "no text"
"""Copied content whose owner has no text of it or does not answer."""


class TopLevelWindow(NamedTuple):
    """Top-level window of an application."""

    id: int
    pid: int
    title: str
    box: tuple[int, int, int, int]
    """x, y, width and height of the application's drawing, without the frame."""


@contextmanager
def broken() -> Iterator[None]:
    """Turn python-xlib's errors about a lost display into EnvironmentFailure."""
    from Xlib.error import ConnectionClosedError, DisplayError, XError

    try:
        yield
    except (ConnectionClosedError, DisplayError, XError, OSError) as error:
        raise EnvironmentFailure(f"the display broke: {error}") from error


def png(shot: ScreenShot) -> bytes:
    import mss.tools

    data = mss.tools.to_png(shot.rgb, shot.size, level=_QUICKLY)
    assert data is not None
    return data


def digest(shot: ScreenShot) -> bytes:
    """Return a digest of the pixels."""
    return hashlib.blake2b(shot.raw).digest()


class Screen:
    """Display. It reads DISPLAY and XAUTHORITY."""

    def __init__(self) -> None:
        """Connect to the display. Raises EnvironmentFailure if there is none."""
        from Xlib import X, display
        from Xlib.ext import damage

        with broken():
            self._display: Any = display.Display()
            self._root: Any = self._display.screen().root
            self._display.damage_query_version()
            self._damage = self._root.damage_create(damage.DamageReportNonEmpty)
            self._display.sync()
            self._reader: Any = self._root.create_window(0, 0, 1, 1, 0, 0, window_class=X.InputOnly)
            self._bell = self._new_bell()
        self.keyboard = Keyboard(self._display)
        self._held = set[int]()
        self._drawn = False
        self._mss: MSSBase | None = None

    @property
    def size(self) -> tuple[int, int]:
        screen = self._display.screen()
        return int(screen.width_in_pixels), int(screen.height_in_pixels)

    def fileno(self) -> int:
        """Return the descriptor, readable when something was drawn."""
        return int(self._display.fileno())

    def sync(self) -> None:
        """Wait until the server has done everything requested."""
        with broken():
            self._display.sync()

    def take(self) -> bool:
        """Read the events that have arrived. Return whether anything was drawn."""
        from Xlib.ext import damage

        with broken():
            drawn, self._drawn = self._drawn, False
            while self._display.pending_events():
                drawn |= self._display.next_event().type != X_PROPERTY
            if drawn:
                damage.damage_subtract(self._root, self._damage)
                self._display.flush()
            return drawn

    def manager(self, seconds: float) -> bool:
        """Wait until the window manager has handled earlier events: it sees clicks first. Return False if it does not answer.

        The request is for a frame's extents, which it answers by setting a property of the requesting window. openbox sets three others
        before that one.
        """
        from Xlib import X
        from Xlib.protocol import event

        end = time.monotonic() + seconds
        with broken():
            extents = self._atom("_NET_FRAME_EXTENTS")
            message = event.ClientMessage(window=self._bell, client_type=self._atom("_NET_REQUEST_FRAME_EXTENTS"), data=(32, [0] * 5))
            self._root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
            self._display.flush()
            while (left := end - time.monotonic()) > 0:
                while self._display.pending_events():
                    found = self._display.next_event()
                    if found.type == X_PROPERTY and found.atom == extents and found.window == self._bell:
                        return True
                    self._drawn |= found.type != X_PROPERTY
                select.select([self], [], [], left)
            self._bell = self._new_bell()  # a late answer does not count for the next question
        return False

    def _new_bell(self) -> Any:
        """Return a window for requests to the window manager."""
        from Xlib import X

        return self._root.create_window(0, 0, 1, 1, 0, 0, window_class=X.InputOnly, event_mask=X.PropertyChangeMask)

    def move(self, x: float, y: float) -> None:
        from Xlib import X

        self._fake(X.MotionNotify, 0, int(x), int(y))

    def press(self, button: int, *, send: bool = True) -> None:
        """Press a button. `send`: whether at once, or with the next event that is sent."""
        from Xlib import X

        self._held.add(button)
        self._fake(X.ButtonPress, button, send=send)

    def release(self, button: int, *, send: bool = True) -> None:
        """Release a button. `send`: as in `press`."""
        from Xlib import X

        self._held.discard(button)
        self._fake(X.ButtonRelease, button, send=send)

    def click(self, button: int = 1, times: int = 1) -> None:
        """Click at the pointer; several clicks form one double or triple click.

        They are sent together: a busy machine may stop this process in between, for longer than a double click may take.
        """
        for left in reversed(range(times)):
            self.press(button, send=False)
            self.release(button, send=not left)

    def scroll(self, right: int, up: int) -> None:
        """Scroll by wheel notches."""
        self.click(_RIGHT if right > 0 else _LEFT, abs(right))
        self.click(_UP if up > 0 else _DOWN, abs(up))

    def let_go(self) -> None:
        """Release every held button and key."""
        for button in tuple(self._held):
            self.release(button)
        with broken():
            self.keyboard.let_go()
        self.sync()

    def pointer(self) -> tuple[int, int]:
        with broken():
            found = self._root.query_pointer()
        return int(found.root_x), int(found.root_y)

    def windows(self) -> list[TopLevelWindow]:
        """Return the windows of applications, topmost last, without minimised ones."""
        with broken():
            ids = self._property(self._root, "_NET_CLIENT_LIST_STACKING")
            return [window for id in ids if (window := self._window(id))]

    def activate(self, window: TopLevelWindow) -> None:
        """Bring a window to the front and give it the focus."""
        self._ask_manager(window, "_NET_ACTIVE_WINDOW", [2, 0, 0, 0, 0])

    def shut(self, window: TopLevelWindow) -> None:
        """Ask a window to close, as its close button does."""
        self._ask_manager(window, "_NET_CLOSE_WINDOW", [0, 2, 0, 0, 0])

    def is_splash(self, window: TopLevelWindow) -> bool:
        """Return whether a window only shows that its application is starting."""
        return self._is_of(window, "_NET_WM_WINDOW_TYPE_SPLASH")

    def is_desktop(self, window: TopLevelWindow) -> bool:
        """Return whether a window is the desktop behind all others."""
        return self._is_of(window, "_NET_WM_WINDOW_TYPE_DESKTOP")

    def class_of(self, window: TopLevelWindow) -> tuple[str, ...]:
        """Return the instance and the class of a window's application: `("mousepad", "Mousepad")`. Empty if it has none."""
        with broken():
            found = self._display.create_resource_object("window", window.id).get_wm_class()
        return tuple(found or ())

    def at(self, x: float, y: float) -> int:
        """Return the process id of the owner of a point; 0 for the background, -1 for an owner without one, such as a menu."""
        with broken():
            here, inside = self._root, None
            while child := here.translate_coords(self._root, int(x), int(y)).child:
                inside, here = child, child
                if found := self._property(child, "_NET_WM_PID"):
                    return int(found[0])
            return 0 if inside is None else -1

    def popup(self, x: float, y: float) -> bool:
        """Return whether a point lies in a window that the window manager does not manage, such as a menu."""
        with broken():
            child = self._root.translate_coords(self._root, int(x), int(y)).child
            return bool(child) and bool(child.get_attributes().override_redirect)

    def copied(self, seconds: float) -> str:
        """Return the text that was copied or cut last, which a later paste inserts; empty if nothing was.

        seconds: time that the application which holds it has to answer.
        """
        from Xlib import X

        end = time.monotonic() + seconds
        with broken():
            clipboard, place = self._atom("CLIPBOARD"), self._atom("EXACT_COPIED")
            if not self._display.get_selection_owner(clipboard):
                return ""
            self._reader.convert_selection(clipboard, self._atom("UTF8_STRING"), place, X.CurrentTime)
            self._display.flush()
            while (left := end - time.monotonic()) > 0:
                while self._display.pending_events():
                    event = self._display.next_event()
                    if event.type == _X_SELECTION:
                        return self._told(place) if event.property else _NO_TEXT
                    self._drawn |= event.type != X_PROPERTY
                select.select([self], [], [], left)
        return _NO_TEXT

    def _told(self, place: int) -> str:
        """Return the text that an application has put into one of our properties; for a long text its size alone."""
        found = self._reader.get_full_property(place, 0)
        self._reader.delete_property(place)
        if found is None:
            return _NO_TEXT
        return found.value.decode("utf-8", "replace") if isinstance(found.value, bytes) else str(list(found.value))

    def shot(self) -> ScreenShot:
        """Return the picture on the screen."""
        import mss

        if self._mss is None:
            self._mss = mss.mss()
        return self._mss.grab(self._mss.monitors[0])

    def picture(self) -> bytes:
        """Return the screen as PNG."""
        return png(self.shot())

    def close(self) -> None:
        if self._mss is not None:
            self._mss.close()
        with broken():
            self._display.close()

    def _ask_manager(self, window: TopLevelWindow, request: str, data: list[int]) -> None:
        """Send the window manager a request about a window. 2 in the data marks it as the user's."""
        from Xlib import X
        from Xlib.protocol import event

        with broken():
            target = self._display.create_resource_object("window", window.id)
            message = event.ClientMessage(window=target, client_type=self._atom(request), data=(32, data))
            self._root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
            self._display.sync()

    def _window(self, id: int) -> TopLevelWindow | None:
        from Xlib.error import XError

        window = self._display.create_resource_object("window", id)
        try:
            shape, origin = window.get_geometry(), window.translate_coords(self._root, 0, 0)
            pid, title = self._property(window, "_NET_WM_PID"), self._property(window, "_NET_WM_NAME")
            seen = window.get_attributes().map_state
        except XError:  # it closed meanwhile
            return None
        if not seen:
            return None
        place = (-origin.x, -origin.y, shape.width, shape.height)
        return TopLevelWindow(id, int(pid[0]) if pid else 0, bytes(title).decode("utf-8", "replace"), place)

    def _is_of(self, window: TopLevelWindow, type: str) -> bool:
        with broken():
            target = self._display.create_resource_object("window", window.id)
            return self._atom(type) in self._property(target, "_NET_WM_WINDOW_TYPE")

    def _property(self, window: Any, name: str) -> Any:
        from Xlib import X

        found = window.get_full_property(self._atom(name), X.AnyPropertyType)
        return found.value if found else ()

    def _atom(self, name: str) -> int:
        return int(self._display.intern_atom(name))

    def _fake(self, kind: int, detail: int, x: int = 0, y: int = 0, *, send: bool = True) -> None:
        from Xlib.ext import xtest

        with broken():
            xtest.fake_input(self._display, kind, detail=detail, x=x, y=y)
            if send:
                self._display.flush()
