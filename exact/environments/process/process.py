"""Guest processes at the far end of a channel: the protocols of process and launcher, and plain processes without a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
from asyncio.streams import StreamReaderProtocol
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from exact.child import kill_group
from exact.environments.process.guest import TOKEN
from exact.environments.process.stderr import StderrReader
from exact.errors import EnvironmentFailure
from exact.scratch import ScratchFolder

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
        """Run a command with added environment variables. Raises EnvironmentFailure where it cannot be started."""
        ...


class ProcessLauncher:
    """Starts guests as plain processes, each in a session of its own that ends with this process.

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
