"""A terminal for desktops in gVisor, run by Debian's Python with GTK and pyte: `terminal.py [--working-directory=F] [-- COMMAND...]`.

VTE's terminals and xterm do not work there: they need packet mode (TIOCPKT), and to open the other end of a terminal again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import sys
import termios
from pathlib import Path
from typing import Any

import gi  # type: ignore[import-not-found]
import pyte  # type: ignore[import-not-found]

gi.require_version("Gtk", "3.0")
from gi.repository import Atk, Gdk, GLib, Gtk, Pango  # type: ignore[import-not-found]  # noqa: E402

SETTINGS = Path("~/.config/terminal.json").expanduser()
SIZES = ((80, 24), (80, 43), (132, 24), (132, 43))
HISTORY = 1_000
"""Lines above the screen that stay."""
FONT = "Monospace 11"
KEYS = {
    "Return": "\r", "KP_Enter": "\r", "BackSpace": "\x7f", "Tab": "\t", "ISO_Left_Tab": "\x1b[Z", "Escape": "\x1b", "Up": "\x1b[A",
    "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[1~", "End": "\x1b[4~", "Insert": "\x1b[2~", "Delete": "\x1b[3~",
    "Page_Up": "\x1b[5~", "Page_Down": "\x1b[6~",
}  # fmt: skip


class Terminal(Gtk.Window):  # type: ignore[misc]
    """The window, with one shell or command."""

    def __init__(self, command: list[str], folder: str) -> None:
        super().__init__(title="Terminal")
        columns, rows = load()
        self.screen = pyte.HistoryScreen(columns, rows, history=HISTORY)
        self.stream = pyte.ByteStream(self.screen)
        self.fd = start(command, folder)
        self.screen.write_process_input = lambda text: self.send(text)
        self.view = Gtk.TextView(editable=False, monospace=True, left_margin=2, cursor_visible=True)
        self.view.override_font(Pango.FontDescription(FONT))
        self.view.get_accessible().set_role(Atk.Role.TERMINAL)
        self.view.connect("key-press-event", self.pressed)
        self.view.connect("button-press-event", self.clicked)
        self.scrolled = Gtk.ScrolledWindow(hexpand=True, vexpand=True)
        self.scrolled.add(self.view)
        self.scrolled.connect("size-allocate", self.allocated)
        box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        box.add(self.bar())
        box.add(self.scrolled)
        self.add(box)
        layout = self.view.create_pango_layout("M" * 100)
        layout.set_font_description(Pango.FontDescription(FONT))
        width, self.height = layout.get_pixel_size()
        self.width = width / 100
        self.connect("destroy", Gtk.main_quit)
        GLib.io_add_watch(self.fd, GLib.IO_IN | GLib.IO_HUP, self.heard)
        self.resize_to(columns, rows)
        self.show_all()
        self.view.grab_focus()

    def bar(self) -> Any:
        bar = Gtk.MenuBar()
        menu(bar, "File", [("Close Window", self.close)])
        menu(bar, "Edit", [("Copy", self.copy), ("Paste", self.paste), ("Preferences", self.preferences)])
        sizes = [(f"{columns}×{rows}", lambda c=columns, r=rows: self.resize_to(c, r)) for columns, rows in SIZES]
        menu(bar, "Terminal", [("Reset", self.screen.reset), *sizes])
        return bar

    def resize_to(self, columns: int, rows: int) -> None:
        """Make the window so large that so many columns and rows fit in."""
        self.scrolled.set_size_request(round(columns * self.width) + 20, rows * self.height + 4)
        self.resize(1, 1)
        GLib.timeout_add(100, lambda: self.scrolled.set_size_request(100, 50))  # from then on the user may make it smaller

    def allocated(self, _: Any, given: Any) -> None:
        columns, rows = max(2, int((given.width - 18) / self.width)), max(2, int(given.height / self.height))
        if (rows, columns) != (self.screen.lines, self.screen.columns):
            self.screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def heard(self, fd: int, condition: int) -> bool:
        """Read the output of the shell, and show it. The window ends with the shell."""
        try:
            data = os.read(fd, 1 << 16)
        except OSError:
            data = b""
        if not data:
            Gtk.main_quit()
            return False
        self.stream.feed(data)
        above = ["".join(line[at].data for at in range(self.screen.columns)).rstrip() for line in self.screen.history.top]
        lines = [*above, *(line.rstrip() for line in self.screen.display)]
        at = len(above) + self.screen.cursor.y
        lines[at] = lines[at].ljust(self.screen.cursor.x)
        while len(lines) > at + 1 and not lines[-1]:
            lines.pop()
        buffer = self.view.get_buffer()
        buffer.set_text("\n".join(lines))
        buffer.place_cursor(buffer.get_iter_at_line_offset(at, min(self.screen.cursor.x, len(lines[at]))))
        self.view.scroll_mark_onscreen(buffer.get_insert())
        return True

    def pressed(self, _: Any, event: Any) -> bool:
        name, control = Gdk.keyval_name(event.keyval), event.state & Gdk.ModifierType.CONTROL_MASK
        if control and name in ("C", "V"):
            self.copy() if name == "C" else self.paste()
            return True
        text = KEYS.get(name) or event.string
        if text:
            self.send(text)
        return bool(text)

    def clicked(self, _: Any, event: Any) -> bool:
        if event.button == 2:
            self.send(Gtk.Clipboard.get(Gdk.SELECTION_PRIMARY).wait_for_text() or "")
        self.view.grab_focus()
        return bool(event.button == 2)

    def send(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the shell has ended, which the next read tells
            os.write(self.fd, text.encode())

    def copy(self) -> None:
        self.view.get_buffer().copy_clipboard(Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD))

    def paste(self) -> None:
        self.send(Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD).wait_for_text() or "")

    def preferences(self) -> None:
        """Ask for the size of new windows."""
        dialog = Gtk.Dialog(title="Preferences", transient_for=self, modal=True)
        dialog.add_buttons("Cancel", Gtk.ResponseType.CANCEL, "Save", Gtk.ResponseType.OK)
        fields = []
        for name, value in zip(("Initial columns", "Initial rows"), load()):  # noqa: B905 - Debian's Python
            field = Gtk.SpinButton.new_with_range(2, 500, 1)
            field.set_value(value)
            field.get_accessible().set_name(name)
            row = Gtk.Box(spacing=8)
            row.add(Gtk.Label(label=name))
            row.add(field)
            dialog.get_content_area().add(row)
            fields.append(field)
        dialog.show_all()
        if dialog.run() == Gtk.ResponseType.OK:
            SETTINGS.parent.mkdir(parents=True, exist_ok=True)
            SETTINGS.write_text(json.dumps([field.get_value_as_int() for field in fields]))
        dialog.destroy()


def menu(bar: Any, name: str, items: list[tuple[str, Any]]) -> None:
    """Add a menu to a bar."""
    head, inside = Gtk.MenuItem(label=name), Gtk.Menu()
    for label, do in items:
        item = Gtk.MenuItem(label=label)
        item.connect("activate", lambda _, do=do: do())
        inside.add(item)
    head.set_submenu(inside)
    bar.add(head)


def load() -> tuple[int, int]:
    """Return columns and rows of new windows."""
    with contextlib.suppress(OSError, ValueError):
        columns, rows = json.loads(SETTINGS.read_text())
        return int(columns), int(rows)
    return SIZES[0]


def start(command: list[str], folder: str) -> int:
    """Start a command on a new terminal, and return our end of it."""
    pid, fd = pty.fork()
    if pid == 0:
        with contextlib.suppress(OSError):
            os.chdir(folder or str(Path.home()))
        os.environ.update(TERM="linux", COLORTERM="")
        os.execvp(command[0], command)
    return fd


def detach() -> int:
    """Go on in a child process, without the command's output. The command itself ends once the window is shown.

    So does the terminal of GNOME, which a step of a set-up waits for. Return the descriptor that `end_command` writes to.
    """
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        os._exit(0 if os.read(reading, 1) else 1)
    os.close(reading)
    return writing


def end_command(writing: int) -> None:
    """Let the command end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for output in (0, 1, 2):
        os.dup2(nowhere, output)
    os.write(writing, b"1")
    os.close(writing)


def main(words: list[str]) -> None:
    """Open the window and serve it until the shell ends."""
    writing = detach()
    at = words.index("--") if "--" in words else len(words)
    folder = next((word.partition("=")[2] for word in words[:at] if word.startswith("--working-directory=")), "")
    window = Terminal(words[at + 1 :] or ["/bin/bash"], folder)

    def first(*_: Any) -> bool:
        window.disconnect(handler)
        end_command(writing)
        return False

    handler = window.connect("map-event", first)
    Gtk.main()


if __name__ == "__main__":
    main(sys.argv[1:])
