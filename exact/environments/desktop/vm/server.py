"""OSWorld's interface of a machine over HTTP, on the loopback of the desktop."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Callable, Sequence
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from exact.environments.desktop.session import DesktopSession
from exact.environments.desktop.vm.commands import Json
from exact.environments.desktop.vm.machine import Machine, VmReply, VmRequest, json_reply, text_reply
from exact.errors import EnvironmentFailure
from exact.origins import is_own_host

PORT = 5000
"""The port at which `desktop_env` looks for a machine."""
_BODY = 1 << 30
"""Maximum bytes of a request."""
_POLL = 0.1


class VmServer:
    """The server. It runs in separate threads until it is closed."""

    def __init__(self, machine: Machine, port: int = PORT) -> None:
        """Begin to answer. `port`: 0 for any free one. Raises EnvironmentFailure if it is in use."""
        self.machine = machine

        class Handler(_Handler):
            routes = machine.routes

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise EnvironmentFailure(f"port {port} of the desktop cannot be served: {error.strerror}") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.machine.close()


def serve(session: DesktopSession, port: int = PORT) -> VmServer:
    """Serve a desktop to `desktop_env`. Raises EnvironmentFailure."""
    machine = Machine(session)
    try:
        return VmServer(machine, port)
    except EnvironmentFailure:
        machine.close()
        raise


class _Handler(BaseHTTPRequestHandler):
    routes: dict[tuple[str, str], Callable[[VmRequest], VmReply]]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the guest's log is for faults."""

    def _answer(self, method: str) -> None:
        given = self.headers.get("Content-Length") or "0"
        route = self.routes.get((method, urllib.parse.urlsplit(self.path).path))
        is_of_a_page = "Origin" in self.headers or "Sec-Fetch-Site" in self.headers  # browsers send them with all that changes something
        if is_of_a_page or not is_own_host(",".join(self.headers.get_all("Host", []))):
            self.close_connection = True
            reply = text_reply("requests of web pages are refused", 403)
        elif not given.isdecimal() or int(given) > _BODY:
            self.close_connection = True
            reply = text_reply(f"the request's length is no number up to {_BODY}", 413)
        else:
            reply = self._reply(route, self.rfile.read(int(given)))
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def _reply(self, route: Callable[[VmRequest], VmReply] | None, body: bytes) -> VmReply:
        if route is None:
            return json_reply({"error": f"{self.path} is not served"}, 404)
        try:
            return route(read_request(str(self.headers.get("Content-Type") or ""), body))
        except ValueError as error:
            return json_reply({"status": "error", "message": f"the request cannot be read: {error}"}, 400)
        except (EnvironmentFailure, OSError) as error:
            return json_reply({"status": "error", "message": str(error)}, 500)


def read_request(kind: str, body: bytes) -> VmRequest:
    """Return the fields and files of a request by its content type. Raises ValueError."""
    if kind.startswith("multipart/form-data"):
        return _multipart(BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode("latin-1") + body))
    if kind.startswith("application/x-www-form-urlencoded"):
        return VmRequest(dict(urllib.parse.parse_qsl(body.decode())), {})
    found = json.loads(body) if body.strip() else {}
    if not isinstance(found, dict):
        raise ValueError("a JSON object is expected")
    return VmRequest(found, {})


def _multipart(message: Message) -> VmRequest:
    fields, files = Json(), dict[str, bytes]()
    parts: Sequence[Any] = message.get_payload() if message.is_multipart() else []  # type: ignore[assignment]
    for part in parts:
        name = str(part.get_param("name", "", "content-disposition"))
        content = part.get_payload(decode=True) or b""
        if part.get_filename() is None:
            fields[name] = content.decode("utf-8", "replace")
        else:
            files[name] = content
    return VmRequest(fields, files)
