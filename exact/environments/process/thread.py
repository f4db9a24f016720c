"""Threads for work that may block for long, beside the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def run_in_thread(work: Callable[[], T]) -> Future[T]:
    """Run a function in a thread of its own, for which the interpreter's exit does not wait, and return its future."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # a caller that stops waiting does not cancel it

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 (raised in the caller)
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done
