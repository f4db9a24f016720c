"""Parts of this machine hidden from guests: data, home directories, temporary files, settings with credentials or its description."""

from __future__ import annotations

import functools
import os
import stat
from pathlib import Path

_MASKED = ("/tmp", "/run", "/dev/shm", "/var/tmp")
_KEPT = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "proc", "sys", "dev", "nix", "gnu", "run", "tmp")
"""Folders at the top that guests see, and those that they get anew."""
_SEARCHED = ("/etc", "/usr/local")
"""Folders that guests see, which are searched for files that others may not read."""
_CODE = ("site-packages", "dist-packages")
"""Folders of code, which are not searched: packages that were installed with a strict mask are programs too."""
_SETTINGS = (
    "/etc/environment", "/etc/environment.d", "/etc/pip.conf", "/etc/npmrc", "/etc/gitconfig", "/etc/wgetrc", "/etc/curlrc", "/etc/netrc",
    "/etc/fstab", "/etc/apt", "/etc/ssh", "/etc/docker", "/etc/containers", "/etc/kubernetes", "/etc/rancher", "/etc/wireguard",
    "/etc/openvpn", "/etc/NetworkManager", "/etc/wpa_supplicant", "/etc/cloud", "/etc/krb5.conf", "/etc/krb5.keytab", "/etc/ldap",
    "/etc/letsencrypt", "/etc/cron.d", "/etc/cron.daily", "/etc/cron.hourly", "/etc/cron.weekly", "/etc/cron.monthly", "/etc/crontab",
    "/etc/passwd-", "/etc/group-", "/etc/subuid", "/etc/subgid", "/etc/sudoers.d", "/etc/motd", "/etc/update-motd.d", "/etc/exports",
    "/etc/hosts.allow", "/etc/hosts.deny", "/etc/machine-id", "/etc/resolv.conf", "/etc/systemd", "/etc/aliases", "/etc/mailname",
    "/etc/cups", "/etc/samba", "/etc/postfix", "/etc/exim4", "/usr/src", "/usr/local/src", "/usr/local/etc", "/usr/local/games",
    "/etc/subuid-", "/etc/subgid-", "/etc/profile.d", "/etc/network", "/etc/netplan", "/etc/yum.repos.d", "/etc/nix", "/etc/uv",
    "/etc/conda", "/etc/maven/settings.xml", "/etc/odbc.ini", "/etc/boto.cfg", "/etc/xdg/pip", "/usr/etc", "/usr/pip.conf",
    "/usr/local/pip.conf", "/usr/local/bundle/config", "/usr/local/cargo/credentials", "/usr/local/cargo/credentials.toml",
)  # fmt: skip
"""Settings that every user of the host may read, and that hold credentials of programs or describe the host's administration."""


MADE = Path(__file__).parent / "etc"
"""Files of `/etc` that guests see in place of the host's: accounts and names of machines."""


def made_files() -> dict[str, str]:
    """Return the files of MADE by the paths at which guests see them, on a host that has such files."""
    found = {(Path("/etc") / each.name).resolve(): each for each in sorted(MADE.iterdir())}
    return {str(place): str(each) for place, each in found.items() if place.is_file()}


def home_folders() -> tuple[str, ...]:
    """Return the home directories, which guests do not see."""
    folders = dict.fromkeys((Path("/home"), Path("/root"), Path.home()))
    found = [str(folder.resolve()) for folder in folders if folder.is_dir() and folder.resolve() != Path("/")]
    return tuple(each for each in dict.fromkeys(found) if each not in _MASKED)


@functools.cache
def other_folders() -> tuple[str, ...]:
    """Return the host's folders that hold neither programs nor their settings: all at the top but those kept, and those in `/var`."""
    top = [f"/{each}" for each in _folders_in("/") if each not in _KEPT]
    data = [f"/var/{each}" for each in _folders_in("/var")]
    return tuple(each for each in (*top, *data) if each not in ("/var", *_MASKED, *home_folders()))


@functools.cache
def private_files() -> tuple[str, ...]:
    """Return the files and folders that guests see empty, in folders that they see. Links are left out.

    They are files that this user may read and others may not, such as `/etc/shadow`; settings with credentials, and files that these link
    to; and files at the top and in `/var`.
    """
    settings = [str(path) for path in map(_real, _SETTINGS) if path]
    loose = [f"{folder.rstrip('/')}/{name}" for folder in ("/", "/var") for name in _files_in(folder)]
    found, waiting = [*settings, *loose], list(_SEARCHED)
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.path in settings or entry.is_symlink():
                continue
            if _is_private(entry):
                found.append(entry.path)
            elif entry.is_dir(follow_symlinks=False) and entry.name not in _CODE:
                waiting.append(entry.path)
    return tuple(sorted(found))


def _real(place: str) -> Path | None:
    """Return the file or folder of a setting, or the file that it links to, unless there is none that a guest would see."""
    path = Path(place)
    if not path.is_symlink():
        return path if path.exists() else None
    target = path.resolve()
    return target if target.is_file() and target.parts[1] in ("etc", "usr", "nix", "gnu") and str(target) not in made_files() else None


def _is_private(entry: os.DirEntry[str]) -> bool:
    """Return whether this user may read a file or folder, and others may not, or nobody can tell."""
    try:
        return not entry.stat(follow_symlinks=False).st_mode & stat.S_IROTH and os.access(entry.path, os.R_OK)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _files_in(folder: str) -> list[str]:
    return [each.name for each in _entries(folder) if each.is_file(follow_symlinks=False)]


def _folders_in(folder: str) -> list[str]:
    return sorted(each.name for each in _entries(folder) if each.is_dir(follow_symlinks=False))


def masked_folders() -> tuple[str, ...]:
    """Return the folders of the host that guests see empty, except for those that their specification names."""
    return (*_MASKED, *home_folders(), *other_folders())
