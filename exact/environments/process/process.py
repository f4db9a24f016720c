"""Processes at the far end of a channel: what one is, what starts one, and the plain form without a sandbox."""

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

from exact.environments.process.guest import TOKEN
from exact.environments.process.stderr import StderrReader
from exact.errors import EnvironmentFailure
from exact.scratch import ScratchFolder

_KEPT = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "DISPLAY", "XAUTHORITY", "LD_LIBRARY_PATH", "SSL_CERT_FILE"),
    *("XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "PLAYWRIGHT_BROWSERS_PATH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "no_proxy"),
)
"""Variables of ours that a guest sees; keys and tokens are not among them. Its TMPDIR is a folder that goes when it ends."""
_AHEAD = 1 << 20
"""Bytes read ahead of what the guest says."""
_GRACE, _PATIENCE = 1.0, 10.0
"""Seconds in which a guest whose stdin is closed may end by itself, and until a killed one is gone."""


class GuestProcess(Protocol):
    """A running guest: a plain process, or a sandbox."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    @property
    def pid(self) -> int: ...

    @property
    def alive(self) -> bool: ...

    async def why(self) -> str:
        """The last thing it said before it ended, for messages. Called only when it ended or was killed."""
        ...

    def kill(self) -> None:
        """End it at once, with all it started."""
        ...

    async def end(self) -> None:
        """Let it go, and all that it started. Never raises; may be called twice."""
        ...


class Launcher(Protocol):
    """Starts guests."""

    async def start(self, args: Sequence[str], env: Mapping[str, str]) -> GuestProcess:
        """Run a command with these variables added. Raises EnvironmentFailure."""
        ...


class ProcessLauncher:
    """Starts guests as plain processes, each in a session of its own that ends with this process. Linux; elsewhere with less certainty.

    A guest also dies with the thread that starts it: start them where your event loop lives as long as they do.
    """

    def __init__(self, *, log: Path | None = None, folder: Path | None = None) -> None:
        """`log`: a file that their stderr is appended to; without one it goes to the logger `exact.guest`. `folder`: where they work."""
        self._log, self._folder = log, folder

    async def start(self, args: Sequence[str], env: Mapping[str, str]) -> PlainProcess:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        room = ScratchFolder("guest")
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - asyncio starts them the same way
                list(args),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**kept, "TMPDIR": str(room.folder("tmp")), **env, TOKEN: secrets.token_hex(16)},
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            room.close()
            raise EnvironmentFailure(f"{args[0]} cannot be started: {error.strerror}: name another interpreter") from error
        attaching = asyncio.ensure_future(PlainProcess.attached(process, self._log, room))
        try:
            return await asyncio.shield(attaching)
        except asyncio.CancelledError:
            started = await attaching
            started.kill()
            await started.end()
            raise


class PlainProcess:
    """A guest without a sandbox. Made by Processes."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: asyncio.StreamWriter,
        stdout: _InputPipe,
        stderr: _InputPipe,
        log: Path | None,
        room: ScratchFolder,
    ) -> None:
        self._process, self.stdin, self.stdout, self._room = process, stdin, stdout.reader, room
        self._hearing = (stdout.transport, stderr.transport)
        self._stderr = StderrReader(stderr.reader, process.pid, log)

    @classmethod
    async def attached(cls, process: subprocess.Popen[bytes], log: Path | None, room: ScratchFolder) -> PlainProcess:
        """Take over its three pipes, and the room that its TMPDIR is in."""
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(lambda: StreamReaderProtocol(asyncio.StreamReader()), process.stdin)
        stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        return cls(process, stdin, await _open_input(process.stdout), await _open_input(process.stderr), log, room)

    @property
    def pid(self) -> int:
        """Also of its session and process group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        if self._process.returncode is not None:
            return False
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None  # not reaped: its number stays ours

    async def why(self) -> str:
        """How it ended, and the last line of its stderr."""
        await self.end()
        code = self._process.returncode
        status = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with status {code}"
        said = next((line.strip() for line in reversed(self._stderr.lines) if line.strip()), "")
        return f"{status}: {said}" if said else status

    def kill(self) -> None:
        """End its group at once. What left the group is ended by the guest's warden."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Close its stdin, wait a little for all that hold its stderr (itself, its warden, what it started), kill what is left, reap it."""
        self.stdin.close()
        await self._stderr.end(_GRACE)
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, _PATIENCE)
        await self._stderr.end(_GRACE)
        for transport in self._hearing:
            transport.close()
        await self._stderr.close()
        await asyncio.to_thread(self._room.close)
        await asyncio.sleep(0)  # transports close their pipes in the loop's next turn


class _InputPipe(NamedTuple):
    transport: asyncio.ReadTransport
    reader: asyncio.StreamReader


async def _open_input(pipe: IO[bytes]) -> _InputPipe:
    reader = asyncio.StreamReader(limit=_AHEAD)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: StreamReaderProtocol(reader), pipe)
    return _InputPipe(transport, reader)
