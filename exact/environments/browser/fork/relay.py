"""Playwright's way to the Chromium of a sandbox: a port of this machine's loopback, and frames over the sandbox's pipes.

The other end is `inside.py`, which describes the frames. The port is open to every program here, so the path behind it cannot be guessed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import struct
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Any

from exact.environments.browser.fork.dial import Dial, dialled
from exact.environments.browser.fork.egress import Egress
from exact.environments.browser.fork.init_process import FRAME, LINE, OUTWARD
from exact.environments.browser.network.interceptor import EVENTS
from exact.environments.browser.page.connection import CdpConnection, CdpState
from exact.environments.sandbox import Sandbox
from exact.errors import EnvironmentFailure

_NUMBERS = count(1)
"""Of connections; none is used twice, for the frames of old ones may still arrive from a restored guest."""
_HEAD = 16384
"""Bytes of a request's head at most."""


class Relay:
    """One for each sandbox. It says what became of the environment in `lost`."""

    def __init__(
        self, sandbox: Sandbox, hosts: Mapping[str, str] | None = None, line: CdpState | None = None, dial: Dial = dialled
    ) -> None:
        """`hosts`: names of servers outside, as in Outside. Nothing outside is reached before something is admitted.
        `line`: where a restored environment's conversation was cut. `dial` makes connections to the outside."""
        self.sandbox = sandbox
        self.egress = Egress(self._pass, self._say, hosts or {}, dial)
        self.line = CdpConnection(self._tell_line, line or CdpState(), EVENTS)
        self.lost = ""
        """Why the environment is gone or unfit; empty while it is well."""
        self._ended = asyncio.Event()
        self.address = ""
        """Of the browser's WebSocket, once it is ready."""
        self.path = ""
        """The part of it that the browser chose."""
        self._token = secrets.token_urlsafe(24)
        self._found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._held = asyncio.Event()
        self._digests: dict[str, asyncio.Future[tuple[int, str]]] = {}
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._lines: dict[int, CdpConnection] = {}
        self._conversations: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._sending, self._telling = asyncio.Lock(), asyncio.Lock()
        self._port: socket.socket | None = None
        self._reading = asyncio.ensure_future(self._read())

    async def connect(self, *, path: str = "", seconds: float) -> str:
        """The WebSocket address of the browser, once the environment is ready. Raises EnvironmentFailure that says why it is not.

        `path`: where the browser of an environment that is just being restored listened before. Then this does not wait: the environment
        hears what is said to it when it is there.
        """
        if path:
            self.path = path
            await self._order("anew")
        else:
            await self._ready(seconds)
        self._port = socket.create_server(("127.0.0.1", 0))
        self._port.setblocking(False)
        asyncio.get_running_loop().add_reader(self._port, self._accept, self._port)
        self.address = f"ws://127.0.0.1:{self._port.getsockname()[1]}/{self._token}{self.path}"
        return self.address

    async def _ready(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                self.path = await asyncio.shield(self._found)
        except TimeoutError as error:
            raise EnvironmentFailure(f"the environment was not ready within {seconds:g} s") from error

    async def speak(self, seconds: float = 30.0) -> CdpConnection:
        """The conversation that outlives a restore, once there is an address. Raises EnvironmentFailure."""
        try:
            async with asyncio.timeout(seconds):
                await self.line.begin(self.path)
        except TimeoutError as error:
            raise EnvironmentFailure(f"the browser did not answer within {seconds:g} s") from error
        return self.line

    async def talk(self, seconds: float = 30.0) -> CdpConnection:
        """A further conversation, once there is an address; a restored environment has not heard of it. Raises EnvironmentFailure."""
        ident = next(_NUMBERS)
        line = self._lines[ident] = CdpConnection(partial(self._tell, ident), CdpState())
        try:
            async with asyncio.timeout(seconds):
                await line.begin(self.path)
        except TimeoutError as error:
            raise EnvironmentFailure(f"the browser did not answer within {seconds:g} s") from error
        return line

    async def hold(self, seconds: float = 10.0) -> None:
        """Come to a point where no frame is under way in either direction, and stay there.

        Raises EnvironmentFailure. The environment is lost then, and where this is cancelled: it may come to rest at any time, unheard.
        """
        self._check()
        self._open.clear()
        try:
            async with asyncio.timeout(seconds):
                async with self._telling:
                    await self._order("hold")
                await self._held.wait()
        except TimeoutError as error:
            self._fail("it did not come to rest")
            raise EnvironmentFailure(f"the environment did not come to rest within {seconds:g} s") from error
        except BaseException:
            self._fail("it did not come to rest")
            raise
        self._check()

    async def release(self) -> None:
        """Go on. Raises EnvironmentFailure; the environment is lost then, and where this is cancelled."""
        self._held.clear()
        try:
            await self._order("go")
        except BaseException:
            self._fail("it was not let go on")
            raise
        self._open.set()

    async def close(self) -> None:
        """Close the port and the connections, those to the outside first. Never raises; may be called twice."""
        self._ended.set()
        await self.egress.close()
        for line in (self.line, *self._lines.values()):
            line.fail("the environment was let go")
        if self._port is not None:
            asyncio.get_running_loop().remove_reader(self._port)
            self._port.close()
            self._port = None
        for writer in list(self._writers.values()):
            writer.transport.abort()
        tasks = [*self._conversations, self._reading]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._found.cancel()

    async def digest(self, file: str, seconds: float = 30.0) -> tuple[int, str]:
        """Size and SHA-256 of a file that the browser downloaded, which goes away then. Raises EnvironmentFailure where it is not there."""
        told: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        self._digests[file] = told
        try:
            await self._say("digest", file=file)
            async with asyncio.timeout(seconds):
                size, found = await told
        except TimeoutError as error:
            raise EnvironmentFailure(f"the environment did not answer within {seconds:g} s") from error
        finally:
            self._digests.pop(file, None)
        if size < 0:
            raise EnvironmentFailure("a file that was downloaded is not there")
        return size, found

    async def loss(self, seconds: float = 1.0) -> str:
        """`lost`, for somebody whom the environment has just failed: that a service ended may be heard of a moment after a page missed
        it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended()
        return self.lost

    async def ended(self) -> None:
        """Wait until the environment is gone, or let go."""
        await self._ended.wait()

    async def _order(self, do: str, **more: int | str) -> None:
        await self._send(0, json.dumps({"do": do, **more}).encode())

    async def _say(self, do: str, **more: int | str) -> None:
        """An order that waits while the environment is held. Nothing where it is gone."""
        await self._flowing()
        with contextlib.suppress(EnvironmentFailure):
            await self._order(do, **more)

    async def _tell_line(self, data: bytes) -> None:
        """A whole message to the browser: an environment that is held has not heard half of one."""
        async with self._telling:
            await self._tell(LINE, data)

    async def _tell(self, ident: int, data: bytes) -> None:
        await self._flowing()
        for start in range(0, len(data), FRAME):
            await self._send(ident, data[start : start + FRAME])

    async def _flowing(self) -> None:
        """Wait while the environment is held."""
        while not self._open.is_set():
            await self._open.wait()

    async def _pass(self, ident: int, data: bytes) -> None:
        """Bytes from the outside, as above."""
        await self._flowing()
        with contextlib.suppress(EnvironmentFailure):
            await self._send(ident, data)

    async def _send(self, ident: int, data: bytes) -> None:
        async with self._sending:
            try:
                self.sandbox.stdin.write(struct.pack("<II", ident, len(data)) + data)
                await self.sandbox.stdin.drain()
            except ConnectionError as error:
                raise EnvironmentFailure(f"the environment is gone: {self.lost or 'its pipe is closed'}") from error

    async def _read(self) -> None:
        try:
            while True:
                ident, size = struct.unpack("<II", await self.sandbox.stdout.readexactly(8))
                if size > FRAME:
                    break
                data = await self.sandbox.stdout.readexactly(size)
                if ident == 0:
                    self._hear(json.loads(data))
                elif ident == LINE:
                    self.line.hear(data)
                elif line := self._lines.get(ident):
                    line.hear(data)
                elif ident & OUTWARD:
                    self.egress.hear(ident, data)
                elif writer := self._writers.get(ident):
                    await self._hand(writer, data)
            self._fail("it does not keep to the protocol")
        except (ValueError, AttributeError, TypeError):  # no JSON, or no object
            self._fail("it does not keep to the protocol")
        except (asyncio.IncompleteReadError, ConnectionError):
            self._fail(await self.sandbox.why())

    async def _hand(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            if data:
                writer.write(data)
                await writer.drain()
            else:
                writer.close()

    def _hear(self, message: dict[str, Any]) -> None:
        if "ready" in message and not self._found.done():
            self._found.set_result(message["ready"])
        elif "held" in message:
            self._held.set()
        elif "open" in message:
            self.egress.open(message["open"])
        elif "took" in message:
            self.egress.took(message["took"], message["bytes"])
        elif "digest" in message:
            told = self._digests.get(message["digest"])
            if told is not None and not told.done():
                told.set_result((message["size"], message["sha256"]))
        elif "failed" in message:
            self._fail(message["failed"])
        elif "died" in message:
            self._fail(f"{message['died']} ended with status {message['status']}")

    def _check(self) -> None:
        if self.lost:
            raise EnvironmentFailure(f"the environment is gone: {self.lost}")

    def _fail(self, why: str) -> None:
        self.lost = self.lost or why
        self._ended.set()
        self._open.set()  # whoever waits for it finds it gone
        self._held.set()
        if not self._found.done():
            self._found.set_exception(EnvironmentFailure(f"the environment did not start: {self.lost}"))
            self._found.exception()
        for line in (self.line, *self._lines.values()):
            line.fail(f"the environment is gone: {self.lost}")
        for writer in self._writers.values():
            writer.transport.abort()

    def _accept(self, port: socket.socket) -> None:
        """Take a connection. Not by an asyncio.Server, which, closed meanwhile, forgets one and leaves it open."""
        try:
            made, _ = port.accept()
        except (BlockingIOError, ConnectionError):  # gone again
            return
        except OSError as error:
            asyncio.get_running_loop().remove_reader(port)
            self._fail(f"no connection to it can be made: {error.strerror}")
            return
        task = asyncio.ensure_future(self._serve(made))
        self._conversations.add(task)
        task.add_done_callback(partial(self._parted, made))

    def _parted(self, made: socket.socket, task: asyncio.Task[None]) -> None:
        """A conversation is over; one that was cancelled may not even have begun."""
        self._conversations.discard(task)
        made.close()

    async def _serve(self, made: socket.socket) -> None:
        ident = next(_NUMBERS)
        reader, writer = await asyncio.open_connection(sock=made, limit=_HEAD)
        self._writers[ident] = writer
        try:
            head = await self._admit(reader)
            if head and not self.lost:
                await self._converse(ident, head, reader)
        except (ConnectionError, EnvironmentFailure, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever was there is gone, or does not speak HTTP
        finally:
            del self._writers[ident]
            writer.transport.abort()

    async def _admit(self, reader: asyncio.StreamReader) -> bytes:
        """The head of the request with the path that the browser knows; empty for strangers."""
        head = await reader.readuntil(b"\r\n\r\n")
        known = f"GET /{self._token}/".encode()
        return head.replace(known, b"GET /", 1) if secrets.compare_digest(head[: len(known)], known) else b""

    async def _converse(self, ident: int, head: bytes, reader: asyncio.StreamReader) -> None:
        data = head
        while data:
            await self._flowing()
            await self._send(ident, data)
            data = await reader.read(FRAME)
        self.egress.shut()  # before the browser knows that nobody answers its `Fetch` any more
        await self._send(ident, b"")
