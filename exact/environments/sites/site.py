"""Sites outside the sandbox: how they are reached, who may log in, and the hooks by which an application is kept and brought back."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import urllib.error
import urllib.request
from asyncio.subprocess import DEVNULL, PIPE
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

import msgspec

from exact.child import Child
from exact.environments.process.thread import run_in_thread
from exact.errors import EnvironmentFailure, UsageError
from exact.safety import origin
from exact.task import Task

_SHOWN = 200
"""Characters of what a hook said, in messages."""
_LEFT: dict[Future[str], str] = {}
"""Calls that nobody waits for any more, each with the server that still answers it."""


class _Declared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what a task declares."""


class Hook(_Declared, frozen=True, kw_only=True):
    """A command, or an HTTP call. In arguments, address and body `{name}` is the snapshot's name and `{base}` the application's address."""

    command: tuple[str, ...] = ()
    """Program and arguments; no shell. It succeeds by ending with status 0."""
    url: str = ""
    """Address of a call instead; it succeeds with a status below 400."""
    method: str = "POST"
    headers: dict[str, str] = {}
    body: str = ""
    seconds: float = 60.0
    """How long it may take. What the page may take does not count."""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError("a hook is either a command or a url")

    async def call(self, role: str, **values: str) -> str:
        """Do it with these values; what it said: standard output or the response's text. `role` names it in EnvironmentFailure."""
        said = await (self._run(role, values) if self.command else self._ask(role, values))
        return said.strip()

    async def _ask(self, role: str, values: dict[str, str]) -> str:
        """In a thread, which nobody can stop: whoever gives up leaves it, and the next call of the same server waits for its end."""
        server = origin(_filled(self.url, values))
        try:
            async with asyncio.timeout(self.seconds):
                while left := [each for each, asked in list(_LEFT.items()) if asked == server]:
                    await asyncio.gather(*map(asyncio.wrap_future, left), return_exceptions=True)
                answer = run_in_thread(partial(self._request, role, values))
                try:
                    return await asyncio.wrap_future(answer)
                except asyncio.CancelledError:
                    _LEFT[answer] = server
                    answer.add_done_callback(_LEFT.pop)
                    raise
        except TimeoutError as error:
            raise EnvironmentFailure(f"the site's hook {role} did not end within {self.seconds:g} s") from error

    async def _run(self, role: str, values: dict[str, str]) -> str:
        program, *arguments = (_filled(each, values) for each in self.command)
        try:
            process = await Child.start(program, *arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True)
        except OSError as error:
            raise EnvironmentFailure(f"the site's hook {role} does not start: {error}") from error
        try:
            async with asyncio.timeout(self.seconds):
                said, complaint = await process.communicate()
        except TimeoutError as error:
            raise EnvironmentFailure(f"the site's hook {role} did not end within {self.seconds:g} s") from error
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            await process.end()
        if process.returncode:
            last = (complaint or said).decode(errors="replace").strip().splitlines()[-1:]
            raise EnvironmentFailure(f"the site's hook {role} ended with status {process.returncode}: {''.join(last)[:_SHOWN]}")
        return said.decode(errors="replace")

    def _request(self, role: str, values: dict[str, str]) -> str:
        body = _filled(self.body, values).encode() if self.body else None
        request = urllib.request.Request(_filled(self.url, values), body, self.headers, method=self.method)
        try:
            with urllib.request.urlopen(request, timeout=self.seconds) as response:
                return str(response.read().decode(errors="replace"))
        except urllib.error.HTTPError as error:
            with error:
                raise EnvironmentFailure(f"the site's hook {role} was answered with status {error.code}") from error
        except (OSError, http.client.HTTPException) as error:
            raise EnvironmentFailure(f"the site's hook {role} was not answered: {error or type(error).__name__}") from error


class Site(_Declared, frozen=True, kw_only=True):
    """An application outside that can be kept and brought back. With the browser's own checkpoint that makes whole environments of it."""

    base: str
    """Its address, as tasks and pages have it: `http://shop.test`."""
    reset: Hook
    """Bring it to the start of a task."""
    snapshot: Hook
    """Keep its present state under `{name}` (lower-case letters, digits, `_`); it goes on. `{base}`: which of its forks."""
    restore: Hook | None = None
    """Bring it back to `{name}`, any number of times."""
    fork: Hook | None = None
    """Start another instance of it at `{name}` and say its address, `http://127.0.0.1:5003`. Browsers know it by the name in `base`.
    Without this hook all branches share one instance: they take turns, and what one did is kept and brought back around another's turn."""
    drop: Hook | None = None
    """Nobody comes back to `{name}`."""
    end: Hook | None = None
    """Nobody uses the fork at `{base}` any more."""

    def __post_init__(self) -> None:
        if not origin(self.base):
            raise ValueError(f"base {self.base!r} is no address: write http://host")
        if self.fork is None and self.restore is None:
            raise ValueError("a site needs a hook restore, or fork")


class Account(_Declared, frozen=True, kw_only=True):
    """A log-in that one branch uses at a time."""

    name: str
    """Told in messages; not secret."""
    fields: dict[str, str]
    """What an agent may fill in, by a name in angle brackets: `fill [3] "<password>"`. A value `$NAME` is that environment variable's."""


class Outside(_Declared, frozen=True, kw_only=True):
    """How the outside looks from the host."""

    hosts: dict[str, str] = {}
    """Names of servers that have none, `{"shop.test": "127.0.0.1:43121"}`, or `address` alone: the port is then that of the URL."""
    trusted: tuple[str, ...] = ()
    """Certificates accepted although nobody known signed them: base64 SHA-256 of the public key (`openssl pkey -pubin -outform der`)."""
    site: Site | None = None
    accounts: tuple[Account, ...] = ()
    """Log-ins; where there are some, each open branch has one of its own, and more branches than these wait."""


def declared_outside(task: Task) -> Outside | None:
    """What a task declares of the outside: its metadata's `outside`, a JSON object with the fields of Outside. Raises UsageError."""
    text = task.metadata.get("outside")
    if text is None:
        return None
    try:
        return msgspec.json.decode(str(text), type=Outside)
    except msgspec.MsgspecError as error:
        raise UsageError(f"task {task.id} declares an outside that is none: {error}: see docs/design/worlds.md") from error


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
