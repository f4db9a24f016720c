"""Pauses of a sandbox that nobody uses, with a stand-in that says when it is paused."""

from __future__ import annotations

import asyncio

import pytest

from exact.environments.sandbox.sandboxes import IdleTimer


class Slow:
    """A sandbox whose pause takes until it is let."""

    def __init__(self) -> None:
        self.paused, self.begun, self.let = False, asyncio.Event(), asyncio.Event()

    async def pause(self) -> None:
        self.begun.set()
        await self.let.wait()
        self.paused = True

    async def resume(self) -> None:
        self.paused = False


async def test_cancellation_while_waiting_for_a_pause_leaves_the_environment_usable() -> None:
    idle = IdleTimer(slow := Slow())  # type: ignore[arg-type]
    idle.pause_after(0.0)
    await slow.begun.wait()
    rousing = asyncio.ensure_future(idle.wake())
    await asyncio.sleep(0)
    rousing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rousing
    slow.let.set()
    await idle.stop()
    assert slow.paused
    await idle.wake()
    assert not slow.paused
