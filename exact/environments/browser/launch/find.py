"""The search for a browser on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from exact.errors import EnvironmentFailure
from exact.version import set_up, with_apt

_HEADLESS = ("chromium-headless-shell", "chrome-headless-shell")
_FULL = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "msedge")
_PLAYWRIGHT_HEADLESS = (
    "chromium_headless_shell-*/*/headless_shell", "chromium_headless_shell-*/*/chrome-headless-shell",
    "chromium_headless_shell-*/*/chrome-headless-shell.exe", "chromium_headless_shell-*/*/headless_shell.exe",
)  # fmt: skip
_PLAYWRIGHT_FULL = (
    "chromium-*/*/chrome", "chromium-*/*/Chromium.app/Contents/MacOS/Chromium",
    "chromium-*/*/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing", "chromium-*/*/chrome.exe",
)  # fmt: skip
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_APPLICATIONS = ("Google Chrome", "Chromium", "Google Chrome for Testing", "Google Chrome Canary")
"""Names of browsers in the folders for applications of macOS."""


def way_out() -> str:
    """Return the way to a browser."""
    packaged = with_apt("chromium-headless-shell", otherwise="playwright install chromium")
    return f"{set_up('', 'run `playwright install chromium`')}, or {packaged}, or name one in EXACT_BROWSER"


def find_browser(headed: bool = False) -> Path:
    """Return the executable to launch: $EXACT_BROWSER, else one on PATH, else Playwright's own, else an application of macOS.

    The small headless shell is preferred; `headed` needs a full browser. Raises EnvironmentFailure with the way to install one.
    """
    named = os.environ.get("EXACT_BROWSER")
    if named:
        found = shutil.which(named)
        if not found:
            raise EnvironmentFailure(f"EXACT_BROWSER={named} is not an executable: correct it or unset it")
        return Path(found)
    for name in _FULL if headed else _HEADLESS + _FULL:
        found = shutil.which(name)
        if found:
            return Path(found)
    if own := _playwright_own(headed) or _application():
        return own
    if headed:
        install = with_apt("chromium", otherwise="run `playwright install chromium`")
        raise EnvironmentFailure(f"no browser with a window found: {install}, or run headless")
    raise EnvironmentFailure(f"no browser found: {way_out()}")


def browser_version(browser: Path) -> str:
    """Return the name and version that an executable prints: `Chromium 150.0.7871.100`.

    Raises EnvironmentFailure if it does not start, or is not a browser.
    """
    try:
        done = subprocess.run([browser, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"{browser} does not start: {error}: {way_out()}") from error
    version, why = (next(iter(text.strip().splitlines()), "") for text in (done.stdout, done.stderr))
    if done.returncode or not _VERSION.search(version):
        why = (why or version)[:120] or f"exit status {done.returncode}"
        raise EnvironmentFailure(f"{browser} is not a working browser ({why}): {way_out()}")
    return " ".join(version.split())


def _playwright_own(headed: bool) -> Path | None:
    root = _playwright_root()
    for pattern in _PLAYWRIGHT_FULL if headed else _PLAYWRIGHT_HEADLESS + _PLAYWRIGHT_FULL:
        found = sorted(path for path in root.glob(pattern) if os.access(path, os.X_OK))
        if found:
            return found[-1]
    return None


def _application(folders: Sequence[Path] = ()) -> Path | None:
    """Return a browser of macOS's folders for applications; None on other systems."""
    if sys.platform != "darwin" and not folders:
        return None
    for folder in folders or (Path("/Applications"), Path.home() / "Applications"):
        for name in _APPLICATIONS:
            if os.access(found := folder / f"{name}.app" / "Contents" / "MacOS" / name, os.X_OK):
                return found
    return None


def _playwright_root() -> Path:
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    if named and named != "0":
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ms-playwright"
    return Path.home() / ("Library/Caches/ms-playwright" if sys.platform == "darwin" else ".cache/ms-playwright")
