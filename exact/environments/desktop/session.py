"""A separate X display with buses, window manager and applications. Needs Xvfb, openbox and dbus-daemon."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from exact.environments.desktop import files
from exact.environments.desktop.account import HOME, initial_values
from exact.environments.desktop.tree import refuse_close_range
from exact.errors import EnvironmentFailure, UsageError
from exact.version import FIX, set_up

PROGRAMS = {
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "dbus-daemon": "dbus-daemon",
    "/usr/libexec/at-spi-bus-launcher": "at-spi2-core",
}
"""Programs that a desktop needs, with their Debian packages."""

_STARTUP_SECONDS = 20.0
"""Seconds until a part of the desktop must be up."""
_PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "EXACT_GUEST")
"""Our variables that applications see; the last one marks processes that end with us."""
_GRACE = 2.0
_LONGEST_SOCKET = 107
"""Maximum bytes of the name of a socket, on Linux (unix(7))."""


def missing() -> list[str]:
    """Return the Debian packages of missing programs."""
    return [package for program, package in PROGRAMS.items() if not shutil.which(program)]


class Session:
    """Processes and folders of one desktop. Not started until `start`."""

    def __init__(self, width: int, height: int, *, user: bool = False) -> None:
        """`user`: whether it runs in a sandbox as the user of `account`, with that user's home folder."""
        self.width, self.height, self._user = width, height, user
        self.base = Path(tempfile.mkdtemp(prefix="exact-desktop-"))
        self.home = HOME if user else self.base / "home"
        self.display = ""
        self._cleaner: subprocess.Popen[bytes] | None = None
        self._parts: list[subprocess.Popen[bytes]] = []
        self.applications: list[subprocess.Popen[bytes]] = []
        self.env: dict[str, str] = {}

    def start(self) -> None:
        """Start display, bus and window manager. Raises EnvironmentFailure, and UsageError if sockets would have too long names."""
        if lacking := missing():
            raise EnvironmentFailure(f"a desktop needs {', '.join(lacking)}: {set_up('--desktop', FIX)}")
        try:
            if self._user:
                refuse_close_range()
            self._display()
            self._check_sockets()
            self._bus()
            self._parts.append(self._run(["openbox", "--sm-disable", "--config-file", str(self.base / "openbox.xml")]))
            if self._user and shutil.which("tint2"):
                self._parts.append(self._run(["tint2", "-c", str(self.base / "tint2rc")]))
        except OSError as error:
            raise EnvironmentFailure(f"the desktop cannot be started: {error}") from error

    def launch(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start an application in the home folder. Raises EnvironmentFailure if there is no such program."""
        words = [word.replace("~", str(self.home), 1) if word.startswith("~") else word for word in command]
        try:
            return self.spawn(words)
        except OSError as error:
            raise EnvironmentFailure(f"{command[0]} cannot be started: {error.strerror}: install it, or correct the task") from error

    def spawn(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a program in the home folder. Raises OSError."""
        process = self._run(command, cwd=self.home)
        self.applications.append(process)
        return process

    def renew(self) -> None:
        """End all applications and their children, and make a fresh home folder."""
        self._end(self.applications)
        self.applications.clear()
        shutil.rmtree(self.home, ignore_errors=True)
        files.home(self.home, user=self._user)
        for command in initial_values() if self._user else ():
            subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, stdout=2, timeout=_STARTUP_SECONDS, check=False)

    @property
    def broken(self) -> str:
        """The part of the desktop that has ended, and how; empty while all run."""
        ended = next((part for part in self._parts if part.poll() is not None), None)
        return "" if ended is None else f"{Path(str(ended.args[0])).name} ended with status {ended.returncode}"  # type: ignore[index]

    def check(self) -> None:
        """Raise EnvironmentFailure if a part of the desktop has ended."""
        if self.broken:
            raise EnvironmentFailure(f"the desktop broke: {self.broken}: reset, and it is started anew")

    def stop(self) -> None:
        """End everything and remove the folders. May be called twice."""
        self._end([*self.applications, *reversed(self._parts)])
        if self._cleaner:
            self._cleaner.communicate()
            self._cleaner = None
        self.applications.clear()
        self._parts.clear()
        shutil.rmtree(self.base, ignore_errors=True)

    def _display(self) -> None:
        """Start the X server, which chooses a free number; only clients with the cookie may connect."""
        files.home(self.home, user=self._user)
        files.configuration(self.base, user=self._user)
        authority = self.base / "Xauthority"
        secret = files.cookie(authority)
        reading, writing = os.pipe()
        try:
            screen = f"{self.width}x{self.height}x24"
            command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", screen, "-nolisten", "tcp", "-noreset", "-dpi", "96"]
            passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
            self._parts.append(
                subprocess.Popen([*command, "-auth", str(authority)], env=passed, pass_fds=(writing,), start_new_session=True)
            )
            os.close(writing)
            number = self._number(reading)
        finally:
            os.close(reading)
        self.display = f":{number}"
        # An X server that is killed leaves these, and so would this process: they are removed when the pipe to this process closes.
        remove = ["/bin/sh", "-c", 'read _; rm -f "$@"', "sh", *map(str, files.display_files(self.display))]
        self._cleaner = subprocess.Popen(remove, env={}, stdin=subprocess.PIPE, start_new_session=True)
        files.admit(authority, str(number), secret)
        self.env = {**passed, **files.variables(self.base, self.display, user=self._user)}

    def _number(self, reading: int) -> int:
        output, end = b"", time.monotonic() + _STARTUP_SECONDS
        while not output.endswith(b"\n"):
            ready, _, _ = select.select([reading], [], [], max(0.0, end - time.monotonic()))
            part = os.read(reading, 64) if ready else b""
            if not part:
                raise EnvironmentFailure("Xvfb did not start: see its messages in the guest's log")
            output += part
        return int(output)

    def _check_sockets(self) -> None:
        """Raise UsageError if a socket of the two buses would have too long a name."""
        sockets = (self.base / "dbus-0123456789", Path(self.env["XDG_RUNTIME_DIR"], "at-spi", f"bus_{self.display[1:]}"))
        excess = max(len(os.fsencode(path)) for path in sockets) - _LONGEST_SOCKET
        if excess > 0:
            raise UsageError(f"{self.base} is {excess} bytes too long a name for the sockets of a desktop: set TMPDIR to a shorter folder")

    def _bus(self) -> None:
        command = ["dbus-daemon", "--nofork", "--print-address=1", f"--config-file={self.base / 'bus.conf'}"]
        bus = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, start_new_session=True)
        self._parts.append(bus)
        assert bus.stdout is not None
        with bus.stdout:
            ready, _, _ = select.select([bus.stdout], [], [], _STARTUP_SECONDS)
            address = bus.stdout.readline().decode().strip() if ready else ""
        if not address:
            raise EnvironmentFailure("dbus-daemon did not start: see its messages in the guest's log")
        self.env["DBUS_SESSION_BUS_ADDRESS"] = address

    def _run(self, command: Sequence[str], cwd: Path | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=self.env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)

    @staticmethod
    def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """Kill each process with its session: none of it is kept."""
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
