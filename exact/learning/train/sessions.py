"""Sessions of an OpenEnv server, for the thread that trains."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol, Self, TypeVar

from exact.environments import openenv
from exact.errors import EnvironmentFailure, UsageError

T = TypeVar("T")
_TIMEOUT = 300.0
"""Seconds in which a server has to answer. Many sessions that open at once share its browser."""


class SessionClient(Protocol):
    """A session of an OpenEnv server."""

    async def reset(self, **options: Any) -> Any:
        """Begin an episode."""
        ...

    async def step(self, action: Any) -> Any:
        """Carry out an action."""
        ...


class ClientSessions:
    """Connections to a server. Their loop has a separate thread, so that the server's pings are answered while the model trains."""

    def __init__(self, server: str, count: int) -> None:
        self._server, self._count, self._loop = server, count, asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openenv sessions", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.clients = self.run(self._connect(self._count))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.run(self._close())
        finally:
            self._stop()

    def another(self) -> SessionClient:
        """Connect one more session, and return its client. Raises EnvironmentFailure, UsageError."""
        found: list[Any] = self.run(self._connect(1))
        self.clients += found
        client: SessionClient = found[0]
        return client

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _connect(self, count: int) -> list[Any]:
        from openenv.core.generic_client import GenericEnvClient

        clients = [GenericEnvClient(base_url=self._server, message_timeout_s=_TIMEOUT) for _ in range(count)]
        await asyncio.gather(*(asked(client.connect()) for client in clients))
        return clients

    async def _close(self) -> None:
        await asyncio.gather(*(client.close() for client in self.clients), return_exceptions=True)


async def asked(request: Awaitable[T]) -> T:
    """Return the answer to a request. Raises EnvironmentFailure if the server is gone or refuses it, UsageError if it is full."""
    try:
        return await openenv.asked(request)
    except EnvironmentFailure as failure:
        if "CAPACITY_REACHED" not in str(failure):
            raise
        raise UsageError("the OpenEnv server is full: lower `environments`, or give `exact serve` more --sessions") from failure
