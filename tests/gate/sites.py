"""Hostile sites on loopback that write down what reaches them: requests with headers and bodies, and frames of WebSockets."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TYPES = {"js": "text/javascript", "css": "text/css", "png": "image/png", "json": "application/json", "bin": "application/octet-stream"}
_OPEN = {
    "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*", "Access-Control-Allow-Methods": "*",
    "Cache-Control": "no-store",
}  # fmt: skip
NAMES = ("own", "other", "port")
"""The task's site, `localhost`; a site at 127.0.0.1 that the task allows too; another port of localhost that it allows too."""


@dataclass(frozen=True)
class Reply:
    """An answer. `@rest` in it stands for the end of the path, if the path of the reply ends with `*`."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    endless: bytes = b""
    """Sent after the body again and again, until the browser leaves."""


@dataclass(frozen=True)
class Arrival:
    """One thing that reached a site."""

    site: str
    method: str
    """Of a request, or `FRAME` for what a WebSocket carried: messages, pings and the reason of its end."""
    target: str
    headers: str = ""
    body: bytes = b""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def raw(self) -> bytes:
        return f"{self.method} {self.target}\n{self.headers}\n\n".encode("latin-1") + self.body


class Sites:
    """Three servers. `replies` are by path, of all sites alike; `arrivals` of all sites are in one order."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.replies: dict[str, Reply] = {}
        self._listening = {name: socket.create_server(("127.0.0.1", 0)) for name in NAMES}
        ports = {name: each.getsockname()[1] for name, each in self._listening.items()}
        self.origins = {
            name: f"http://{'127.0.0.1' if name == 'other' else 'localhost'}:{port}" for name, port in ports.items()
        }  # fmt: skip

    def filled(self, text: str, name: str) -> str:
        """Return a text of an attack with the origins and the attack's name in it."""
        for word, value in (*self.origins.items(), ("ws", self.origins["other"].replace("http", "ws")), ("name", name)):
            text = text.replace(f"@{word}", value)
        return text

    def of(self, name: str) -> list[Arrival]:
        """Return what came of one attack."""
        return [each for each in self.arrivals if f"/{name}/" in f"{each.path}/" or f"/{name}/" in each.headers]

    def reply(self, path: str) -> Reply:
        """Return the answer for a path."""
        if found := self.replies.get(path):
            return found
        for known, reply in self.replies.items():
            if known.endswith("*") and path.startswith(known[:-1]):
                rest = path[len(known) - 1 :]
                headers = tuple((name, value.replace("@rest", rest)) for name, value in reply.headers)
                return Reply(reply.body.replace(b"@rest", rest.encode()), reply.status, headers, reply.endless)
        return Reply()

    async def serve(self, ready: threading.Event) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        servers = [await asyncio.start_server(partial(self._serve, name), sock=each) for name, each in self._listening.items()]
        ready.set()
        await self._ended.wait()
        for each in servers:
            each.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)

    async def _serve(self, site: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            while await self._exchange(site, reader, writer):
                pass
        with suppress(OSError, RuntimeError):
            writer.close()

    async def _exchange(self, site: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and answer it. Return whether the connection stays."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, _, rest = head[:-4].partition("\r\n")
        method, target, _ = line.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest.split("\r\n"))}
        body = await _chunks(reader) if "transfer-encoding" in headers else await reader.readexactly(int(headers.get("content-length", 0)))
        arrival = Arrival(site, method, target, rest.replace("\r\n", "\n"), body)
        self.arrivals.append(arrival)
        if headers.get("upgrade", "").lower() == "websocket":
            accept = base64.b64encode(hashlib.sha1(headers["sec-websocket-key"].encode() + _GUID).digest()).decode()
            writer.write(f"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
            while True:
                self.arrivals.append(Arrival(site, "FRAME", target, "", await _frame(reader)))
        reply = self.reply(arrival.path)
        kind = _TYPES.get(arrival.path.rpartition("/")[2].rpartition(".")[2], "text/html; charset=utf-8")
        sent = {"Content-Type": kind, **_OPEN, **dict(reply.headers)}
        sent |= {"Connection": "close"} if reply.endless else {"Content-Length": str(len(reply.body))}
        lines = [f"HTTP/1.1 {reply.status} OK", *map(": ".join, sent.items())]
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (reply.body if method != "HEAD" else b""))
        await writer.drain()
        while reply.endless:
            writer.write(reply.endless)
            await writer.drain()
            await asyncio.sleep(0.002)  # the attacked one shares this process
        return not reply.endless


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readline()).strip(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """Return what the next frame of a WebSocket carries, of whatever kind it is."""
    _, length = await reader.readexactly(2)
    size = length & 127
    if size > 125:
        size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
    mask = await reader.readexactly(4) if length & 128 else bytes(4)
    return bytes(each ^ mask[at % 4] for at, each in enumerate(await reader.readexactly(size)))


@contextmanager
def sites() -> Iterator[Sites]:
    """Run the sites."""
    made, ready = Sites(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(made.serve(ready)), daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield made
    finally:
        made.end()
        thread.join(10)
