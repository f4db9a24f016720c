"""A pytest plugin: a test that hangs fails, and says where it and its tasks stand; the run goes on."""

from __future__ import annotations

import asyncio
import io
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

_AGAIN = 30.0
"""Seconds after which it is told again: a callback of the event loop that was told keeps it for itself, and an end may hang too."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("hanging_seconds", "how long a test may take with its fixtures; the slowest needs 75", default="600")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    seconds = float(item.config.getini("hanging_seconds"))

    def hangs(_: int, frame: FrameType | None) -> None:
        pytest.fail(f"hangs: no end after {seconds:g} s\n{_tasks()}")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _tasks() -> str:
    """Where the tasks of the loop that runs are; pytest tells of the main thread itself."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        return "no event loop runs"
    told = io.StringIO()
    for task in tasks:
        task.print_stack(file=told)
    return told.getvalue()
