"""Sites outside the sandbox: host names, log-ins, and the hooks by which the state of an application is saved and restored."""

from __future__ import annotations

import asyncio
import http.client
import shlex
import urllib.error
from asyncio.subprocess import DEVNULL, PIPE
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import msgspec

from exact.config.aliases import LONGEST
from exact.environments.process.process import run_in_thread
from exact.errors import EnvironmentFailure, UsageError
from exact.machine import Child, kill_group
from exact.origins import fetch, origin
from exact.task import Task

_MESSAGE_LENGTH = 200
"""Characters of a hook's output in messages."""
_MOST_REPLY = 1 << 20
"""Bytes of a hook's output that are kept, and maximum bytes of its response."""
_ABANDONED: dict[Future[str], str] = {}
"""Calls that were cancelled or timed out, each with the server that still handles it."""


class _Declaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of a task's declarations in its metadata."""


class Hook(_Declaration, frozen=True, kw_only=True):
    """A command or an HTTP request.

    In arguments, address and body, `{name}` is the snapshot's name and `{base}` the application's address.
    """

    command: tuple[str, ...] = ()
    """Program and arguments, without a shell. Success is exit status 0."""
    folder: str = ""
    """Working directory of the command. Empty: that of this process; for a site file's hooks, the file's folder."""
    url: str = ""
    """Address of a request, instead of a command. Success is a status below 400."""
    method: str = "POST"
    """HTTP method."""
    headers: dict[str, str] = {}
    """HTTP headers."""
    body: str = ""
    """Body of the request."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=LONGEST)] = 60.0
    """Seconds that it may take. The time limits of pages do not apply."""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError("a hook is either a command or a url")
        if self.url and not self.url.startswith(("http://", "https://", "{base}")):
            raise ValueError(f"the hook's url {self.url!r} is no web address: write http://host/path")

    async def call(self, role: str, **values: str) -> str:
        """Run the hook and return its standard output, or the text of the response.

        `role`: name of the hook in messages. `values`: replacements of `{name}` and `{base}`. Raises EnvironmentFailure.
        """
        reply = await (self._run(role, values) if self.command else self._ask(role, values))
        return reply.strip()

    async def _ask(self, role: str, values: dict[str, str]) -> str:
        """Send the request in a thread, which cannot be stopped. After a timeout, the next call of the same server waits for its end."""
        server = origin(_filled(self.url, values))
        try:
            async with asyncio.timeout(self.seconds):
                while abandoned := [each for each, asked in list(_ABANDONED.items()) if asked == server]:
                    await asyncio.gather(*map(asyncio.wrap_future, abandoned), return_exceptions=True)
                answer = run_in_thread(partial(self._request, role, values))
                try:
                    return await asyncio.wrap_future(answer)
                except asyncio.CancelledError:
                    _ABANDONED[answer] = server
                    answer.add_done_callback(_ABANDONED.pop)
                    raise
        except TimeoutError as error:
            raise EnvironmentFailure(f"the site's hook {role} did not end within {self.seconds:g} s") from error

    async def _run(self, role: str, values: dict[str, str]) -> str:
        program, *arguments = (_filled(each, values) for each in self.command)
        try:
            process = await Child.start(
                program, *arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=self.folder or None, start_new_session=True
            )
        except (OSError, ValueError) as error:  # a ValueError if an argument holds a zero byte
            raise EnvironmentFailure(f"the site's hook {role} does not start: {error}") from error
        try:
            async with asyncio.timeout(self.seconds):
                output, errors = await asyncio.gather(_beginning(process.stdout), _beginning(process.stderr))
                await process.wait()
        except TimeoutError as error:
            raise EnvironmentFailure(f"the site's hook {role} did not end within {self.seconds:g} s") from error
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    kill_group(process.pid)
            await process.end()
        if process.returncode:
            last = (errors or output).decode(errors="replace").strip().splitlines()[-1:]  # of the kept output
            raise EnvironmentFailure(f"the site's hook {role} ended with status {process.returncode}: {''.join(last)[:_MESSAGE_LENGTH]}")
        return output.decode(errors="replace")

    def _request(self, role: str, values: dict[str, str]) -> str:
        body, url = _filled(self.body, values).encode() if self.body else None, _filled(self.url, values)
        try:
            reply = fetch(url, body, method=self.method, headers=self.headers, seconds=self.seconds, most=_MOST_REPLY)
            return reply.decode(errors="replace")
        except urllib.error.HTTPError as error:
            with error:
                raise EnvironmentFailure(f"the site's hook {role} was answered with status {error.code}") from error
        except (OSError, http.client.HTTPException) as error:
            raise EnvironmentFailure(f"the site's hook {role} was not answered: {error or type(error).__name__}") from error


class Requests(_Declaration, frozen=True, kw_only=True):
    """Effects of requests to a site, if their method does not show them."""

    harmless: tuple[str, ...] = ()
    """Requests that are not writes of the agent: drafts, preferences, telemetry. Regular expressions, searched in `METHOD URL`. They are
    not sent while searching; the page gets an empty answer. GraphQL queries among them only read and are sent, mutations are writes."""
    reads: tuple[str, ...] = ()
    """Requests that only read although their method is POST, in the same form. They are sent while searching."""
    writes: tuple[str, ...] = ()
    """Requests that write although they are a GET, in the same form. They are blocked while searching. A GET that logs out is one by
    default."""


class Site(Requests, frozen=True, kw_only=True):
    """An application outside the sandbox that can be reset.

    If its state can also be saved and restored, the environments have full fidelity, together with the browser's checkpoint. With
    `reset` alone it is reset at the start of each attempt, and searching sends it no writes.
    """

    reset: Hook
    """Hook that brings the application to the start of a task."""
    every: int = 1
    """Number of attempts for which one reset is enough, if the state is not saved. With 1 the site is reset before each. More save slow
    resets if attempts hardly write; an attempt then begins with the writes of those before it."""
    base: str = ""
    """Address in tasks and pages, such as `http://shop.test`. With `reset` alone it may be empty."""
    snapshot: Hook | None = None
    """Hook that saves the present state as `{name}` (lower-case letters, digits, `_`). `{base}`: address of the fork to save."""
    restore: Hook | None = None
    """Hook that restores `{name}`, any number of times."""
    fork: Hook | None = None
    """Hook that starts another instance in state `{name}` and prints its address, such as `http://127.0.0.1:5003`. Browsers know it by the
    name in `base`. Without this hook all environments share one instance: they take turns, and the state is saved and restored between
    turns."""
    drop: Hook | None = None
    """Hook that deletes `{name}`."""
    end: Hook | None = None
    """Hook that ends the fork at `{base}`."""

    def __post_init__(self) -> None:
        if (self.base and not origin(self.base)) or (self.has_states and not self.base):
            raise ValueError(f"base {self.base!r} is not an address: write http://host")
        if self.has_states and self.fork is None and self.restore is None:
            raise ValueError("a site with a hook snapshot needs a hook restore, or fork")
        if self.every < 1 or (self.every > 1 and self.has_states):
            raise ValueError(f"every {self.every}: write 1 or more, and 1 for a site with a hook snapshot, which is restored anyway")
        if extra := [name for name in ("restore", "fork", "drop", "end") if getattr(self, name) and not self.has_states]:
            raise ValueError(f"a site with a hook {extra[0]} needs a hook snapshot")

    @property
    def has_states(self) -> bool:
        """Return whether its state can be saved and restored, so that a search may write to it."""
        return self.snapshot is not None


class Account(_Declaration, frozen=True, kw_only=True):
    """A log-in, used by one environment at a time."""

    name: str
    """Name in messages; not secret."""
    fields: dict[str, str]
    """Values that an agent may type by their placeholders: `fill [3] "<secret:password>"`, or `"<password>"`. `$NAME` is replaced by that
    environment variable."""
    origins: tuple[str, ...] = ()
    """Origins at which the values may be typed: `https://host[:port]`. Empty: that of the task's start, and of `browser.login.url`."""


class Outside(Requests, frozen=True, kw_only=True):
    """Sites outside the sandbox that a task uses."""

    hosts: dict[str, str] = {}
    """Host names and their addresses, such as `{"shop.test": "127.0.0.1:43121"}`. Without a port, that of the URL is used."""
    trusted: tuple[str, ...] = ()
    """Certificates accepted without a known issuer: base64 SHA-256 of the public key (`openssl pkey -pubin -outform der`)."""
    site: Site | None = None
    """Application whose state can be saved and restored."""
    accounts: tuple[Account, ...] = ()
    """Log-ins. If there are any, each open environment leases one, and further environments wait."""


def declared_outside(task: Task) -> Outside | None:
    """Return the declaration `outside` in a task's metadata, a JSON object with the fields of Outside. None if it is missing.

    Raises UsageError if that does not parse.
    """
    text = task.metadata.get("outside")
    if text is None:
        return None
    try:
        return msgspec.convert(with_hooks(msgspec.json.decode(str(text))), Outside)
    except ValueError as error:
        raise UsageError(f"task {task.id} declares an invalid outside: {error}: see docs/design/environments.md") from error


def with_hooks(outside: Any, folder: str = "") -> Any:
    """Return plain data of an Outside in which each hook that is a text is written out: an address, or a command as in a shell.

    `folder`: working directory of commands that name none.
    """
    site = outside.get("site") if isinstance(outside, dict) else None
    if not isinstance(site, dict):
        return outside
    found = {}
    for name, hook in site.items():
        if isinstance(hook, str) and name in ("reset", "snapshot", "restore", "fork", "drop", "end"):
            hook = {"url": hook.strip()} if "://" in hook.strip().partition(" ")[0] else {"command": shlex.split(hook)}
        found[name] = {"folder": folder, **hook} if folder and isinstance(hook, dict) and "command" in hook else hook
    return {**outside, "site": found}


async def _beginning(stream: asyncio.StreamReader | None) -> bytes:
    """Return the beginning of a stream, which is read to its end."""
    found = bytearray()
    while stream is not None and (part := await stream.read(1 << 16)):
        found += part[: _MOST_REPLY - len(found)]
    return bytes(found)


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
