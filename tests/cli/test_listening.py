"""Servers of commands beside clients that hold connections, send without end, or are pages of other servers."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra `live` is not installed")

from exact.cli import listening
from exact.origins import SameOrigin

Message = MutableMapping[str, Any]


async def echo_length(scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> None:
    """Answer with the length of the request's body."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


@contextmanager
def served(app: Any = echo_length) -> Iterator[int]:
    """Serve an application in a thread, and yield its port."""
    with listening.listen("127.0.0.1", 0) as open_socket:
        server = listening.server(app, log_level="critical", lifespan="off", ws="none")
        thread = threading.Thread(target=server.run, kwargs={"sockets": [open_socket]})
        thread.start()
        try:
            yield open_socket.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def asked(port: int, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, bytes]:
    """Return status and body of one answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        try:
            connection.request(method, "/", body, named, encode_chunked="Transfer-Encoding" in named)
        except ConnectionError:
            return 0, b""  # the server closed it while the body was sent
        answer = connection.getresponse()
        return answer.status, answer.read()


def ended_after(connection: socket.socket, *, dribbled: bytes = b"") -> float:
    """Return the seconds after which the server ends a connection on which a byte is sent again and again."""
    began = time.monotonic()
    connection.settimeout(0.05)
    while time.monotonic() - began < 20:
        try:
            if dribbled:
                connection.send(dribbled)
            if not connection.recv(100):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("begun", "dribbled"),
    [
        (b"", b""),
        (b"GET / HT", b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"a"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n", b"a"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nX: ", b"a"),
    ],
    ids=["nothing", "half a line", "a head without end", "a body without end", "a second head without end"],
)
def test_a_request_that_does_not_arrive_is_ended(monkeypatch: pytest.MonkeyPatch, begun: bytes, dribbled: bytes) -> None:
    monkeypatch.setattr(listening, "REQUEST_SECONDS", 0.5)
    with served() as port, socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(begun)
        if begun.startswith(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        assert ended_after(connection, dribbled=dribbled) < 5


def test_connections_that_stay_open_do_not_use_up_the_files_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 5)
    monkeypatch.setattr(listening, "REQUEST_SECONDS", 1.0)
    with served() as port, ExitStack() as held:
        opened = [held.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(9)]
        for refused in opened[5:]:
            refused.settimeout(5)
            assert refused.recv(100).startswith(b"HTTP/1.1 503")
        assert ended_after(opened[0]) < 5
        assert asked(port)[0] == 200, "the connections that were held are closed, and there is room again"


@pytest.mark.parametrize("headers", [{}, {"Transfer_Encoding": "chunked"}])
def test_a_body_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]) -> None:
    monkeypatch.setattr(listening, "LARGEST_BODY", 100_000)
    with served() as port:
        body = (b"x" * 10_000 for _ in range(1_000)) if headers else b"x" * 10_000_000
        assert asked(port, "POST", body, **headers)[0] in (0, 413)
        assert asked(port, "POST", b"x" * 150_000, **headers)[0] in (0, 413)
        assert asked(port, "POST", b"x" * 50_000) == (200, b"50000")


OWN = "http://127.0.0.1"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "trainer:8000"}, 403),
        ({"Host": "localhost:8000"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        ({"Host": "own.test:8000"}, 200),
        ({"Host": "OWN.test."}, 200),
        ({"Host": "localhost.:8000"}, 200),
        ({"Host": "[::ffff:127.0.0.1]:8000"}, 200),
        ({"Host": "evil.test"}, 403),
        ({"Host": "127.0.0.1.evil.test:8000"}, 403),
        ({"Host": "localhost@evil.test"}, 403),
        ({"Host": "evil.test@localhost"}, 403),
        ({"Host": "localhost/.evil.test"}, 403),
        ({"Host": "93.184.216.34"}, 403),
        ({"Host": "0.0.0.0:8000"}, 403),
        ({"Host": "[2606:4700::1111]:8000"}, 403),
        ({"Host": ""}, 403),
        ({"Sec_Fetch_Site": "none"}, 200),
        ({"Origin": OWN, "Host": "127.0.0.1"}, 200),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://evil.test:8000", "Host": "evil.test:8000"}, 403),
        ({"Sec_Fetch_Site": "same-origin", "Host": "evil.test:8000"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Host": "127.0.0.1"}, 403),
    ],
)
def test_no_page_of_another_server_is_answered(headers: dict[str, str], status: int) -> None:
    with served(SameOrigin(echo_length, ["own.test"])) as port:
        assert asked(port, "POST", b"{}", **headers)[0] == status
        assert asked(port, **headers)[0] == status


@pytest.mark.parametrize("head", [b"HTTP/1.0\r\n", b"HTTP/1.1\r\n", b"HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n"])
def test_a_request_without_one_host_is_refused(head: bytes) -> None:
    with served(SameOrigin(echo_length)) as port, socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"GET / " + head + b"\r\n")
        assert connection.recv(100).split()[1] in (b"400", b"403")


@pytest.mark.parametrize(
    ("host", "accepted"),
    [
        ("10.0.0.5:8000", True),
        ("trainer:8000", True),
        ("[fe80::1]", True),
        ("own.test", True),
        ("evil.test", False),
        ("10.0.0.5.evil.test", False),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_at_an_address_of_a_network_names_that_anybody_can_point_here_are_refused(host: str, accepted: bool, kind: str) -> None:
    reached, sent = list[str](), list[dict[str, object]]()

    async def app(scope: object, receive: object, send: object) -> None:
        reached.append(host)

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    scope = {"type": kind, "server": ("10.0.0.5", 8000), "headers": [(b"host", host.encode())]}
    await SameOrigin(app, ["Own.test"])(scope, receive, send)
    assert bool(reached) is accepted and bool(sent) is not accepted
