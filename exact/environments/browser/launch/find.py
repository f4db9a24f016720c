"""The search for a browser on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from exact.errors import EnvironmentFailure

_HEADLESS = ("chromium-headless-shell", "chrome-headless-shell")
_FULL = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_PLAYWRIGHT_HEADLESS = ("chromium_headless_shell-*/*/headless_shell", "chromium_headless_shell-*/*/chrome-headless-shell")
_PLAYWRIGHT_FULL = ("chromium-*/*/chrome", "chromium-*/*/Chromium.app/Contents/MacOS/Chromium")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
WAY_OUT = "run shells/setup.sh, or apt-get install chromium-headless-shell, or name one in EXACT_BROWSER"


def find_browser(headed: bool = False) -> Path:
    """Return the executable to launch: $EXACT_BROWSER, else one on PATH, else Playwright's own.

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
    own = _playwright_own(headed)
    if own:
        return own
    if headed:
        raise EnvironmentFailure("no browser with a window found: apt-get install chromium, or run headless")
    raise EnvironmentFailure(f"no browser found: {WAY_OUT}")


def browser_version(browser: Path) -> str:
    """Return the name and version that an executable prints: `Chromium 150.0.7871.100`.

    Raises EnvironmentFailure where it does not start, or is no browser.
    """
    try:
        done = subprocess.run([browser, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentFailure(f"{browser} does not start: {error}: {WAY_OUT}") from error
    version, why = (next(iter(text.strip().splitlines()), "") for text in (done.stdout, done.stderr))
    if done.returncode or not _VERSION.search(version):
        why = (why or version)[:120] or f"exit status {done.returncode}"
        raise EnvironmentFailure(f"{browser} is not a working browser ({why}): {WAY_OUT}")
    return " ".join(version.split())


def _playwright_own(headed: bool) -> Path | None:
    root = _playwright_root()
    for pattern in _PLAYWRIGHT_FULL if headed else _PLAYWRIGHT_HEADLESS + _PLAYWRIGHT_FULL:
        found = sorted(path for path in root.glob(pattern) if os.access(path, os.X_OK))
        if found:
            return found[-1]
    return None


def _playwright_root() -> Path:
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    if named and named != "0":
        return Path(named)
    return Path.home() / ("Library/Caches/ms-playwright" if sys.platform == "darwin" else ".cache/ms-playwright")
