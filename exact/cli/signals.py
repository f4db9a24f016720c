"""SIGTERM and SIGHUP, which end a command as Ctrl-C does: environments are closed, and temporary folders removed."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

T = TypeVar("T")

_NAMES = "SIGTERM", "SIGHUP"


class EndingSignals:
    """The first signal that told this process to end, and the work that it ends."""

    def __init__(self) -> None:
        self.came: int | None = None
        """Number of the signal; None while none came."""
        self.cancel: Callable[[], object] | None = None
        """Cancels the work of the event loop; None if no loop runs."""

    def handle(self, number: int, frame: object) -> None:
        """Cancel the work of the event loop, or raise KeyboardInterrupt.

        Later signals have no effect: they would break off the clean-up.
        """
        if self.came is not None:
            return
        self.came = number
        _leave_terminal()
        if self.cancel is None:
            raise KeyboardInterrupt
        self.cancel()


_signals = EndingSignals()


@contextmanager
def ending_signals() -> Iterator[EndingSignals]:
    """Let signals end the work in the block. Those that this process ignores or handles by other means are left alone."""
    global _signals
    outer, _signals = _signals, EndingSignals()
    free = [number for name in _NAMES if (number := getattr(signal, name, None)) is not None and _is_free(number)]
    for number in free:
        signal.signal(number, _signals.handle)
    try:
        yield _signals
    finally:
        for number in free:
            signal.signal(number, signal.SIG_DFL)
        _signals = outer


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine. Raises KeyboardInterrupt if a signal came, after the coroutine has ended."""
    import asyncio

    signals = _signals

    async def cancellable() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        signals.cancel = lambda: None if loop.is_closed() else loop.call_soon_threadsafe(task.cancel)
        loop.set_exception_handler(partial(_said_unless_ended, task))
        return await work

    try:
        result = asyncio.run(cancellable())
    except asyncio.CancelledError:
        if signals.came is None:
            raise
    finally:
        signals.cancel = None
    if signals.came is not None:
        raise KeyboardInterrupt
    return result


def _said_unless_ended(task: Task[Any], loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop as usual, unless it is an answer that nobody waits for any more because the work was ended."""
    if not (task.cancelling() and str(context.get("message", "")).endswith("exception was never retrieved")):
        loop.default_exception_handler(context)


def _is_free(number: int) -> bool:
    return threading.current_thread() is threading.main_thread() and signal.getsignal(number) is signal.SIG_DFL


def _leave_terminal() -> None:
    """Write to a terminal that was closed no more: that would raise an error in the middle of the clean-up."""
    for output in (1, 2):
        try:
            os.get_terminal_size(output)
        except OSError as error:
            if error.errno == errno.EIO:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, output)
                os.close(nowhere)
