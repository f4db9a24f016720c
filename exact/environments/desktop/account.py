"""The user of a desktop in a sandbox: `user`, as on OSWorld's machines, with number 1000 and the home folder `/home/user`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exact.config import Mount, SandboxConfig
from exact.environments.sandbox.host import MADE
from exact.machine import scratch

NAME, NUMBER, HOME = "user", 1000, Path("/home/user")
RUNTIME = Path(f"/run/user/{NUMBER}")
"""Folder of the user's sockets. The session's bus listens there too."""


_DIRS = {
    "DESKTOP": "Desktop", "DOCUMENTS": "Documents", "DOWNLOAD": "Downloads", "MUSIC": "Music", "PICTURES": "Pictures",
    "PUBLICSHARE": "Public", "TEMPLATES": "Templates", "VIDEOS": "Videos",
}  # fmt: skip
"""Folders of the home folder by their names among the user's directories."""
_OFFICE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Office.Impress/Misc"><prop oor:name="StartWithTemplate" oor:op="fuse"><value>false</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Misc"><prop oor:name="FirstRun" oor:op="fuse"><value>false</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Misc"><prop oor:name="ShowTipOfTheDay" oor:op="fuse"><value>false</value></prop></item>
<item oor:path="/org.openoffice.Setup/Product"><prop oor:name="ooSetupLastVersion" oor:op="fuse"><value>7.4</value></prop></item>
</oor:items>
"""
_VIDEOS = (
    "3gp", "3gpp", "3gpp2", "avi", "divx", "dv", "fli", "flv", "mp2t", "mp4", "mp4v-es", "mpeg", "mpeg-system", "msvideo", "ogg",
    "quicktime", "vnd.divx", "vnd.mpegurl", "vnd.rn-realvideo", "webm", "x-anim", "x-avi", "x-flc", "x-fli", "x-flv", "x-m4v",
    "x-matroska", "x-mpeg", "x-mpeg-system", "x-mpeg2", "x-ms-asf", "x-ms-asf-plugin", "x-ms-asx", "x-ms-wm", "x-ms-wmv", "x-ms-wmx",
    "x-ms-wvx", "x-msvideo", "x-nsv", "x-ogm", "x-ogm+ogg", "x-theora", "x-theora+ogg",
)  # fmt: skip
"""Kinds of videos that Totem plays on OSWorld's machines: the other players claim them too."""
_SETTINGS = {
    ".config/vlc/vlcrc": "[qt]\nqt-privacy-ask=0\n[core]\nmetadata-network-access=0\n",
    ".config/mimeapps.list": "[Default Applications]\n" + "".join(f"video/{each}=org.gnome.Totem.desktop\n" for each in _VIDEOS),
    ".local/share/applications/org.gnome.Totem.desktop": "[Desktop Entry]\nType=Application\nName=Videos\nExec=vlc %U\n",
    ".config/libreoffice/4/user/registrymodifications.xcu": _OFFICE,
    ".config/pulse/daemon.conf": "exit-idle-time = -1\n",
    ".config/pulse/default.pa": ".include /etc/pulse/default.pa\n.nofail\nset-sink-volume @DEFAULT_SINK@ 32768\n",
    ".config/user-dirs.dirs": "".join(f'XDG_{name}_DIR="$HOME/{folder}"\n' for name, folder in _DIRS.items()),
}
"""Files of the home folder by their paths: settings that OSWorld's machines have, and that tasks ask to change."""
_VALUES = {("org.gnome.desktop.screensaver", "lock-enabled"): "false", ("org.gnome.desktop.session", "idle-delay"): "300"}
"""Values of gsettings at the start, for the same reason."""

_DCONF = "[D-BUS Service]\nName=ca.desrt.dconf\nExec=/usr/libexec/dconf-service\n"

_CHROMIUM = "/usr/lib/chromium/chromium"
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/games:/usr/sbin:/sbin"
_PROGRAMS = {"google-chrome": _CHROMIUM, "gnome-terminal": "python3", "nautilus": "pcmanfm"}
"""Programs of this machine behind the user's commands, if they have another name."""
_TERMINAL = Path(__file__).parent / "vm" / "terminal.py"
ICONS = ("/usr/bin/python3", str(Path(__file__).parent / "vm" / "icons.py"))
"""Program that shows the files of `~/Desktop` behind all windows."""
GTK = "/usr/lib/python3/dist-packages/gi"
"""Folder of the package that this user's programs need of Debian's Python."""
_COMMANDS = {
    "google-chrome": """#!/bin/sh
# OSWorld's tasks end the process chrome. The desktop is in a sandbox, and Chromium needs none of its own.
exec "$(dirname "$0")/chrome" --user-data-dir="$HOME/.config/google-chrome" --password-store=basic --no-sandbox --test-type \
  --force-renderer-accessibility --no-first-run --no-default-browser-check --disable-dev-shm-usage --disable-gpu "$@"
""",
    "vlc": '#!/bin/sh\nexec /usr/bin/vlc --no-qt-privacy-ask "$@"\n',
    "gimp": '#!/bin/sh\nexec /usr/bin/gimp --no-splash "$@"\n',
    "xdg-open": '#!/bin/sh\n/usr/bin/xdg-open "$@" </dev/null >/dev/null 2>&1 &  # it returns at once there\n',
    "nautilus": '#!/bin/sh\nexec /usr/bin/pcmanfm "$@"\n',
    "gnome-terminal": f'#!/bin/sh\nexec /usr/bin/python3 {_TERMINAL} "$@"\n',
    # Nobody in the sandbox may become root: a program that asks for it runs as the user, if it gives the password.
    "sudo": """#!/bin/sh
asked=
while :; do
  case "$1" in
    -S) asked=yes ;;
    -n | -E | -H | -k | -i | -s) ;;
    -p | -u) shift ;;
    *) break ;;
  esac
  shift
done
if [ -n "$asked" ]; then
  read -r given
  [ "$given" = password ] || { echo "sudo: 1 incorrect password attempt" >&2; exit 1; }
fi
[ $# = 0 ] || exec "$@"
""",
    # The sandbox lacks systemd: the time zone is the user's.
    "timedatectl": """#!/bin/sh
zone=$(cat "$HOME/.config/timezone" 2>/dev/null || echo America/New_York)
case "$1" in
  set-timezone)
    [ -f "/usr/share/zoneinfo/$2" ] || { echo "Failed to set time zone: Invalid or not installed time zone '$2'" >&2; exit 1; }
    echo "$2" >"$HOME/.config/timezone"
    ;;
  list-timezones) sed -n 's/^[^#]*\t[^\t]*\t\\([^\t]*\\).*/\\1/p' /usr/share/zoneinfo/zone1970.tab | sort ;;
  "" | status)
    TZ=$zone date '+               Local time: %a %Y-%m-%d %H:%M:%S %Z'
    TZ=UTC date '+           Universal time: %a %Y-%m-%d %H:%M:%S %Z'
    TZ=UTC date '+                 RTC time: %a %Y-%m-%d %H:%M:%S'
    TZ=$zone date "+                Time zone: $zone (%Z, %z)"
    printf 'System clock synchronized: yes\n              NTP service: active\n          RTC in local TZ: no\n'
    ;;
  *) echo "timedatectl: $1: not served in a sandbox" >&2; exit 1 ;;
esac
""",
    "python": '#!/bin/sh\nexec /usr/bin/python3 "$@"\n',
    "python3": '#!/bin/sh\nexec /usr/bin/python3 "$@"\n',
}
"""Commands that OSWorld's machines have under other names, or in another way, than Debian."""


def installed(program: str) -> bool:
    """Return whether this machine has the program that the user starts by a command."""
    return shutil.which(_PROGRAMS.get(program, program), path=_PATH) is not None


@contextmanager
def account() -> Iterator[SandboxConfig]:
    """Provide the configuration of a sandbox whose programs run as this user, while the block runs."""
    with scratch("account") as folder:
        mounts = []
        for name in ("passwd", "group"):
            path = folder / name
            path.write_text(_with_user((MADE / name).read_text("utf-8"), group=name == "group"))
            path.chmod(0o644)
            mounts.append(Mount(source=str(path), target=f"/etc/{name}"))
        yield SandboxConfig(user=f"{NUMBER}:{NUMBER}", mounts=tuple(mounts))


def _with_user(text: str, *, group: bool) -> str:
    """Return a file of users or groups with this one."""
    return text + (f"{NAME}:x:{NUMBER}:\n" if group else f"{NAME}:x:{NUMBER}:{NUMBER}:User:{HOME}:/bin/bash\n")


def prepare(services: Path, folder: Path) -> None:
    """Write the services of the user's bus and the user's commands, and make the folder of sockets."""
    (services / "ca.desrt.dconf.service").write_text(_DCONF)
    RUNTIME.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir()
    for name, text in _COMMANDS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "chrome").symlink_to(_CHROMIUM)


def furnish(home: Path) -> None:
    """Make the folders and settings that a home folder of OSWorld's machines has."""
    for name in _DIRS.values():
        (home / name).mkdir()
    for path, text in _SETTINGS.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)


def initial_values() -> list[list[str]]:
    """Return the commands that set the values of gsettings with which a desktop starts."""
    return [["gsettings", "set", *key, value] for key, value in _VALUES.items()]


def variables(commands: Path) -> dict[str, str]:
    """Return the environment variables specific to this user. `commands`: folder of the user's commands."""
    return {
        "PATH": f"{commands}:{_PATH}", "USER": NAME, "LOGNAME": NAME,
        "XDG_RUNTIME_DIR": str(RUNTIME), "XDG_CURRENT_DESKTOP": "ubuntu:GNOME", "SHELL": "/bin/bash",
    }  # fmt: skip
