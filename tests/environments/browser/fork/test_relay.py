"""The relay and the first process of an environment, without a sandbox: a plain process, and a stand-in for Chromium that echoes."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest

from exact.environments.browser.fork import init_process
from exact.environments.browser.fork.relay import Relay
from exact.environments.process import guest
from exact.environments.sandbox import static
from exact.errors import EnvironmentFailure
from exact.machine import Child

BROWSER = """
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
server = Server(("127.0.0.1", 0), Echo)
print("DevTools listening on ws://127.0.0.1:%d/devtools/browser/1" % server.server_address[1], file=sys.stderr, flush=True)
server.serve_forever()
"""

DEVTOOLS = """
import json, socketserver, struct
class Browser(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline() != b"\\r\\n":
            pass
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\\r\\n\\r\\n")
        while head := self.rfile.read(2):
            size = head[1] & 127
            size = struct.unpack("!H", self.rfile.read(2))[0] if size == 126 else size
            asked = json.loads(self.rfile.read(4 + size)[4:])
            text = json.dumps({"id": asked["id"], "result": {"method": asked["method"]}}).encode()
            self.wfile.write(bytes((129, len(text))) + text)
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
server = Server(("127.0.0.1", 0), Browser)
import sys
print("DevTools listening on ws://127.0.0.1:%d/devtools/browser/1" % server.server_address[1], file=sys.stderr, flush=True)
server.serve_forever()
"""


class Plain:
    """Stands in for a Sandbox: the same pipes, no walls."""

    def __init__(self, process: Child) -> None:
        assert process.stdin and process.stdout
        self.process, self.stdin, self.stdout = process, process.stdin, process.stdout

    async def why(self) -> str:
        return f"status {await self.process.wait()}"


@asynccontextmanager
async def plainly(**spec: object) -> AsyncIterator[Plain]:
    """Run the first process of an environment from a specification. Ending it ends its children, which a sandbox does otherwise."""
    command = (sys.executable, "-I", "-S", init_process.__file__, json.dumps({"services": [], **spec}))
    process = await Child.start(*command, stdin=-1, stdout=-1, process_group=0)
    plain = Plain(process)
    try:
        yield plain
    finally:
        plain.stdin.close()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.end()


@asynccontextmanager
async def relay_to(code: str = BROWSER) -> AsyncIterator[tuple[Relay, Plain]]:
    async with plainly(browser=[sys.executable, "-c", code]) as plain:
        relay = Relay(plain)  # type: ignore[arg-type]
        try:
            yield relay, plain
        finally:
            await relay.close()


KERNEL = 256 << 20
"""Bytes; the kernel holds fewer on the way to the browser and back, 36 MiB for each direction of three connections, and the pipes'."""


async def flooded(writer: asyncio.StreamWriter) -> int:
    """Return the number of bytes that were written until no more were accepted."""
    sent = 0
    with pytest.raises(TimeoutError):
        while sent < KERNEL:
            writer.write(bytes(1 << 20))
            sent += 1 << 20
            async with asyncio.timeout(1):
                await writer.drain()
    return sent


async def connected(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """Return a connection whose head was sent, and the head that the browser should get."""
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {parts.path} HTTP/1.1\r\n\r\n".encode())
    return reader, writer, b"GET /devtools/browser/1 HTTP/1.1\r\n\r\n"


async def test_bytes_go_both_ways_and_the_browser_sees_its_own_path() -> None:
    async with relay_to() as (relay, _):
        reader, writer, head = await connected(await relay.connect(seconds=20))
        assert await reader.readexactly(len(head)) == head
        many = bytes(range(256)) * 4096
        writer.write(many)
        assert await reader.readexactly(len(many)) == many
        writer.close()


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_that_is_being_made_as_the_port_is_closed_ends_too(turns: int) -> None:
    async with relay_to() as (relay, _):
        parts = urlsplit(await relay.connect(seconds=20))
        with socket.create_connection((parts.hostname, parts.port)) as late:  # in the kernel's hands; the loop has not heard of it
            late.sendall(f"GET {parts.path} HTTP/1.1\r\n\r\n".encode())
            for _ in range(turns):
                await asyncio.sleep(0)
            await relay.close()
            late.setblocking(False)
            with suppress(ConnectionError):
                assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(late, 1), 10) == b""


async def test_where_no_connection_can_be_taken_the_environment_is_lost_and_says_why() -> None:
    async with relay_to() as (relay, _):
        parts = urlsplit(await relay.connect(seconds=20))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with socket.socket() as client:
            free = os.dup(client.fileno())
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
            try:
                client.connect((parts.hostname, parts.port))
                assert "Too many open files" in await relay.loss(10)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_slow_reader_is_not_sent_more_and_gets_everything_later() -> None:
    async with relay_to() as (relay, _):
        reader, writer, head = await connected(await relay.connect(seconds=20))
        assert await reader.readexactly(len(head)) == head
        sent = await flooded(writer)
        assert not any(await reader.readexactly(sent))
        writer.close()


async def test_an_environment_whose_pipes_are_full_is_let_go() -> None:
    async with asyncio.timeout(60), relay_to() as (relay, _):
        _, writer, _ = await connected(await relay.connect(seconds=20))
        await flooded(writer)
        writer.transport.abort()


async def test_connections_do_not_mix() -> None:
    async with relay_to() as (relay, _):
        address = await relay.connect(seconds=20)
        ends = [await connected(address) for _ in range(3)]
        for number, (reader, writer, head) in enumerate(ends):
            writer.write(b"%d" % number)
            assert await reader.readexactly(len(head) + 1) == head + b"%d" % number
        for _, writer, _ in ends:
            writer.close()


async def test_a_further_connection_waits_while_the_environment_is_paused_and_ends_with_it() -> None:
    async with relay_to(DEVTOOLS) as (relay, _):
        await relay.connect(seconds=20)
        talk = await relay.talk()
        assert await talk.send("Browser.getVersion") == {"method": "Browser.getVersion"}
        await relay.hold()
        asking = asyncio.ensure_future(talk.send("Target.getTargets", {"filter": ["x" * 1000]}))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.shield(asking)
        await relay.release()
        assert await asking == {"method": "Target.getTargets"}
    with pytest.raises(EnvironmentFailure, match="the environment was let go"):
        await talk.send("Browser.getVersion")


async def test_a_conversation_with_a_browser_that_says_nothing_is_given_up() -> None:
    async with relay_to(BROWSER.replace("self.request.sendall(data)", "pass")) as (relay, _):
        await relay.connect(seconds=20)
        with pytest.raises(EnvironmentFailure, match=r"the browser did not answer within 0\.05 s"):
            await relay.talk(seconds=0.05)


async def test_a_paused_relay_sends_nothing_and_loses_nothing() -> None:
    async with relay_to() as (relay, _):
        reader, writer, head = await connected(await relay.connect(seconds=20))
        await reader.readexactly(len(head))
        await relay.hold()
        writer.write(b"held")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await reader.readexactly(1)
        await relay.release()
        assert await reader.readexactly(4) == b"held"
        writer.close()


@pytest.mark.parametrize("way", ["late", "cancelled"])
async def test_an_environment_that_does_not_come_to_rest_is_lost_at_once(way: str) -> None:
    async with relay_to() as (relay, plain):
        reader, writer, head = await connected(await relay.connect(seconds=20))
        await reader.readexactly(len(head))
        plain.process.send_signal(signal.SIGSTOP)
        holding = asyncio.ensure_future(relay.hold(seconds=0.1 if way == "late" else 20))
        await asyncio.sleep(0)
        if way == "cancelled":
            holding.cancel()
        with pytest.raises(EnvironmentFailure if way == "late" else asyncio.CancelledError):
            await holding
        plain.process.send_signal(signal.SIGCONT)
        assert relay.lost == "it did not come to rest"
        for ask in (relay.line.send("Browser.getVersion"), relay.hold()):
            with pytest.raises(EnvironmentFailure, match="the environment is gone: it did not come to rest"):
                await ask
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_an_environment_that_ends_while_paused_is_not_waited_for() -> None:
    async with relay_to() as (relay, plain):
        await relay.connect(seconds=20)
        plain.process.send_signal(signal.SIGSTOP)
        holding = asyncio.ensure_future(relay.hold(seconds=60))
        await asyncio.sleep(0)
        plain.process.kill()
        with pytest.raises(EnvironmentFailure, match="the environment is gone: status -9"):
            async with asyncio.timeout(20):
                await holding


async def test_after_a_restore_the_connections_of_before_are_dropped() -> None:
    async with relay_to() as (relay, plain):
        reader, writer, head = await connected(await relay.connect(seconds=20))
        await reader.readexactly(len(head))
        await relay.hold()
        relay._reading.cancel()
        after = Relay(plain)  # type: ignore[arg-type]
        fresh, other, _ = await connected(await after.connect(path=relay.path, seconds=20))
        assert await fresh.readexactly(len(head)) == head
        for each in (writer, other):
            each.close()
        await after.close()


@pytest.mark.parametrize("code", ["import sys; sys.exit('no screen')", "print('hello')"])
async def test_a_browser_that_does_not_start_is_named(code: str) -> None:
    async with relay_to(code) as (relay, _):
        with pytest.raises(EnvironmentFailure, match=r"does not start: (no screen|it says nothing)"):
            await relay.connect(seconds=20)


async def test_a_browser_that_dies_closes_the_connections_and_is_named() -> None:
    dying = BROWSER.replace("self.request.sendall(data)", "__import__('os')._exit(9)")
    async with relay_to(dying) as (relay, _):
        reader, writer, _ = await connected(await relay.connect(seconds=20))
        with suppress(ConnectionError):
            assert await reader.read() == b""
        while not relay.lost:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)
        assert relay.lost.startswith("the browser ended with status")
        writer.close()


@pytest.mark.parametrize("said", [b"\0\0\0\0\xff\xff\xff\xff", b"\0\0\0\0\x04\0\0\0junk"])
async def test_a_guest_that_does_not_keep_to_the_protocol_is_given_up(said: bytes) -> None:
    process = await Child.start(sys.executable, "-c", f"import os; os.write(1, {said!r}); os.read(0, 1)", stdin=-1, stdout=-1)
    relay = Relay(Plain(process))  # type: ignore[arg-type]
    with pytest.raises(EnvironmentFailure, match="does not keep to the protocol"):
        await relay.connect(seconds=20)
    assert process.stdin
    process.stdin.close()
    await process.wait()
    await relay.close()


@pytest.mark.parametrize("script", [guest, init_process, static], ids=lambda module: module.__name__.rpartition(".")[2])
def test_code_inside_the_sandbox_is_python_3_9_with_the_standard_library_only(script: ModuleType) -> None:
    assert script.__file__
    tree = ast.parse(Path(script.__file__).read_text(), feature_version=(3, 9))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
