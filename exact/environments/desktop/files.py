"""Configuration that a desktop's programs read before they start, which makes equal sessions look equal."""

from __future__ import annotations

import secrets
import socket
import struct
from pathlib import Path

from exact.environments.desktop import account

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
