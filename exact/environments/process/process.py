"""Guest processes at the far end of a channel: the protocols of process and launcher, and plain processes without a sandbox.

Threads for work that may block for long, beside the event loop.

CPU time of a process and its descendants, as the kernel reports it.

Stderr of a guest: the last lines for messages, and all of it for the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import subprocess
import threading
from asyncio.streams import StreamReaderProtocol
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, NamedTuple, Protocol, TypeVar

from exact.environments.process.guest import TOKEN
from exact.errors import EnvironmentFailure
from exact.machine import ScratchFolder, kill_group
from exact.text import inert

_INHERITED = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "DISPLAY", "XAUTHORITY", "LD_LIBRARY_PATH", "SSL_CERT_FILE"),
    *("XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "PLAYWRIGHT_BROWSERS_PATH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "no_proxy"),
)
"""Our environment variables that a guest inherits; keys and tokens are not among them. Its TMPDIR is a folder deleted when it ends."""
_READ_AHEAD = 1 << 20
"""Bytes of output read ahead."""
_GRACE, _KILL_TIMEOUT = 1.0, 10.0
"""Seconds that a guest has to end by itself after its stdin is closed, and that a killed one has to disappear."""


class GuestProcess(Protocol):
    """A running guest: a plain process, or a sandbox."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    @property
    def pid(self) -> int:
        """Process id."""
        ...

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        ...

    async def why(self) -> str:
        """Return how it ended and its last output, for messages. Called only when it has ended or was killed."""
        ...

    def kill(self) -> None:
        """Kill it at once, with all processes that it started."""
        ...

    async def end(self) -> None:
        """Let it end, with all processes that it started. Never raises; may be called twice."""
        ...


class Launcher(Protocol):
    """Starts guests: plain processes, or a sandbox's."""

    async def start(self, args: Sequence[str], env: Mapping[str, str]) -> GuestProcess:
        """Run a command with added environment variables. Raises EnvironmentFailure if it cannot be started."""
        ...


class ProcessLauncher:
    """Starts guests as plain processes, each in a separate session that ends with this process.

    That is guaranteed on Linux only. A guest also dies with the thread that starts it: start it in a thread that outlives it.
    """

    def __init__(self, *, log: Path | None = None, folder: Path | None = None) -> None:
        """Create a launcher.

        `log`: file that their stderr is appended to; by default it goes to the logger `exact.guest`. `folder`: working directory.
        """
        self._log, self._folder = log, folder

    async def start(self, args: Sequence[str], env: Mapping[str, str]) -> PlainProcess:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        scratch = ScratchFolder("guest")
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - asyncio starts them the same way
                list(args),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**inherited, "TMPDIR": str(scratch.folder("tmp")), **env, TOKEN: secrets.token_hex(16)},
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            scratch.close()
            raise EnvironmentFailure(f"{args[0]} cannot be started: {error.strerror}: name another interpreter") from error
        attaching = asyncio.ensure_future(PlainProcess.attached(process, self._log, scratch))
        try:
            return await asyncio.shield(attaching)
        except asyncio.CancelledError:
            guest_process = await attaching
            guest_process.kill()
            await guest_process.end()
            raise


class PlainProcess:
    """A guest without a sandbox. Made by ProcessLauncher."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: asyncio.StreamWriter,
        stdout: _InputPipe,
        stderr: _InputPipe,
        log: Path | None,
        scratch: ScratchFolder,
    ) -> None:
        self._process, self.stdin, self.stdout, self._scratch = process, stdin, stdout.reader, scratch
        self._inputs = (stdout.transport, stderr.transport)
        self._stderr = StderrReader(stderr.reader, process.pid, log)

    @classmethod
    async def attached(cls, process: subprocess.Popen[bytes], log: Path | None, scratch: ScratchFolder) -> PlainProcess:
        """Connect to the three pipes of a process. The guest owns the folder that its TMPDIR is in."""
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(lambda: StreamReaderProtocol(asyncio.StreamReader()), process.stdin)
        stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        return cls(process, stdin, await _open_input(process.stdout), await _open_input(process.stderr), log, scratch)

    @property
    def pid(self) -> int:
        """Process id, also of its session and process group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the process runs."""
        if self._process.returncode is not None:
            return False
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None  # not reaped: its id is not reused

    async def why(self) -> str:
        """Return how it ended, and the last line of its stderr."""
        await self.end()
        code = self._process.returncode
        status = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with status {code}"
        last = next((line.strip() for line in reversed(self._stderr.lines) if line.strip()), "")
        return f"{status}: {last}" if last else status

    def kill(self) -> None:
        """Kill its process group at once. Processes that left the group are killed by the guest's supervisor."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                kill_group(self.pid)

    async def end(self) -> None:
        """Close its stdin, wait briefly for all processes that have its stderr open, then kill and reap it.

        Those processes are itself, its supervisor and its children.
        """
        self.stdin.close()
        await self._stderr.end(_GRACE)
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, _KILL_TIMEOUT)
        await self._stderr.end(_GRACE)
        for transport in self._inputs:
            transport.close()
        await self._stderr.close()
        await asyncio.to_thread(self._scratch.close)
        await asyncio.sleep(0)  # transports close their pipes in the loop's next turn


class _InputPipe(NamedTuple):
    transport: asyncio.ReadTransport
    reader: asyncio.StreamReader


async def _open_input(pipe: IO[bytes]) -> _InputPipe:
    reader = asyncio.StreamReader(limit=_READ_AHEAD)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: StreamReaderProtocol(reader), pipe)
    return _InputPipe(transport, reader)


T = TypeVar("T")


def run_in_thread(work: Callable[[], T]) -> Future[T]:
    """Run a function in a separate thread, for which the interpreter's exit does not wait, and return its future."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # a caller that stops waiting does not cancel it

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 (raised in the caller)
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done


_PROC = Path("/proc")


def processor_seconds(pid: int, proc: Path = _PROC) -> float:
    """Return user and system seconds of a process and its descendants, ended ones included; 0 if this system does not report them."""
    ticks, waiting = 0, [pid]
    while waiting:
        here = proc / str(waiting.pop())
        try:
            fields = (here / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            for task in (here / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


_LINES, _LONGEST, _LOGGED, _ENDLESS = 200, 500, 16 << 20, 1 << 20
"""Lines retained for messages, and characters of each; bytes of a guest that are logged; bytes after which a line is cut."""

_logger = logging.getLogger("exact.guest")
_LOG: ContextVar[Path | None] = ContextVar("guest log", default=None)
_SCRUB: ContextVar[Callable[[str], str]] = ContextVar("guest log's scrubber", default=str)


@contextmanager
def log_stderr_to(path: Path, scrub: Callable[[str], str] = str) -> Iterator[None]:
    """Log the stderr of all guests started inside the block, and given no separate file, to a file that only its owner can read.

    `scrub` removes secrets from a line.
    """
    token, scrubbing = _LOG.set(path), _SCRUB.set(scrub)
    try:
        yield
    finally:
        _LOG.reset(token)
        _SCRUB.reset(scrubbing)


class StderrReader:
    """Reader of the stderr of one guest, or of a service beside a browser. It reads to the end, so that the guest never blocks."""

    def __init__(self, source: asyncio.StreamReader, pid: int, path: Path | None) -> None:
        """Start reading.

        `path`: file that each line is appended to, after `[pid]`. None: that of `log_stderr_to`, or else the logger `exact.guest`.
        """
        self._source, self._pid, self._path = source, pid, path or _LOG.get()
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._left, self._scrub = _LOGGED, _SCRUB.get()
        self._reading = asyncio.ensure_future(self._read())

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._lines)

    async def end(self, seconds: float) -> None:
        """Wait until every process has closed it, for at most `seconds`."""
        await asyncio.wait([self._reading], timeout=seconds)

    async def close(self) -> None:
        """Stop reading. May be called twice."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        rest = b""
        while chunk := await self._source.read(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _ENDLESS:
                lines, rest = [*lines, rest], b""
            self._add(lines)
        self._add([rest] if rest else [])

    def _add(self, lines: list[bytes]) -> None:
        for line in lines:
            text = line.decode(errors="replace").rstrip("\r")
            self._lines.append(text[:_LONGEST])
            if self._left > 0:
                self._left -= len(line) + 1
                self._write(f"[{self._pid}] {text}" if self._left > 0 else f"[{self._pid}] (the rest is left out)")

    def _write(self, line: str) -> None:
        if self._path is None:
            _logger.info(line)
            return
        try:
            with open(self._path, "a", encoding="utf-8", errors="replace", opener=_private) as file:
                file.write(f"{inert(self._scrub(line))}\n")
        except OSError as error:  # reading continues, or the guest would block
            self._left = 0
            _logger.warning(f"[{self._pid}] {self._path} is no longer written: {error.strerror}")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
