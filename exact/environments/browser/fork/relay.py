"""The relay between Playwright and the Chromium of a sandbox: a loopback port on the host, and frames over the sandbox's pipes.

The other end is `init_process.py`, which describes the frames. Every program on the host can connect to the port, so its path is a secret
token.

The control messages of a sandbox. Hostile pages run in it, so its messages are checked before they are used.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import struct
from functools import partial
from itertools import count
from typing import Annotated

import msgspec

from exact.environments.browser.fork.egress import Egress
from exact.environments.browser.fork.init_process import FRAME, LINE, OUTWARD
from exact.environments.browser.network.dial import Destinations, Dialler
from exact.environments.browser.network.interceptor import EVENTS
from exact.environments.browser.network.tunnel import LoopbackPort
from exact.environments.browser.page.websocket import CdpState, WebSocketConnection
from exact.environments.sandbox.sandbox import Sandbox
from exact.errors import EnvironmentFailure

_NUMBERS = count(1)
"""Numbers of connections. None is used twice: frames of old connections may still arrive from a restored sandbox."""
_HEAD = 16384
"""Maximum bytes of a request's head."""


class Relay:
    """The relay of one sandbox. `lost` gives the reason why the environment ended."""

    def __init__(
        self,
        sandbox: Sandbox,
        destinations: Destinations | None = None,
        line: CdpState | None = None,
        dialler: Dialler | None = None,
    ) -> None:
        """Start reading from a sandbox.

        `destinations`: servers outside. Nothing outside is reached before the egress admits it. `line`: state of the CDP connection of the
        snapshot that is restored. `dialler` connects to the outside.
        """
        self.sandbox = sandbox
        self.egress = Egress(self._pass, self._say, destinations or Destinations(), dialler or Dialler())
        self.line = WebSocketConnection(self._tell_line, line or CdpState(), EVENTS)
        self.lost = ""
        """The reason why the environment is gone or unusable; empty while it works."""
        self._ended = asyncio.Event()
        self.address = ""
        """Address of the browser's WebSocket; empty before `connect`."""
        self.path = ""
        """The part of the address that the browser chose."""
        self.made: tuple[str, ...] = ()
        """Files that the services made, as they started, in folders whose files on the host are hidden."""
        self._token = secrets.token_urlsafe(24)
        self._found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._held = asyncio.Event()
        self._digests: dict[str, asyncio.Future[tuple[int, str]]] = {}
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._lines: dict[int, WebSocketConnection] = {}
        self._open = asyncio.Event()
        self._open.set()
        self._sending, self._telling = asyncio.Lock(), asyncio.Lock()
        self._port: LoopbackPort | None = None
        self._reading = asyncio.ensure_future(self._read())

    async def connect(self, *, path: str = "", seconds: float) -> str:
        """Return the WebSocket address of the browser once it is ready. Raises EnvironmentFailure with the reason why it is not.

        `path`: the path at which the browser of a snapshot listened. This does not wait for its restore then: the environment reads what
        was sent as soon as it runs.
        """
        if path:
            self.path = path
            await self._order("anew")
        else:
            await self._ready(seconds)
        self._port = LoopbackPort(self._serve, self._fail)
        self.address = f"ws://127.0.0.1:{self._port.number}/{self._token}{self.path}"
        return self.address

    async def _ready(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                self.path = await asyncio.shield(self._found)
        except TimeoutError as error:
            raise EnvironmentFailure(f"the environment was not ready within {seconds:g} s") from error

    async def speak(self, seconds: float = 30.0) -> WebSocketConnection:
        """Open the CDP connection that outlives a restore. Call `connect` first. Raises EnvironmentFailure."""
        try:
            async with asyncio.timeout(seconds):
                await self.line.begin(self.path)
        except TimeoutError as error:
            raise EnvironmentFailure(f"the browser did not answer within {seconds:g} s") from error
        return self.line

    async def talk(self, seconds: float = 30.0) -> WebSocketConnection:
        """Open a further CDP connection, which ends with a restore. Call `connect` first. Raises EnvironmentFailure."""
        ident = next(_NUMBERS)
        line = self._lines[ident] = WebSocketConnection(partial(self._tell, ident), CdpState())
        try:
            async with asyncio.timeout(seconds):
                await line.begin(self.path)
        except TimeoutError as error:
            raise EnvironmentFailure(f"the browser did not answer within {seconds:g} s") from error
        return line

    async def hold(self, seconds: float = 10.0) -> None:
        """Hold the environment at a point at which no frame is in flight in either direction, until `release`.

        Raises EnvironmentFailure. The environment is lost then, and also if this is cancelled, since it may stop at any later time.
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
        """Let a held environment continue. Raises EnvironmentFailure; the environment is lost then, and if this is cancelled."""
        self._held.clear()
        try:
            await self._order("go")
        except BaseException:
            self._fail("it was not let go on")
            raise
        self._open.set()

    async def close(self) -> None:
        """Close the port and all connections, those to the outside first. Never raises; may be called twice."""
        self._ended.set()
        await self.egress.close()
        for line in (self.line, *self._lines.values()):
            line.fail("the environment was let go")
        tasks = [self._reading]
        if self._port is not None:
            self._port.close()
            tasks += self._port.tasks
            self._port = None
        for writer in list(self._writers.values()):
            writer.transport.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._found.cancel()

    async def digest(self, file: str, seconds: float = 30.0) -> tuple[int, str]:
        """Return size and hex SHA-256 of a downloaded file, which is deleted then. Raises EnvironmentFailure if it does not exist."""
        answer: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        self._digests[file] = answer
        try:
            await self._say("digest", file=file)
            async with asyncio.timeout(seconds):
                size, found = await answer
        except TimeoutError as error:
            raise EnvironmentFailure(f"the environment did not answer within {seconds:g} s") from error
        finally:
            self._digests.pop(file, None)
        if size < 0:
            raise EnvironmentFailure("a file that was downloaded is not there")
        return size, found

    async def loss(self, seconds: float = 1.0) -> str:
        """Return `lost` after a failed call, waiting for it for a moment: a page may miss a service before its end is reported."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended()
        return self.lost

    async def ended(self) -> None:
        """Wait until the environment has ended or was closed."""
        await self._ended.wait()

    async def _order(self, do: str, **more: int | str) -> None:
        await self._send(0, json.dumps({"do": do, **more}).encode())

    async def _say(self, do: str, **more: int | str) -> None:
        """Send an order, after waiting while the environment is held. Do nothing if it is gone."""
        await self._flowing()
        with contextlib.suppress(EnvironmentFailure):
            await self._order(do, **more)

    async def _tell_line(self, data: bytes) -> None:
        """Send a whole message to the browser: a held environment never has half of one."""
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
        """Send bytes from the outside, after waiting while the environment is held."""
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
                    self._hear(control_message(data))
                elif ident == LINE:
                    self.line.feed(data)
                elif line := self._lines.get(ident):
                    line.feed(data)
                elif ident & OUTWARD:
                    self.egress.hear(ident, data)
                elif writer := self._writers.get(ident):
                    await self._hand(writer, data)
            self._fail(f"it does not keep to the protocol: a frame of {size} bytes")
        except (asyncio.IncompleteReadError, ConnectionError):
            self._fail(await self.sandbox.why())
        except Exception as error:  # noqa: BLE001 (the boundary to a sandbox, which hostile pages may have taken over)
            self._fail(f"it does not keep to the protocol: {type(error).__name__}: {str(error)[:200]}")

    async def _hand(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            if data:
                writer.write(data)
                await writer.drain()
            else:
                writer.close()

    def _hear(self, message: ControlMessage) -> None:
        if message.ready is not None:
            if not self._found.done():
                self._found.set_result(message.ready)
        elif message.held is not None:
            self._held.set()
        elif message.open is not None:
            self.egress.open(message.open)
        elif message.took is not None:
            self.egress.took(message.took, message.bytes or 0)
        elif message.digest is not None:
            answer = self._digests.get(message.digest)
            if answer is not None and not answer.done():
                answer.set_result((message.size or 0, message.sha256 or ""))
        elif message.made is not None:
            self.made = message.made
        elif message.failed is not None:
            self._fail(message.failed)
        elif message.died is not None:
            self._fail(f"{message.died} ended with status {message.status}{message.last}")

    def _check(self) -> None:
        if self.lost:
            raise EnvironmentFailure(f"the environment is gone: {self.lost}")

    def _fail(self, why: str) -> None:
        self.lost = self.lost or why
        self._ended.set()
        self._open.set()  # those who wait find that it is lost
        self._held.set()
        if not self._found.done():
            self._found.set_exception(EnvironmentFailure(f"the environment did not start: {self.lost}"))
            self._found.exception()
        for line in (self.line, *self._lines.values()):
            line.fail(f"the environment is gone: {self.lost}")
        for writer in self._writers.values():
            writer.transport.abort()

    async def _serve(self, made: socket.socket) -> None:
        ident = next(_NUMBERS)
        reader, writer = await asyncio.open_connection(sock=made, limit=_HEAD)
        self._writers[ident] = writer
        try:
            head = await self._admit(reader)
            if head and not self.lost:
                await self._converse(ident, head, reader)
        except (ConnectionError, EnvironmentFailure, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has left, or does not speak HTTP
        finally:
            del self._writers[ident]
            writer.transport.abort()

    async def _admit(self, reader: asyncio.StreamReader) -> bytes:
        """Return the head of the request with the browser's path; empty if the token is wrong."""
        head = await reader.readuntil(b"\r\n\r\n")
        known = f"GET /{self._token}/".encode()
        return head.replace(known, b"GET /", 1) if secrets.compare_digest(head[: len(known)], known) else b""

    async def _converse(self, ident: int, head: bytes, reader: asyncio.StreamReader) -> None:
        data = head
        while data:
            await self._flowing()
            await self._send(ident, data)
            data = await reader.read(FRAME)
        self.egress.shut()  # before the browser notices that its `Fetch` is no longer answered
        await self._send(ident, b"")


Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


class ControlMessage(msgspec.Struct, frozen=True):
    """One message from `init_process.py`, which describes them. The fields of other messages are None."""

    ready: str | None = None
    held: bool | None = None
    open: Number | None = None
    took: Number | None = None
    bytes: Size | None = None
    digest: str | None = None
    size: Annotated[int, msgspec.Meta(ge=-1)] | None = None
    sha256: str | None = None
    made: tuple[str, ...] | None = None
    failed: str | None = None
    died: str | None = None
    status: int | None = None
    last: str = ""

    def __post_init__(self) -> None:
        if self.took is not None and self.bytes is None:
            raise ValueError("`took` without `bytes`")
        if self.digest is not None and (self.size is None or self.sha256 is None):
            raise ValueError("`digest` without `size` or `sha256`")
        if self.died is not None and self.status is None:
            raise ValueError("`died` without `status`")
        kinds = (self.ready, self.held, self.open, self.took, self.digest, self.made, self.failed, self.died)
        if all(each is None for each in kinds):
            raise ValueError("an unknown message")


def control_message(data: bytes) -> ControlMessage:
    """Return a message. Raises ValueError if the data is not a message."""
    try:
        return msgspec.json.decode(data, type=ControlMessage)
    except RecursionError as error:
        raise ValueError("a message that is nested too deeply") from error
