"""Finds the pages of MiniWoB++: in the wheel `miniwob`, whose Python code is not loaded."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from exact.errors import UsageError


def miniwob_pages() -> Path:
    """Return the folder of the wheel's pages. Raises UsageError where it is not installed."""
    with suppress(PackageNotFoundError):  # not by import, which would find a script of that name in the working directory first
        pages = Path(str(distribution("miniwob").locate_file("miniwob/html")))
        if pages.is_dir():
            return pages
    raise UsageError("the pages of MiniWoB++ are not installed: run `pip install 'exact-agent[miniwob]'`")
