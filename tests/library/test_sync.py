"""Calls without await say what to write where a loop runs."""

from __future__ import annotations

import pytest

import exact
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import maze


async def test_in_a_running_loop_the_call_to_await_is_named() -> None:
    with pytest.raises(exact.UsageError, match=r"solve_sync cannot be called in a running event loop.*`await exact\.solve\(\.\.\.\)`"):
        exact.solve_sync("miniwob/click-test")
    with pytest.raises(exact.UsageError, match=r"`await exact\.search\(\.\.\.\)`"):
        exact.search_sync(ToyFactory(maze()), policy=None, value=None)
