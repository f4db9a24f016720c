"""A pytest plugin: a test that hangs fails, and says where it and its tasks stand; the run goes on."""

from __future__ import annotations

import asyncio
import gc
import io
import signal
import traceback
from collections.abc import Iterator
from types import AsyncGeneratorType, FrameType

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
    """Return the stacks of the running loop's tasks; pytest itself prints the main thread."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        return "no event loop runs"
    told = io.StringIO()
    for task in tasks:
        print(task, file=told)
        traceback.print_list(traceback.StackSummary.extract(_frames(task.get_coro())), file=told)
    return told.getvalue()


def _frames(waits: object) -> Iterator[tuple[FrameType, int]]:
    """Return the frames of a coroutine and of everything that it awaits, inwards; a task itself gives its first frame only."""
    while waits is not None:
        kind = next((each for each in ("cr", "gi", "ag") if hasattr(waits, f"{each}_frame")), "")
        if not kind:  # a step of an asynchronous generator names nothing, but refers to it
            waits = next((each for each in gc.get_referents(waits) if isinstance(each, AsyncGeneratorType)), None)
            continue
        if frame := getattr(waits, f"{kind}_frame"):
            yield frame, frame.f_lineno
        waits = getattr(waits, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
