"""Calls of the library from code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from exact.errors import UsageError

T = TypeVar("T")


def run_sync(call: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **named: Any) -> T:
    """Return the result of an asynchronous call. Raises UsageError in a running event loop, such as a notebook's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call(*arguments, **named))
    name = call.__name__
    raise UsageError(f"{name}_sync cannot be called in a running event loop, such as a notebook's: write `await exact.{name}(...)`")
