"""A separate X display with buses, window manager and applications. Needs Xvfb, openbox and dbus-daemon.

Configuration that a desktop's programs read before they start, which makes equal sessions look equal.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from exact.environments.desktop import account
from exact.environments.desktop.account import HOME, initial_values
from exact.environments.desktop.tree import refuse_close_range
from exact.errors import EnvironmentFailure, UsageError
from exact.version import FIX, set_up

PROGRAMS = {
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "dbus-daemon": "dbus-daemon",
    "/usr/libexec/at-spi-bus-launcher": "at-spi2-core",
}
"""Programs that a desktop needs, with their Debian packages."""

STARTUP_SECONDS = 60.0
"""Seconds until a part of the desktop must be up. On a machine that other work fills, some take more than twenty."""
STARTUP_LOG = "see its messages in the run's guest.log, or on stderr without a run"
_PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "EXACT_GUEST")
"""Our variables that applications see; the last one marks processes that end with us."""
_GRACE = 2.0
_LONGEST_SOCKET = 107
"""Maximum bytes of the name of a socket, on Linux (unix(7))."""


def missing() -> list[str]:
    """Return the Debian packages of missing programs."""
    return [package for program, package in PROGRAMS.items() if not shutil.which(program)]


class DesktopSession:
    """Processes and folders of one desktop. Not started until `start`."""

    def __init__(self, width: int, height: int, *, user: bool = False) -> None:
        """`user`: whether it runs in a sandbox as the user of `account`, with that user's home folder."""
        self.width, self.height, self._user = width, height, user
        self.base = Path(tempfile.mkdtemp(prefix="exact-desktop-"))
        self.home = HOME if user else self.base / "home"
        self.display = ""
        self._cleaner: subprocess.Popen[bytes] | None = None
        self._parts: list[subprocess.Popen[bytes]] = []
        self.applications: list[subprocess.Popen[bytes]] = []
        self.env: dict[str, str] = {}

    def start(self) -> None:
        """Start display, bus and window manager. Raises EnvironmentFailure, and UsageError if sockets would have too long names."""
        if lacking := missing():
            raise EnvironmentFailure(f"a desktop needs {', '.join(lacking)}: {set_up('--desktop', FIX)}")
        try:
            if self._user:
                refuse_close_range()
            self._display()
            self._check_sockets()
            self._bus()
            self._parts.append(self._run(["openbox", "--sm-disable", "--config-file", str(self.base / "openbox.xml")]))
            if self._user and shutil.which("tint2"):
                self._parts.append(self._run(["tint2", "-c", str(self.base / "tint2rc")]))
        except OSError as error:
            raise EnvironmentFailure(f"the desktop cannot be started: {error}") from error

    def launch(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start an application in the home folder. Raises EnvironmentFailure if there is no such program."""
        words = [word.replace("~", str(self.home), 1) if word.startswith("~") else word for word in command]
        try:
            return self.spawn(words)
        except OSError as error:
            raise EnvironmentFailure(f"{command[0]} cannot be started: {error.strerror}: install it, or correct the task") from error

    def spawn(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a program in the home folder. Raises OSError."""
        process = self._run(command, cwd=self.home)
        self.applications.append(process)
        return process

    def renew(self) -> None:
        """End all applications and their children, and make a fresh home folder."""
        self._end(self.applications)
        self.applications.clear()
        shutil.rmtree(self.home, ignore_errors=True)
        home(self.home, user=self._user)
        for command in initial_values() if self._user else ():
            subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, stdout=2, timeout=STARTUP_SECONDS, check=False)

    @property
    def broken(self) -> str:
        """The part of the desktop that has ended, and how; empty while all run."""
        ended = next((part for part in self._parts if part.poll() is not None), None)
        return "" if ended is None else f"{Path(str(ended.args[0])).name} ended with status {ended.returncode}"  # type: ignore[index]

    def check(self) -> None:
        """Raise EnvironmentFailure if a part of the desktop has ended."""
        if self.broken:
            raise EnvironmentFailure(f"the desktop broke: {self.broken}: reset, and it is started anew")

    def stop(self) -> None:
        """End everything and remove the folders. May be called twice."""
        self._end([*self.applications, *reversed(self._parts)])
        if self._cleaner:
            self._cleaner.communicate()
            self._cleaner = None
        self.applications.clear()
        self._parts.clear()
        shutil.rmtree(self.base, ignore_errors=True)

    def _display(self) -> None:
        """Start the X server, which chooses a free number; only clients with the cookie may connect."""
        home(self.home, user=self._user)
        configuration(self.base, user=self._user)
        authority = self.base / "Xauthority"
        secret = cookie(authority)
        reading, writing = os.pipe()
        try:
            screen = f"{self.width}x{self.height}x24"
            command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", screen, "-nolisten", "tcp", "-noreset", "-dpi", "96"]
            passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
            self._parts.append(
                subprocess.Popen([*command, "-auth", str(authority)], env=passed, pass_fds=(writing,), start_new_session=True)
            )
            os.close(writing)
            number = self._number(reading)
        finally:
            os.close(reading)
        self.display = f":{number}"
        # An X server that is killed leaves these, and so would this process: they are removed when the pipe to this process closes.
        remove = ["/bin/sh", "-c", 'read _; rm -f "$@"', "sh", *map(str, display_files(self.display))]
        self._cleaner = subprocess.Popen(remove, env={}, stdin=subprocess.PIPE, start_new_session=True)
        admit(authority, str(number), secret)
        self.env = {**passed, **variables(self.base, self.display, user=self._user)}

    def _number(self, reading: int) -> int:
        output, end = b"", time.monotonic() + STARTUP_SECONDS
        while not output.endswith(b"\n"):
            ready, _, _ = select.select([reading], [], [], max(0.0, end - time.monotonic()))
            part = os.read(reading, 64) if ready else b""
            if not part:
                raise EnvironmentFailure(f"Xvfb did not start within {STARTUP_SECONDS:g} s: {STARTUP_LOG}")
            output += part
        return int(output)

    def _check_sockets(self) -> None:
        """Raise UsageError if a socket of the two buses would have too long a name."""
        sockets = (self.base / "dbus-0123456789", Path(self.env["XDG_RUNTIME_DIR"], "at-spi", f"bus_{self.display[1:]}"))
        excess = max(len(os.fsencode(path)) for path in sockets) - _LONGEST_SOCKET
        if excess > 0:
            raise UsageError(f"{self.base} is {excess} bytes too long a name for the sockets of a desktop: set TMPDIR to a shorter folder")

    def _bus(self) -> None:
        command = ["dbus-daemon", "--nofork", "--print-address=1", f"--config-file={self.base / 'bus.conf'}"]
        bus = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, start_new_session=True)
        self._parts.append(bus)
        assert bus.stdout is not None
        with bus.stdout:
            ready, _, _ = select.select([bus.stdout], [], [], STARTUP_SECONDS)
            address = bus.stdout.readline().decode().strip() if ready else ""
        if not address:
            raise EnvironmentFailure(f"dbus-daemon did not start within {STARTUP_SECONDS:g} s: {STARTUP_LOG}")
        self.env["DBUS_SESSION_BUS_ADDRESS"] = address

    def _run(self, command: Sequence[str], cwd: Path | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=self.env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)

    @staticmethod
    def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """Kill each process with its session: none of it is kept."""
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)


_ANY, _LOCAL = 0xFFFF, 256
"""Address families of an X authority file."""

QUICK = 60
"""Milliseconds within which two clicks are a double click: short enough that two steps never are."""

_OPENBOX = f"""<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
<focus><focusNew>yes</focusNew><followMouse>no</followMouse><raiseOnFocus>yes</raiseOnFocus></focus>
<placement><policy>Smart</policy><center>yes</center></placement>
<theme><name>Clearlooks</name><titleLayout>NLMC</titleLayout><animateIconify>no</animateIconify></theme>
<desktops><number>1</number><popupTime>0</popupTime></desktops>
<resize><drawContents>yes</drawContents><popupShow>Never</popupShow></resize>
<keyboard>
<keybind key="A-Tab"><action name="NextWindow"><finalactions><action name="Focus"/><action name="Raise"/></finalactions></action></keybind>
<keybind key="A-F4"><action name="Close"/></keybind>
<keybind key="C-A-t"><action name="Execute"><command>gnome-terminal</command></action></keybind>
</keyboard>
<mouse><dragThreshold>1</dragThreshold><doubleClickTime>{QUICK}</doubleClickTime><screenEdgeWarpTime>0</screenEdgeWarpTime>
<context name="Titlebar">
<mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
<mousebind button="Left" action="Drag"><action name="Move"/></mousebind>
<mousebind button="Left" action="DoubleClick"><action name="ToggleMaximize"/></mousebind>
</context>
<context name="Client">
<mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
<mousebind button="Middle" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
<mousebind button="Right" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
</context>
<context name="Close"><mousebind button="Left" action="Click"><action name="Close"/></mousebind></context>
<context name="Maximize"><mousebind button="Left" action="Click"><action name="ToggleMaximize"/></mousebind></context>
<context name="Iconify"><mousebind button="Left" action="Click"><action name="Iconify"/></mousebind></context>
</mouse>
<applications><application type="normal"><focus>yes</focus></application></applications>
</openbox_config>
"""

_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:dir={folder}</listen>{more}<auth>EXTERNAL</auth><servicedir>{services}</servicedir>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
"""

_A11Y = "[D-BUS Service]\nName=org.a11y.Bus\nExec=/usr/libexec/at-spi-bus-launcher --launch-immediately\n"

_GTK = f"""[Settings]
gtk-theme-name=Adwaita
gtk-icon-theme-name=Adwaita
gtk-font-name=Sans 10
gtk-cursor-blink=0
gtk-enable-animations=0
gtk-double-click-time={QUICK}
gtk-recent-files-enabled=0
gtk-enable-event-sounds=0
gtk-dialogs-use-header=0
gtk-primary-button-warps-slider=0
"""


_PANEL = """rounded = 0
background_color = #dddddd 100
rounded = 0
background_color = #eeeeee 100
rounded = 2
background_color = #ffffff 100
panel_items = T
panel_size = 100% 30
panel_position = bottom center horizontal
panel_background_id = 1
taskbar_mode = single_desktop
task_text = 1
task_icon = 0
task_centered = 0
task_maximum_size = 220 30
task_font = Sans 10
task_background_id = 2
task_active_background_id = 3
task_iconified_background_id = 2
task_font_color = #222222 100
mouse_left = toggle_iconify
strut_policy = follow_size
"""
"""tint2: a panel at the bottom with a button for each window."""

_FILES = "[ui]\nview_mode=list\nshow_statusbar=0\n"
"""pcmanfm: a list, whose rows are in the accessibility tree, and no line about the free space, which changes."""


def configuration(base: Path, *, user: bool = False) -> None:
    """Write the files of window manager and bus, which stay as long as the desktop. `user`: see `variables`."""
    (base / "openbox.xml").write_text(_OPENBOX)
    (base / "tint2rc").write_text(_PANEL)
    services = base / "services"
    services.mkdir()
    (services / "org.a11y.Bus.service").write_text(_A11Y)
    more = f"<listen>unix:path={account.RUNTIME}/bus</listen>" if user else ""
    (base / "bus.conf").write_text(_BUS.format(folder=base, services=services, more=more))
    if user:
        account.prepare(services, base / "bin")
    (base / "run").mkdir(mode=0o700)


def home(folder: Path, *, user: bool = False) -> None:
    """Make a fresh home folder. `user`: with the folders and settings that OSWorld's machines have."""
    settings = folder / ".config" / "gtk-3.0"
    settings.mkdir(parents=True)
    (settings / "settings.ini").write_text(_GTK)
    manager = folder / ".config" / "pcmanfm" / "default"
    manager.mkdir(parents=True)
    (manager / "pcmanfm.conf").write_text(_FILES)
    if user:
        account.furnish(folder)


def display_files(display: str) -> tuple[Path, ...]:
    """Return the socket and the lock of a display, such as `:3`; nothing for one that has not started."""
    number = display.removeprefix(":")
    return (Path(f"/tmp/.X11-unix/X{number}"), Path(f"/tmp/.X{number}-lock")) if number else ()


def cookie(path: Path) -> bytes:
    """Write a secret for the X server and return it; `admit` gives it to clients."""
    data = secrets.token_bytes(16)
    path.touch(mode=0o600)
    path.write_bytes(_authority(_ANY, b"", b"", data))
    return data


def admit(path: Path, number: str, data: bytes) -> None:
    """Write the X authority file of the clients that may connect to a display."""
    here = _authority(_LOCAL, socket.gethostname().encode(), number.encode(), data)
    path.write_bytes(here + _authority(_ANY, b"", b"", data))


def _authority(family: int, address: bytes, number: bytes, data: bytes) -> bytes:
    """Return an entry: family, then address, number, name and data, each with its length."""
    parts = (address, number, b"MIT-MAGIC-COOKIE-1", data)
    return struct.pack(">H", family) + b"".join(struct.pack(">H", len(part)) + part for part in parts)


def variables(base: Path, display: str, *, user: bool = False) -> dict[str, str]:
    """Return the environment variables of applications: this display, this home, and settings that have no file.

    `user`: those of `account`: settings are kept by dconf, and commands have the names that OSWorld's machines give them.
    """
    folder = account.HOME if user else base / "home"
    found = {
        "DISPLAY": display,
        "XAUTHORITY": str(base / "Xauthority"),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "XDG_DATA_HOME": str(folder / ".local" / "share"),
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "XDG_RUNTIME_DIR": str(base / "run"),
        "GDK_BACKEND": "x11",
        "GSETTINGS_BACKEND": "memory",
        "GIO_USE_VFS": "local",
        "GTK_A11Y": "atspi",
        "GTK_OVERLAY_SCROLLING": "0",
        "NO_AT_BRIDGE": "0",
        "GTK_MODULES": "gail:atk-bridge",
        "LIBGL_ALWAYS_SOFTWARE": "1",
        "LANG": "C.UTF-8",
    }
    if user:
        del found["GSETTINGS_BACKEND"]
        found |= account.variables(base / "bin")
    return found
