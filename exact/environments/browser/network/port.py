"""A port of the host's loopback at which a relay accepts connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any


class LoopbackPort:
    """Accepts connections, each served by a task, until it is closed.

    It is no asyncio.Server, which leaves a connection open that arrives while it is closed.
    """

    def __init__(
        self,
        serve: Callable[[socket.socket], Coroutine[Any, Any, None]],
        fail: Callable[[str], None],
        listening: socket.socket | None = None,
    ) -> None:
        """Listen at a free port. `serve` serves a connection; `fail` is told the reason where none can be accepted any more.

        `listening`: a socket that listens already, such as one in a browser's network namespace.
        """
        self._serve, self._fail = serve, fail
        self.tasks: set[asyncio.Task[None]] = set()
        """The tasks of the open connections."""
        self._socket = listening or socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    @property
    def number(self) -> int:
        """The number of the port."""
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Accept no more connections. The tasks go on. May be called twice."""
        if self._socket.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, ConnectionError):  # the client has left
            return
        except OSError as error:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._fail(f"no connection to it can be made: {error.strerror}")
            return
        task = asyncio.ensure_future(self._serve(connection))
        self.tasks.add(task)
        task.add_done_callback(partial(self._end, connection))

    def _end(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        """Close a connection that was served, or whose task was cancelled before it began."""
        self.tasks.discard(task)
        connection.close()
