"""A browser window needs a screen."""

from __future__ import annotations

import pytest

from exact.config import BrowserConfig
from exact.environments.browser import launch
from exact.errors import EnvironmentFailure


async def test_a_headed_browser_without_a_screen_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(EnvironmentFailure, match="DISPLAY is not set"):
        async with launch(BrowserConfig(headed=True)):
            pass
