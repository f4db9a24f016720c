"""An event loop in a thread of its own, in which sync code runs coroutines one after the other."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401 - registers its own hook at the interpreter's end before ours
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_CLOSING = 60.0
"""Seconds that closing may take before it is given up."""


class LoopThread:
    """A thread whose event loop runs coroutines in one task, so that context managers are entered and left in the same one."""

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the thread. `last`: makes the coroutine that runs when it is closed; it must not refer to the owner of this object."""
        self._loop = asyncio.new_event_loop()
        self._work: asyncio.Queue[tuple[Coroutine[Any, Any, Any], Future[Any]] | None] = asyncio.Queue()
        self._thread = threading.Thread(target=_run, args=(self._loop, self._work, last), name="exact-gymnasium", daemon=True)
        self._thread.start()
        self._finalizer = weakref.finalize(self, _close, self._loop, self._work, self._thread)
        self._finalizer.atexit = False
        _at_exit(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result, or raise its error."""
        future: Future[T] = Future()
        self._loop.call_soon_threadsafe(self._work.put_nowait, (work, future))
        return future.result()

    def close(self) -> None:
        """Run the last coroutine and end the thread. May be called twice."""
        self._finalizer()


_open = weakref.WeakSet[LoopThread]()


def _at_exit(thread: LoopThread) -> None:
    """Close a thread before the interpreter ends, if its owner has not.

    `atexit` is too late: the interpreter has ended all thread pools by then, and closing a browser needs one. concurrent.futures uses the
    same hook of `threading`, whose functions run in the reverse order of their registration.
    """
    if not _open:
        getattr(threading, "_register_atexit", atexit.register)(_close_all)
    _open.add(thread)


def _close_all() -> None:
    for thread in list(_open):
        thread.close()


def _run(
    loop: asyncio.AbstractEventLoop,
    queue: asyncio.Queue[tuple[Coroutine[Any, Any, Any], Future[Any]] | None],
    last: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(_serve(queue, last))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def _serve(
    queue: asyncio.Queue[tuple[Coroutine[Any, Any, Any], Future[Any]] | None], last: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    try:
        while (asked := await queue.get()) is not None:
            work, future = asked
            try:
                future.set_result(await work)
            except BaseException as error:  # noqa: BLE001 - raised in the thread that asked
                future.set_exception(error)
    finally:
        await last()


def _close(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[Any], thread: threading.Thread) -> None:
    if thread.is_alive():
        loop.call_soon_threadsafe(queue.put_nowait, None)
        thread.join(_CLOSING)
