"""Standard input and output as the streams of the protocol. Nothing else of this process reads or writes them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

from mcp.server.stdio import stdio_server

LONGEST = 2**22
"""Maximum bytes of one message. A longer one ends the connection."""
_PIECE = 2**16


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Any, Any]]:
    """Yield the streams for reading and writing messages.

    Descriptor 0 is the null device meanwhile, and descriptor 1 is standard error, for this process and those that it starts. Standard input
    is read by a thread that nothing waits for: a read from it cannot be interrupted.
    """
    with _own_input() as wire:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=LONGEST)
        threading.Thread(target=_pump, args=(wire, loop, reader), daemon=True, name="standard input").start()
        async with stdio_server(stdin=cast(Any, _lines(reader))) as streams:
            yield streams


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield the lines of a stream, until it ends or a line is too long."""
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            return
        if not line:
            return
        yield line.decode("utf-8", "replace")


def _pump(wire: int, loop: asyncio.AbstractEventLoop, reader: asyncio.StreamReader) -> None:
    """Pass what is read from a descriptor to a reader in a loop, until the descriptor or the loop is closed."""
    data = b"."
    while data:
        try:
            data = os.read(wire, _PIECE)
        except OSError:
            data = b""
        try:
            loop.call_soon_threadsafe(_feed, reader, data)
        except RuntimeError:  # the loop is closed
            return


def _feed(reader: asyncio.StreamReader, data: bytes) -> None:
    if data:
        reader.feed_data(data)
    else:
        reader.feed_eof()


@contextmanager
def _own_input() -> Iterator[int]:
    """Yield a private descriptor of standard input, and put the null device in its place."""
    wire = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    try:
        yield wire
    finally:
        os.dup2(wire, 0)  # `wire` stays open: the thread may be reading from it
