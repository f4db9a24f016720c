"""The pages of MiniWoB++ and a server for them.

They come from the installed wheel `miniwob`. Its Python code, which would import Gymnasium and Selenium, is not loaded.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from exact.errors import EnvironmentFailure

Rewrite = Callable[[str, bytes], bytes]
"""Function from a file's path below the pages (`core/core.js`) and its content to the served content."""


def unchanged(path: str, content: bytes) -> bytes:
    """Return the content unchanged."""
    return content


def flip_rewards(path: str, content: bytes) -> bytes:
    """Return the content with the sign of every reward flipped. A search that sees no reward runs the same on these pages."""
    if path != "core/core.js":
        return content
    start = b"core.endEpisode = function(reward, time_proportional, reason) {"
    if content.count(start) != 1:
        raise EnvironmentFailure("core.js of this version of miniwob is not as expected: install miniwob 1.1.0")
    return content.replace(start, start + b" reward = -reward;")


@asynccontextmanager
async def serve(pages: Path, rewrite: Rewrite = unchanged) -> AsyncIterator[str]:
    """Serve a folder over HTTP on loopback; yield `127.0.0.1:port`. Nothing listens and no connection is open afterwards."""
    open_: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_[task] = writer
        task.add_done_callback(lambda done: open_.pop(done, None))
        await _converse(pages, rewrite, reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        left = dict(open_)
        for writer in left.values():
            writer.transport.abort()
        await asyncio.gather(*left, return_exceptions=True)
        await server.wait_closed()


async def _converse(pages: Path, rewrite: Rewrite, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            method, target, _ = head.split(b"\r\n")[0].decode("latin-1").split(" ", 2)
            writer.write(_response(pages, rewrite, method, unquote(urlsplit(target).path)))
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        pass  # the browser went away, or does not speak HTTP
    finally:
        writer.close()


def _response(pages: Path, rewrite: Rewrite, method: str, path: str) -> bytes:
    root = pages.resolve()
    file = (root / path.lstrip("/")).resolve()
    if method not in ("GET", "HEAD"):
        return b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
    if not file.is_relative_to(root) or not file.is_file():
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    content = rewrite(file.relative_to(root).as_posix(), file.read_bytes())
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}{charset}\r\nContent-Length: {len(content)}\r\nCache-Control: max-age=86400\r\n\r\n"
    return head.encode() + (content if method == "GET" else b"")
