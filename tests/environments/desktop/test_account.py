"""What the user of a desktop in a sandbox finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from exact.environments.desktop.account import _VIDEOS


def test_vlc_is_not_yet_the_player_of_most_videos() -> None:
    entry = Path("/usr/share/applications/vlc.desktop")
    if not entry.exists():
        pytest.skip("vlc not installed")
    claimed = set(re.findall(r"video/([^;]+);", entry.read_text()))
    assert len(claimed & {*_VIDEOS}) > len(claimed) * 0.8, claimed - {*_VIDEOS}
