"""The pipe of a launched browser, which Playwright's driver and this process share.

Playwright launches the browser and talks to it over a pipe. The program that it launches hands that pipe to this process and becomes the
browser on another one. Messages of the driver are passed on as they are. Commands of our own go the same way with numbers and sessions that
the driver does not use, so they do without its relay, and no port is opened for them.
"""

from __future__ import annotations

import array
import asyncio
import os
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from exact.environments.browser.launch import hand_over
from exact.environments.browser.network.pace import Allowance
from exact.environments.browser.page.cdp import KEPT, MOST_BYTES, CdpConnection, decoded, refused
from exact.errors import EnvironmentFailure

_FIRST_NUMBER = 1 << 30
"""Numbers of our own commands are above this one, those of the driver below it."""
_MESSAGE = 512 << 20
"""Maximum bytes of one message of the driver."""
_PIPE = 1 << 20
"""Bytes that a pipe holds, if the system allows it."""
_AHEAD = 4 << 20
"""Bytes that wait for one side, after which no more is read from the other."""
_SECONDS = 10.0
"""Seconds that the exchange of the pipes may take."""
_GONE = "the browser is gone"
_METHOD = b'{"method":"'
"""Beginning of an event, before its name."""
_SESSIONS = (b"Target.attachedToTarget", b"Target.detachedFromTarget")
"""Names of events about sessions."""
_HEARD, _HEARD_A_SECOND = 500, 50.0
"""Events of a page that are not needed, of which the driver gets so many at once, and so many further ones in each second."""
_COUNTED = 16 << 10
"""Bytes of an event that count as a further one."""


class _EventKind(NamedTuple):
    """Events that a page can cause in any number."""

    why: str
    """Why a page that caused too many is ended."""
    most: int
    """Events that a page may cause at once before it counts as a flood."""
    a_second: float
    """Further ones in each second."""
    is_needed: bool = True
    """Whether the driver needs each of them. It is slow at events, and holds up all other messages."""


_CONSOLE = _EventKind("it writes to its console without end", 2000, 200.0, is_needed=False)
_MESSAGES = _EventKind("it receives messages without end", 5000, 500.0, is_needed=False)
_FRAMES = _EventKind("it adds frames without end", 200, 10.0)
"""Each frame costs the browser's main process, which all pages share, milliseconds."""
_ADDRESSES = _EventKind("it changes its address without end", 1000, 100.0)
_OTHER = _EventKind("it causes events without end", 20000, 2000.0)
_KINDS = {
    b"Runtime.consoleAPICalled": _CONSOLE,
    b"Runtime.exceptionThrown": _CONSOLE,
    b"Log.entryAdded": _CONSOLE,
    b"Network.eventSourceMessageReceived": _MESSAGES,
    b"Network.webSocketFrameReceived": _MESSAGES,
    b"Page.frameAttached": _FRAMES,
    b"Page.navigatedWithinDocument": _ADDRESSES,
}
"""Kinds of events by name. All others are of the kind `_OTHER`, so that each event of a page is counted."""


class _Meter:
    """Counts the events of a page."""

    def __init__(self, target: str) -> None:
        """Count for a page. `target`: its CDP id."""
        self.target, self._is_over = target, False
        self._heard = Allowance(_HEARD, _HEARD_A_SECOND)
        self._allowed: dict[_EventKind, Allowance] = {}

    def take(self, kind: _EventKind, size: int) -> tuple[bool, bool]:
        """Count one event of so many bytes.

        Return whether the driver gets it, and whether with it the page floods the browser, which is said once.
        """
        number = 1 + size // _COUNTED
        allowed = self._allowed.get(kind)
        if allowed is None:
            allowed = self._allowed[kind] = Allowance(kind.most, kind.a_second)
        floods = not allowed.take(number) and not self._is_over
        self._is_over |= floods
        return kind.is_needed or self._heard.take(number), floods


class SharedPipe(CdpConnection):
    """The two pipes, and our own commands between the messages of the driver. Made by `shared_pipe`."""

    def __init__(self) -> None:
        super().__init__(_FIRST_NUMBER)
        self._ports: socket.socket | None = None
        """Asks for ports in the browser's network namespace; None if it has no separate one."""
        self._asking = asyncio.Lock()
        self._meters: dict[str, _Meter] = {}
        """Meters of pages, by sessions of the driver with them, their frames and their workers."""
        self._driver = _Side(self._from_driver, self._ended)
        self._browser = _Side(self._from_browser, self._ended, MOST_BYTES)

    async def serve(self, listener: socket.socket) -> None:
        """Take the driver's pipe from the program that it launched, and give the browser its own."""
        loop = asyncio.get_running_loop()
        while True:
            line, _ = await loop.sock_accept(listener)
            with ExitStack() as closed:
                closed.enter_context(line)
                if line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8] != os.getuid().to_bytes(4, sys.byteorder):
                    continue  # another user of this machine
                line.settimeout(_SECONDS)
                is_apart, *ends = await asyncio.to_thread(_exchange, line)
                if is_apart:
                    closed.pop_all()
                    self._ports = line
                break
        self._driver.slow, self._browser.slow = self._browser.pause, self._driver.pause
        await self._browser.open(ends[2], ends[3])
        await self._driver.open(ends[0], ends[1])  # last, because it sends a message at once

    async def begin(self) -> None:
        """Open a session of our own with the browser, once it has started. Raises EnvironmentFailure."""
        self._root = str((await self.send("Target.attachToBrowserTarget"))["sessionId"])

    @property
    def is_apart(self) -> bool:
        """Whether the browser has a separate network namespace, out of which only ports requested here lead."""
        return self._ports is not None

    async def port(self) -> socket.socket | None:
        """Return a socket that listens in the browser's network namespace; None if it has none. Raises EnvironmentFailure."""
        if self._ports is None:
            return None
        async with self._asking:
            try:
                return await asyncio.to_thread(_port, self._ports)
            except OSError as error:
                raise EnvironmentFailure(_GONE) from error

    def close(self) -> None:
        """Close the pipes: a browser that still runs ends. Later commands fail."""
        self.fail(_GONE)
        self._driver.close()
        self._browser.close()
        if self._ports is not None:
            self._ports.close()

    async def _write(self, text: bytes) -> None:
        self._browser.write(text + b"\0")

    def _from_driver(self, messages: list[bytes]) -> None:
        self._browser.write(b"\0".join((*messages, b"")))

    def _from_browser(self, messages: list[bytes]) -> None:
        own = [self._is_own(message) for message in messages]
        others = [message for message, ours in zip(messages, own, strict=True) if not ours and self._is_for_driver(message)]
        if others:
            self._driver.write(b"\0".join((*others, b"")))
        for message, ours in zip(messages, own, strict=True):
            if ours and self._is_listened_to(message):
                # each in a separate turn, so that a handler that fails does not keep a message from another one
                asyncio.get_running_loop().call_soon(self._take, message)

    def _is_listened_to(self, message: bytes) -> bool:
        """Return whether a message of ours has somebody who handles it: events of pages that nobody listens to are not even read."""
        session = self._sessions.get(_session(message)) if message.startswith(_METHOD) else None
        return session is None or session.hears(_name(message).decode("ascii", "replace"))

    def _is_for_driver(self, message: bytes) -> bool:
        """Return whether the driver gets a message, and count it if it is an event of a page."""
        if not message.startswith(_METHOD):
            return True
        name = _name(message)
        if name in _SESSIONS:
            self._note_session(message)
        if (meter := self._meters.get(_session(message))) is None:
            return True
        kind = _KINDS.get(name, _OTHER)
        is_heard, floods = meter.take(kind, len(message))
        if floods:
            self.report_flood(meter.target, kind.why)
        return is_heard

    def _note_session(self, message: bytes) -> None:
        """Note a session of the driver with a page, or with a frame or a worker of one, or its end."""
        found = decoded(message)["params"]
        if "targetInfo" not in found:
            self._meters.pop(found["sessionId"], None)
        elif found["targetInfo"]["type"] == "page":
            self._meters[found["sessionId"]] = _Meter(found["targetInfo"]["targetId"])
        elif above := self._meters.get(_session(message)):
            self._meters[found["sessionId"]] = above

    def _is_own(self, message: bytes) -> bool:
        """Return whether a message answers a command of ours, or is an event of one of our sessions. The session stands at its end."""
        if message.startswith(b'{"id":'):
            number = message[6 : message.find(b",", 6)]
            return number.isdigit() and int(number) > _FIRST_NUMBER
        name = _session(message)
        return bool(name) and (name == self._root or name in self._sessions)

    def _ended(self) -> None:
        self.close()


class _Side(asyncio.Protocol):
    """One of the two programs that this process is between."""

    def __init__(self, take: Callable[[list[bytes]], None], ended: Callable[[], None], most: int = 0) -> None:
        """Take both handlers. `most`: bytes of a message above which it is replaced by an error, or dropped; 0: no limit."""
        self._take, self._ended, self._most = take, ended, most
        self._dropped = 0
        """Bytes of the present message that were dropped: it is too large."""
        self._reading: asyncio.ReadTransport | None = None
        self._writing: asyncio.WriteTransport | None = None
        self._received = bytearray()
        self._unsent: list[bytes] = []
        """Messages of this turn of the event loop after the first. They are written together: each write costs as much as a message."""
        self._has_written = False
        """Whether a message was written in this turn. The first one does not wait for the next turn."""
        self.slow: Callable[[bool], None] = lambda _: None
        """Learns whether too many bytes wait to be written."""

    async def open(self, reading: int, writing: int) -> None:
        """Begin to read from one descriptor and to write to the other."""
        loop = asyncio.get_running_loop()
        self._writing, _ = await loop.connect_write_pipe(lambda: _Writing(self), os.fdopen(writing, "wb", 0))
        self._writing.set_write_buffer_limits(_AHEAD)
        self._reading, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(reading, "rb", 0))

    def write(self, data: bytes) -> None:
        """Send messages. Those for a side that is closed are dropped."""
        self._unsent.append(data)
        if not self._has_written:
            self._has_written = True
            asyncio.get_running_loop().call_soon(self._next_turn)
            self._flush()

    def _next_turn(self) -> None:
        self._has_written = False
        self._flush()

    def _flush(self) -> None:
        data, self._unsent = b"".join(self._unsent), []
        if data and self._writing and not self._writing.is_closing():
            self._writing.write(data)

    def pause(self, paused: bool) -> None:
        """Read no more until this is called again with False."""
        if self._reading and not self._reading.is_closing():
            (self._reading.pause_reading if paused else self._reading.resume_reading)()

    def close(self) -> None:
        """Close both descriptors."""
        self._flush()
        for each in (self._reading, self._writing):
            if each and not each.is_closing():
                each.close()

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\0")
        if whole:
            self._received += whole[0]
            self._bound()
            whole[0] = self._message()
            self._received = bytearray(rest)
            self._take([each for each in whole if each])
        else:
            self._received += rest
            self._bound()

    def _message(self) -> bytes:
        """Return the message that has come, or the error in its place; empty for an event that is too large."""
        dropped, self._dropped = self._dropped, 0
        if not dropped:
            return bytes(self._received)
        return refused(bytes(self._received[:KEPT]), bytes(self._received[-KEPT:]), len(self._received) + dropped)

    def _bound(self) -> None:
        """Keep no more than the ends of a message that is too large."""
        size = len(self._received)
        if self._most and size > (2 * _AHEAD if self._dropped else self._most):
            del self._received[KEPT:-KEPT]
            self._dropped += size - len(self._received)
        elif size > _MESSAGE:
            self._ended()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()


class _Writing(asyncio.BaseProtocol):
    """Reports how many bytes wait to be written to a side."""

    def __init__(self, side: _Side) -> None:
        self._side = side

    def pause_writing(self) -> None:
        self._side.slow(True)

    def resume_writing(self) -> None:
        self._side.slow(False)


def _name(message: bytes) -> bytes:
    """Return the name of an event."""
    return message[len(_METHOD) : message.find(b'"', len(_METHOD))]


def _session(message: bytes) -> str:
    """Return the session of an event, which stands at its end; empty if it has none."""
    head, _, session = message.rpartition(b',"sessionId":"')
    return session[:-2].decode("utf-8", "replace") if head and session.endswith(b'"}') else ""


@asynccontextmanager
async def shared_pipe(executable: str, folder: Path, *, apart: bool = False) -> AsyncIterator[tuple[str, SharedPipe | None]]:
    """Yield the program to launch in place of a browser, and the pipe to it.

    `apart`: give the browser a separate network namespace if this user may make one. The browser itself and None are yielded if the system
    cannot hand pipes over, or runs no programs of `folder`.
    """
    program = folder / "browser.sh"
    if not _hands_over() or not await asyncio.to_thread(_is_runnable, program, executable, apart, name := os.urandom(16).hex()):
        yield executable, None
        return
    pipe = SharedPipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.setblocking(False)
        listener.bind("\0" + name)
        listener.listen(1)
        serving = asyncio.ensure_future(pipe.serve(listener))
        try:
            yield str(program), pipe
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError, OSError, EnvironmentFailure):
                await serving
            pipe.close()


def _hands_over() -> bool:
    """Return whether the system can hand pipes over and report their owners. Tests disable that to simulate other systems."""
    return sys.platform == "linux" and hasattr(os, "getuid") and hasattr(socket, "SO_PEERCRED") and find_spec("fcntl") is not None


def _is_runnable(program: Path, executable: str, apart: bool, name: str) -> bool:
    """Write the program that is launched. Return whether it may run: some folders for temporary files forbid it."""
    command = shlex.join((sys.executable, "-I", "-S", hand_over.__file__, name, "apart" if apart else "shared", executable))
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n', "utf-8")
    program.chmod(0o700)
    return bool(sys.executable) and os.access(program, os.X_OK)


def _port(line: socket.socket) -> socket.socket:
    """Ask for a port in the browser's network namespace. Raises OSError."""
    line.sendall(b"+")
    said, ancillary, _, _ = line.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
    found = array.array("i")
    for _, _, data in ancillary:
        found.frombytes(data)
    if not said or len(found) != 1:
        raise OSError(_GONE)
    return socket.socket(fileno=found[0])


def _exchange(line: socket.socket) -> tuple[bool, int, int, int, int]:
    """Return whether the browser has a network namespace, and the descriptors of driver and browser, to read from and to write to.

    Raises OSError.
    """
    import fcntl  # which Windows does not have

    is_apart, ancillary, _, _ = line.recvmsg(1, socket.CMSG_SPACE(8), socket.MSG_CMSG_CLOEXEC)
    driver = array.array("i")
    for _, _, data in ancillary:
        driver.frombytes(data)
    (commands, sent), (answered, answers) = os.pipe(), os.pipe()
    try:
        for each in (commands, answered):
            with suppress(OSError):
                fcntl.fcntl(each, fcntl.F_SETPIPE_SZ, _PIPE)
        line.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [commands, answers]))])
    finally:
        os.close(commands)
        os.close(answers)
    return is_apart == b"1", driver[0], driver[1], answered, sent
