"""The first process in the sandbox of a browser environment: it starts the services, then Chromium, then relays bytes.

It runs as a script of an interpreter that may lack `exact`: standard library only, Python 3.9 and later. Its one argument is a JSON
object: `{"services": [...], "links": {path: target}, "masked": [folders...], "browser": [program, arguments...], "proxy_port": port}`.
Chromium uses that port of the loopback as its SOCKS proxy; 0 means that there is none.

Frames go over stdin and stdout: connection (4 bytes), length (4 bytes), little-endian, then that many bytes, at most 64 KiB. A connection
begins with its first frame and ends with an empty one. Connection 0 is control, in JSON. Messages from the host: `hold` (send nothing until
`go`, so that a checkpoint cuts no frame), `anew` (after a restore: drop the old connections and their held frames), `digest`
(of a file in DOWNLOADS, which is deleted then). Messages to the host: `made` with the files that services made in masked folders, `ready`
with the path of Chromium's WebSocket, `held`, `failed`, `died`, `digest` with a file's name, size and SHA-256. Connection LINE outlives a
restore.

Connections at the proxy port have numbers from 2**31 and begin with `open` to the host, which speaks SOCKS on them. Neither side has more
than WINDOW bytes of one in flight: the receiver acknowledges with `took` the bytes that it has handed on, so a connection that is not read
blocks no other.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import http.client
import json
import os
import queue
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

FRAME = 65536
WINDOW = 4 * FRAME
OUTWARD = 1 << 31
LINE = OUTWARD - 1
DOWNLOADS = "/tmp/exact-downloads"
_POLL = 0.02
"""Seconds between two checks whether a service is ready."""
_LAST_LINES, _LAST_CHARACTERS = 6, 400
"""Lines of a service's output in messages, and characters of each."""
_MADE, _WALKED = 200, 2000
"""Limit of the files that services made in hidden folders: of those reported, and of the names examined."""
_LISTENING = "0A"
"""State of a listening socket in /proc/net/tcp."""


class HostPipe:
    """The frames to the host; whole ones only, and none while held."""

    def __init__(self) -> None:
        self._lock, self._descriptor = threading.Lock(), os.dup(1)
        os.dup2(2, 1)  # the output of a service is log

    def send(self, ident: int, data: bytes) -> None:
        with self._lock:
            self._write(ident, data)

    def send_of(self, end: ProxyConnection, data: bytes, **message: object) -> None:
        """Send a frame of a connection, or a message about it; nothing if it was dropped while this was held."""
        with self._lock:
            if end.open:
                self._write(0 if message else end.ident, json.dumps(message).encode() if message else data)

    def control(self, **message: object) -> None:
        self.send(0, json.dumps(message).encode())

    def hold(self) -> None:
        self._lock.acquire()
        self._write(0, b'{"held": true}')

    def go(self) -> None:
        self._lock.release()

    def _write(self, ident: int, data: bytes) -> None:
        view = memoryview(struct.pack("<II", ident, len(data)) + data)
        while view:
            view = view[os.write(self._descriptor, view) :]


class ProxyConnection:
    """One connection from the browser to the outside: a socket in the sandbox, frames to the host."""

    def __init__(self, ident: int, sock: socket.socket, out: HostPipe) -> None:
        self.ident, self.open = ident, True
        self._sock, self._out = sock, out
        self._given: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._free, self._room = WINDOW, threading.Condition()

    def begin(self) -> None:
        for work in (self._pump, self._deliver):
            threading.Thread(target=work, daemon=True).start()

    def give(self, data: bytes) -> None:
        """Queue bytes from the host, empty at the end. At most WINDOW bytes are queued."""
        self._given.put(data)

    def took(self, size: int) -> None:
        """Take the acknowledgement that the host has handed on `size` bytes."""
        with self._room:
            self._free += size
            self._room.notify()

    def drop(self) -> None:
        self.open = False
        self.give(b"")
        self.took(WINDOW)
        close(self._sock)

    def _pump(self) -> None:
        self._out.send_of(self, b"", open=self.ident)
        data = b"-"
        while data and self.open:
            with self._room:
                while not self._free:
                    self._room.wait()
            try:
                data = self._sock.recv(min(FRAME, self._free))
            except OSError:
                data = b""
            with self._room:
                self._free -= len(data)
            self._out.send_of(self, data)

    def _deliver(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._given.get():
                self._sock.sendall(data)
                self._out.send_of(self, b"", took=self.ident, bytes=len(data))
        close(self._sock)


class ProxyPort:
    """The port that Chromium uses as its proxy."""

    def __init__(self, out: HostPipe) -> None:
        self.out, self.ends = out, dict[int, ProxyConnection]()

    def listen(self, port: int) -> None:
        server = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()

    def hear(self, ident: int, data: bytes) -> None:
        end = self.ends.get(ident) if data else self.ends.pop(ident, None)
        if end is not None:
            end.give(data)

    def took(self, ident: int, size: int) -> None:
        if ident in self.ends:
            self.ends[ident].took(size)

    def drop(self) -> None:
        """End all connections. The browser makes new ones as soon as the first one ends."""
        for ident in list(self.ends):
            self.ends.pop(ident).drop()

    def _accept(self, server: socket.socket) -> None:
        ident = OUTWARD
        while True:
            sock, _ = server.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ident += 1
            end = self.ends[ident] = ProxyConnection(ident, sock, self.out)
            end.begin()


class ServiceOutput:
    """Output of a service: it is passed on to the log, and its last lines are kept for messages."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=4 * _LAST_LINES)
        self._reading = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._reading.start()

    def last(self) -> str:
        """Return the last lines in the form in which they end a message. Waits a moment for a service that has just ended."""
        self._reading.join(1.0)
        return last_lines(self._lines)

    def _read(self, stream: IO[bytes]) -> None:
        while line := stream.readline(FRAME):
            with contextlib.suppress(OSError):
                os.write(2, line)
            self._lines.append(line.decode("utf-8", "replace"))


class Supervisor:
    """Starts and watches the processes of the environment, and relays the connections to its browser."""

    def __init__(self, out: HostPipe) -> None:
        self.out, self.proxy = out, ProxyPort(out)
        self.connections: dict[int, socket.socket] = {}
        self.names: dict[int, str] = {}
        self.outputs: dict[int, ServiceOutput] = {}
        self.address, self.path = ("", 0), ""

    def begin(self, spec: dict[str, Any]) -> None:
        for path, target in spec.get("links", {}).items():
            make_link(path, target)
        for service in spec["services"]:
            self.serve(service)
        if made := made_files(spec.get("masked", ())):
            self.out.control(made=made)
        if spec.get("proxy_port"):
            self.proxy.listen(spec["proxy_port"])
        self.browse(spec["browser"])
        threading.Thread(target=self.reap, daemon=True).start()
        self.ready()

    def ready(self) -> None:
        self.out.control(ready=self.path)

    def serve(self, service: dict[str, Any]) -> None:
        name = " ".join(service["command"])
        env = {**os.environ, **service["env"]}
        try:
            process = subprocess.Popen(
                service["command"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                preexec_fn=enter_service(service),
            )  # fmt: skip
        except subprocess.SubprocessError as error:
            where = f"{service['folder']} as user {service['user'][0]}"
            raise RuntimeError(f"the service `{name}` cannot enter {where}: is the folder there, and visible in the sandbox?") from error
        except OSError as error:
            raise RuntimeError(f"the service `{name}` does not start: {error}: is it hidden in the sandbox?") from error
        assert process.stdout is not None
        self.names[process.pid] = name
        output = self.outputs[process.pid] = ServiceOutput(process.stdout)
        end, before = time.monotonic() + service["seconds"], listening_ports()
        while reason := unanswered(service["ready_url"]):
            if process.poll() is not None:
                foreground = "" if process.returncode else " (a service stays in the foreground)"
                ended = f"the service `{name}` ended with status {process.returncode} before it was ready{foreground}"
                raise RuntimeError(ended + output.last())
            if time.monotonic() > end:
                late = f"the service `{name}` did not answer at {service['ready_url']} within {service['seconds']:g} s: {reason}"
                ports = ", ".join(map(str, sorted(listening_ports() - before)))
                raise RuntimeError(f"{late}{ports and f'; it listens at port {ports}'}{output.last()}")
            time.sleep(_POLL)

    def browse(self, command: list[str]) -> None:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.names[process.pid] = "the browser"
        said: list[str] = []
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line.decode("utf-8", "replace").strip())
            found = re.search(r"DevTools listening on ws://([\d.]+):(\d+)(\S+)", said[-1])
            if found:
                self.address, self.path = (found.group(1), int(found.group(2))), found.group(3)
                threading.Thread(target=drain, args=(process.stderr,), daemon=True).start()
                return
        raise RuntimeError(f"{command[0]} does not start: {said[-1] if said else 'it says nothing'}")

    def reap(self) -> None:
        """Wait for every process that ends, as the first process must, and report those that were started here."""
        while True:
            try:
                pid, status = os.wait()
            except ChildProcessError:
                return
            if pid in self.names:
                last = self.outputs[pid].last() if pid in self.outputs else ""
                self.out.control(
                    died=self.names[pid], status=os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status), last=last
                )

    def relay(self) -> None:
        while True:
            ident, size = struct.unpack("<II", read(8))
            data = read(size)
            if ident == 0:
                self.obey(json.loads(data))
            elif ident & OUTWARD:
                self.proxy.hear(ident, data)
            else:
                self.forward(ident, data)

    def obey(self, message: dict[str, Any]) -> None:
        order = message["do"]
        if order == "took":
            self.proxy.took(message["end"], message["bytes"])
            return
        if order == "digest":
            threading.Thread(target=self.digest, args=(message["file"],), daemon=True).start()
            return
        if order == "hold":
            self.out.hold()
            return
        if order == "anew":
            self.drop()
        self.out.go()
        if order == "anew":
            self.ready()

    def digest(self, name: str) -> None:
        path, found = Path(DOWNLOADS) / Path(name).name, hashlib.sha256()
        size = -1
        with contextlib.suppress(OSError):
            with path.open("rb") as file:
                for part in iter(lambda: file.read(FRAME), b""):
                    found.update(part)
            size = path.stat().st_size
            path.unlink()
        self.out.control(digest=name, size=size, sha256=found.hexdigest())

    def drop(self) -> None:
        retained = {LINE: self.connections[LINE]} if LINE in self.connections else {}
        for ident in [each for each in self.connections if each != LINE]:
            close(self.connections[ident])
        self.connections = retained
        self.proxy.drop()

    def forward(self, ident: int, data: bytes) -> None:
        sock = self.connections.get(ident)
        if not data:
            if sock is not None:
                del self.connections[ident]
                close(sock)
            return
        try:
            if sock is None:
                sock = self.connections[ident] = socket.create_connection(self.address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.pump, args=(ident, sock), daemon=True).start()
            sock.sendall(data)
        except OSError:
            self.connections.pop(ident, None)
            self.out.send(ident, b"")

    def pump(self, ident: int, sock: socket.socket) -> None:
        while True:
            try:
                data = sock.recv(FRAME)
            except OSError:
                data = b""
            if self.connections.get(ident) is not sock:
                return
            self.out.send(ident, data)
            if not data:
                return


def enter_service(service: dict[str, Any]) -> Callable[[], None]:
    """Return the function that a service's process runs first: it enters the root and folder, and becomes the user."""
    root, folder, (uid, gid) = service["root"], service["folder"], service["user"]

    def enter() -> None:
        if root:
            os.chroot(root)
        os.chdir(folder)
        if uid or gid:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)

    return enter


def make_link(path: str, target: str) -> None:
    """Make a symbolic link, with the folders that it lies in, unless there is something at its path."""
    if not os.path.lexists(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).symlink_to(target)


def made_files(folders: Iterable[str]) -> list[str]:
    """Return files that services made in folders whose contents on the host are hidden, at most _MADE of them."""
    found: list[str] = []
    left = [folder for folder in folders if Path(folder).is_dir()]
    seen = 0
    while left and seen < _WALKED and len(found) < _MADE:
        folder = left.pop()
        device = os.lstat(folder).st_dev
        for entry in os.scandir(folder):
            seen += 1
            if entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_dev == device:
                left.append(entry.path)
            elif entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_dev == device:
                found.append(entry.path)
    return found[:_MADE]


def last_lines(lines: Iterable[str]) -> str:
    """Return the last lines of a service's output, in the form in which they end a message."""
    plain = (re.sub(r"\x1b\[[0-9;]*m|[^\x20-\x7e\xa0-\U0010ffff\t]", "", line) for line in lines)
    found = [line.rstrip()[:_LAST_CHARACTERS] for line in plain if line.strip()][-_LAST_LINES:]
    return "".join(f"\n    {line}" for line in found or ["(it printed nothing)"])


def unanswered(url: str) -> str:
    """Return the reason if a URL does not answer with a status below 500; empty if it does. No proxy is used."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5):
            return ""
    except urllib.error.HTTPError as error:
        return f"status {error.code}" if error.code >= 500 else ""
    except urllib.error.URLError as error:
        return str(error.reason)
    except http.client.HTTPException:
        return "what answers does not speak HTTP"
    except OSError as error:
        return str(error) or type(error).__name__


def listening_ports() -> set[int]:
    """Return the TCP ports at which any process of the sandbox listens."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING:
                    found.add(int(fields[1].rpartition(":")[2], 16))
    return found


def drain(stream: IO[bytes]) -> None:
    for _ in stream:
        pass


def close(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            os._exit(0)  # the host has closed this environment
        data += more
    return data


def main() -> None:
    out = HostPipe()
    supervisor = Supervisor(out)
    try:
        supervisor.begin(json.loads(sys.argv[1]))
    except (OSError, RuntimeError) as error:
        out.control(failed=str(error))
        os._exit(1)
    supervisor.relay()


if __name__ == "__main__":
    main()
