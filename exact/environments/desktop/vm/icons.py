"""The icons of a desktop, run by Debian's Python with GTK: the files and folders of `~/Desktop`, which a double click opens.

File managers draw their icons without reporting them to assistive technology. At the top right stands a menu of the programs.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
from pathlib import Path
from typing import Any

import gi  # type: ignore[import-not-found]

gi.require_version("Gtk", "3.0")
from gi.repository import Atk, Gdk, Gio, GLib, Gtk, Pango  # type: ignore[import-not-found]  # noqa: E402

FOLDER = Path("~/Desktop").expanduser()
PIXELS, CELL = 48, 112
"""Size of an icon, and of the place of an icon with its name, in pixels."""
LEFT_OUT = ("lxterminal.desktop", "tint2.desktop", "tint2conf.desktop")
"""Programs that show nothing in a sandbox, and the panel."""
BAR = 32
"""Pixels at the bottom of the screen that the panel takes."""


class Icons(Gtk.Window):  # type: ignore[misc]
    """The window behind all others."""

    def __init__(self) -> None:
        super().__init__(title="Desktop", decorated=False, skip_taskbar_hint=True, skip_pager_hint=True)
        self.set_type_hint(Gdk.WindowTypeHint.DESKTOP)
        screen = Gdk.Screen.get_default()
        self.set_default_size(screen.get_width(), screen.get_height())
        self.move(0, 0)
        self.rows = max(1, (screen.get_height() - BAR) // CELL)
        self.places, menu, whole = Gtk.Fixed(), Gtk.MenuButton(label="Applications", popup=programs()), Gtk.Overlay()
        menu.set_halign(Gtk.Align.END)
        menu.set_valign(Gtk.Align.START)
        whole.add(self.places)
        whole.add_overlay(menu)
        self.add(whole)
        self.watch = Gio.File.new_for_path(str(FOLDER)).monitor_directory(Gio.FileMonitorFlags.NONE, None)
        self.watch.connect("changed", lambda *_: self.fill())
        self.connect("destroy", Gtk.main_quit)
        self.fill()

    def fill(self) -> None:
        """Show the files and folders in the order of their names, column by column, without hidden ones."""
        for each in self.places.get_children():
            self.places.remove(each)
        with contextlib.suppress(OSError):  # the folder is gone: there is nothing to show
            for at, path in enumerate(path for path in sorted(FOLDER.iterdir()) if not path.name.startswith(".")):
                column, row = divmod(at, self.rows)
                self.places.put(self.icon(path), column * CELL, row * CELL)
        self.show_all()

    def icon(self, path: Path) -> Any:
        """Return a button for a path. A double click opens it, as does the Enter key."""
        button, inside = Gtk.Button(relief=Gtk.ReliefStyle.NONE), Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        inside.add(Gtk.Image.new_from_pixbuf(picture("folder" if path.is_dir() else "text-x-generic")))
        inside.add(Gtk.Label(label=path.name, ellipsize=Pango.EllipsizeMode.MIDDLE))
        inside.set_size_request(CELL - 20, CELL - 20)
        button.add(inside)
        button.get_accessible().set_role(Atk.Role.ICON)
        button.get_accessible().set_name(path.name)
        button.connect("button-press-event", lambda _, event: event.type == Gdk.EventType.DOUBLE_BUTTON_PRESS and opened(path))
        button.connect("activate", lambda _: opened(path))
        return button


def programs() -> Any:
    """Return a menu of the installed programs with windows by name, and the terminal."""
    shown = [each for each in Gio.AppInfo.get_all() if each.should_show() and not each.get_boolean("Terminal")]
    known = {each.get_display_name(): each.get_commandline() or "" for each in shown if each.get_id() not in LEFT_OUT}
    menu = Gtk.Menu()
    for name, command in sorted({**known, "Terminal": "gnome-terminal"}.items()):
        item = Gtk.MenuItem(label=name)
        item.connect("activate", lambda _, words: start(words), [word for word in shlex.split(command) if not word.startswith("%")])
        menu.append(item)
    menu.show_all()
    return menu


def opened(path: Path) -> bool:
    """Open a path in its application."""
    start(["xdg-open", str(path)])
    return True


def start(command: list[str]) -> None:
    """Start a program, if it is there."""
    with contextlib.suppress(OSError):
        subprocess.Popen(command, stdin=subprocess.DEVNULL)


def picture(name: str) -> Any:
    """Return an icon of the theme; None if the theme lacks it."""
    try:
        return Gtk.IconTheme.get_default().load_icon(name, PIXELS, Gtk.IconLookupFlags.FORCE_SIZE)
    except GLib.Error:
        return None


if __name__ == "__main__":
    GLib.set_prgname("desktop")
    Icons()
    Gtk.main()
