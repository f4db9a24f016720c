"""Time that passes at once."""

from __future__ import annotations

import asyncio

import pytest


class Leaps:
    """The running loop's clock, put forward: what was to happen meanwhile happens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead, self._now = 0.0, asyncio.get_running_loop().time
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self._now() + self._ahead)

    async def by(self, seconds: float) -> None:
        self._ahead += seconds
        for _ in range(3):
            await asyncio.sleep(0)
