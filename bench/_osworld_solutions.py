"""Solutions of OSWorld's tasks by mouse and keyboard: actions on elements, which are named by role and name.

`click <button "Save">` is a click on the first element of that role and name; `<button "Save" 1>` is the second, and one that ends in `*`
is the beginning of one. `until "text"` waits until the desktop shows a text. Nothing is executed beside the input events: what a solution
wants of a shell it types into a terminal.
"""

from __future__ import annotations

import re

from exact.observation import Observation

_NAMED = re.compile(r'<(\w+) "([^"]*)"(?: (\d+))?>')
_TERMINAL = ('press "Control+Alt+t"', 'until "$"')
_PREFERENCES = ('press "Control+p"', "wait")


def typed(*lines: str) -> tuple[str, ...]:
    """Return the actions that open a terminal and type lines into it."""
    quoted = "; ".join((*lines, "echo ok$((1+1))")).replace('"', '\\"')
    return (*_TERMINAL, f'type "{quoted}"', 'press "Enter"', 'until "ok2"')


def written(action: str, seen: Observation) -> str:
    """Return an action with ids in the place of roles and names. Raises LookupError where there is no such element."""

    def id_of(found: re.Match[str]) -> str:
        role, name, number = found.groups()
        fits = [each for each in seen.elements if each.role == role and _is(each.name, name)]
        if len(fits) <= int(number or 0):
            raise LookupError(f"there is no {role} {name!r} {number or ''}")
        return f"[{fits[int(number or 0)].id}]"

    return _NAMED.sub(id_of, action)


def _is(name: str, wanted: str) -> bool:
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted


_VIDEOS = " ".join(f"video/{kind}" for kind in ("mp4", "mpeg", "ogg", "quicktime", "webm", "x-matroska", "x-msvideo", "x-flv"))
SOLUTIONS: dict[str, tuple[str, ...]] = {
    "os/ec4e3f68": typed("gsettings set org.gnome.shell favorite-apps \"['google-chrome.desktop', 'thunderbird.desktop']\""),
    "os/bedcedc4": typed("gsettings set org.gnome.desktop.session idle-delay 0"),
    "os/f9be0997": typed("gsettings set org.gnome.desktop.notifications show-banners false"),
    "os/a4d98375": typed("gsettings set org.gnome.desktop.screensaver lock-enabled true"),
    "os/28cc3b7e": typed("pulseaudio --start; pactl set-sink-volume @DEFAULT_SINK@ 100%"),
    "os/b6781586": typed("timedatectl set-timezone UTC"),
    "multi_apps/937087b6": typed(f"xdg-mime default vlc.desktop {_VIDEOS}"),
    "multi_apps/f8369178": typed("gsettings set org.gnome.desktop.interface gtk-theme Orchis"),
    "multi_apps/2373b66a": typed("LC_ALL=C S_TIME_FORMAT=ISO sar 1 30 > ~/Desktop/System_Resources_Report.txt"),
    "chrome/12086550": ('press "Control+l"', 'type "chrome://password-manager/passwords"', 'press "Enter"', "wait", "wait"),
    "vlc/8ba5ae7a": (
        *_PREFERENCES, 'click <checkbox "Input / Codecs">', 'fill <textbox "Record directory or filename"> "/home/user/Desktop"',
        'click <button "Save">',
    ),
    "vlc/f3977615": (
        *_PREFERENCES, 'click <checkbox "Use only one instance when started from file manager">', 'click <button "Save">',
    ),
}  # fmt: skip
"""Actions by domain and the first part of the id."""
