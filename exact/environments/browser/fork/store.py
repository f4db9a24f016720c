"""Images of browser environments: sandboxes are started, checkpointed and restored, together with the known facts about their state.

Files that a service of the user's application needs although the sandbox hides home directories and temporary files.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from exact.config import BrowserConfig
from exact.environments.base import Fidelity, Snapshot
from exact.environments.browser.fork import init_process
from exact.environments.browser.fork.browser import ConnectionState, ForkedBrowser, chromium_binary, chromium_command, connect
from exact.environments.browser.fork.egress import proxy_arguments
from exact.environments.browser.launch.find import find_browser
from exact.environments.browser.launch.launch import spellings
from exact.environments.browser.network.deny import DenyList
from exact.environments.browser.network.dial import Destinations, Dialler
from exact.environments.browser.network.recording import Recording, recording_of
from exact.environments.browser.page.setup import PageSetup
from exact.environments.sandbox.application import SandboxApplication
from exact.environments.sandbox.bundle import GuestSpec, find_interpreter, holds_home, interpreter_files, is_hidden, is_masked
from exact.environments.sandbox.host import masked_folders
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import Sandboxes
from exact.environments.sandbox.service import Service
from exact.environments.sites.site import Outside
from exact.environments.sites.states import SiteClient, SiteStates
from exact.errors import EnvironmentFailure, UsageError
from exact.origins import host_name, split_url

if TYPE_CHECKING:
    from playwright.async_api import Playwright

    from exact.environments.browser.snapshot.state import Memo


_PROXY_PORT = 1
"""Port of the sandbox's loopback that its browser uses as proxy; no service listens there."""

_SECONDS = 120.0
"""Seconds that a sandbox may take to start, besides its services."""


_LOOPBACK = re.compile(r"(?:.+\.)?localhost|127\.[\d.]+|::1")
"""Host names that Chromium takes for the machine that it runs on."""


class ForkStore:
    """The snapshots of environments of one kind, and browsers made from them.

    `idle`: seconds after which the sandbox of an environment that is not used is paused. `warn` is called with facts that a user should
    know.
    """

    def __init__(
        self,
        sandboxes: Sandboxes,
        playwright: Playwright,
        artifacts: Path,
        setup: PageSetup,
        config: BrowserConfig,
        *,
        services: Sequence[Service],
        application: SandboxApplication,
        outside: Outside | None,
        recording: Recording | None,
        idle: float,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._sandboxes, self._playwright, self._artifacts = sandboxes, playwright, artifacts
        self.setup, self.config, self.outside, self.idle = setup, config, outside, idle
        self.states = SiteStates(outside.site) if outside and outside.site and outside.site.has_states else None
        """The states of the site outside; None if it has no hooks to retain them."""
        self._services, self._application = tuple(services), application
        self._warn = warn
        self._recording = recording or recording_of(config.recording)
        self._dialler, self._deny = Dialler(config.proxy), DenyList(config.deny)
        self._memos: dict[str, Memo] = {}
        self._connections: dict[str, ConnectionState] = {}
        self._origin = ""
        """Id of the image of a fresh environment; empty before there is one."""
        self._first = asyncio.Lock()

    @property
    def isolated(self) -> bool:
        """Guarantee that every side effect is undone: the site has no part outside, or its states are retained."""
        return self.outside is None or self.states is not None

    def is_inside(self, url: str) -> bool:
        """Return whether an address is answered in the sandbox: by its services, or for lack of an outside."""
        host = host_name(split_url(url).hostname or "")
        named = {host_name(each.partition(":")[0]) for each in self.setup.hosts}
        return self.outside is None or host in named or (bool(self._services) and _LOOPBACK.fullmatch(host) is not None)

    @property
    def stateless(self) -> bool:
        """Guarantee that no server of the environments has a state."""
        return self.outside is None and all(service.stateless for service in self._services)

    @property
    def bytes(self) -> int:
        """Size of all images, including that of the fresh environment."""
        return self._sandboxes.images.bytes

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot can still be restored. Images are dropped if their size exceeds the limit."""
        return snapshot.id in self._sandboxes.images

    def drop(self, snapshot: Snapshot) -> None:
        """Drop a snapshot that will not be restored again."""
        self._forget(snapshot.id)
        self._sandboxes.images.drop(snapshot.id)

    def memo(self, snapshot: Snapshot) -> Memo:
        """Return the known facts about a snapshot besides its image. Raises EnvironmentFailure if it is unknown or was dropped."""
        if snapshot.id not in self._memos:
            raise EnvironmentFailure(f"snapshot {snapshot.id} is not of these environments, or was dropped: return by another route")
        return self._memos[snapshot.id]

    async def fresh(self) -> ForkedBrowser:
        """Return a browser that has opened no page, in a separate sandbox. Raises EnvironmentFailure."""
        async with self._first:
            if not self._origin:
                return await self._start()
        return await self.fork_browser(self._origin)

    async def fork_browser(self, id: str) -> ForkedBrowser:
        """Return a browser in a new fork of an image, even if the image is dropped meanwhile. Raises EnvironmentFailure."""
        if (connection := self._connections.get(id)) is None:
            raise EnvironmentFailure(f"snapshot {id} was dropped: return by another route")
        async with self._sandboxes.fork(id) as sandbox:
            try:
                return await self._connect(sandbox, connection)
            except BaseException:
                await self._sandboxes.end(sandbox)
                raise

    async def take(self, browser: ForkedBrowser, memo: Memo, fidelity: Fidelity, standing: SiteClient) -> Snapshot:
        """Take a snapshot of a browser's sandbox, and with it of the site outside. Both continue. Raises EnvironmentFailure."""
        await browser.relay.hold()
        try:
            if self.states:
                memo = replace(memo, site=await self.states.save(standing))
            connection = browser.connection
            image = await self._sandboxes.checkpoint(browser.relay.sandbox)
        finally:
            await browser.relay.release()
        for id in [id for id in self._memos if id not in self._sandboxes.images]:
            self._forget(id)
        self._memos[image.id], self._connections[image.id] = memo, connection
        return Snapshot(id=image.id, fidelity=fidelity, fingerprint=memo.fingerprint)

    async def end(self, browser: ForkedBrowser) -> None:
        """Close a browser and end its sandbox. Never raises."""
        try:
            await browser.close()
        finally:
            await self._sandboxes.end(browser.relay.sandbox)

    def _forget(self, id: str) -> None:
        self._connections.pop(id, None)
        memo = self._memos.pop(id, None)
        if memo and memo.site and self.states:
            self.states.drop(memo.site)

    async def _start(self) -> ForkedBrowser:
        """Start the first environment and take an image of it before anything is done in it."""
        sandbox = await self._sandboxes.start(self._guest())
        try:
            browser = await self._connect(sandbox, None)
            self._warn_of_hidden_files(browser.relay.made)
            await browser.relay.hold()
            connection = browser.connection
            self._origin = (await self._sandboxes.checkpoint(sandbox, pinned=True)).id
            self._connections[self._origin] = connection
            await browser.relay.release()
        except BaseException:
            await self._sandboxes.end(sandbox)
            raise
        return browser

    def _warn_of_hidden_files(self, made: Sequence[str]) -> None:
        """Warn if services made files anew that exist on this machine: an application then begins without its data."""
        if hidden := [path for path in made if "/.cache/" not in path and Path(path).is_file()]:
            more = f" and {len(hidden) - 1} more" if len(hidden) > 1 else ""
            self._warn(
                f"the services began with a new {hidden[0]}{more}, because the sandbox hides the one of this machine:"
                " name it, or its folder, in the service's `reads`"
            )

    async def _connect(self, sandbox: Sandbox, connection: ConnectionState | None) -> ForkedBrowser:
        return await connect(
            self._playwright,
            sandbox,
            self._artifacts,
            connection=connection,
            destinations=Destinations(self.outside.hosts, self._deny) if self.outside else None,
            recording=self._recording,
            dialler=self._dialler,
            seconds=_SECONDS + (0.0 if connection else sum(service.seconds for service in self._services)),
        )

    def _guest(self) -> GuestSpec:
        executable, python, place = chromium_binary(find_browser().resolve()), find_interpreter(), self._application
        way_out = proxy_arguments(self.outside, self._inner_hosts(), _PROXY_PORT) if self.outside else ("--no-proxy-server",)
        visible = [path for service in self._services for path in visible_files(service, own_root=place.root is not None)]
        home = {} if place.root else {"HOME": str(Path.home())}
        services = [{**msgspec.to_builtins(each), **place.service(), "env": {**home, **place.env, **each.env}} for each in self._services]
        spec = {
            "services": services,
            "links": hidden_links(visible),
            "masked": [] if place.root else [folder for folder in masked_folders() if folder not in ("/run", "/dev/shm")],
            "browser": chromium_command(str(executable), self.config, self.setup.hosts, way_out),
            "proxy_port": _PROXY_PORT if self.outside else 0,
        }
        parts = executable if holds_home(executable.parent) else executable.parent
        reads = (Path(init_process.__file__), parts, *interpreter_files(python))
        return GuestSpec(
            args=(str(python), "-I", "-S", init_process.__file__, json.dumps(spec)),
            env={"TZ": "UTC", "LANG": "C.UTF-8"},
            reads=reads,
            writable=tuple(visible),
            programs=(executable,),
            beside=place.root,
            mounts=place.mounts,
            capable=bool(self._services),
            processes=place.processes,
            memory=place.memory,
        )

    def _inner_hosts(self) -> tuple[str, ...]:
        """Return the hosts that are reached without the proxy. Loopback is the sandbox's if it has services, else the host's."""
        named = [name for host in self.setup.hosts for name in spellings(host)]
        return tuple(named) if self._services else (*named, "<-loopback>")


_PATH = re.compile(r"(?:(?<=[=:,;@\s\"'])|^)/*((?:~|\.\.)?/[^\s:,;\"'?&=]+)")
"""A path in an argument or a variable, also as an option's value and in the address of a database."""

_MAX_LINKS = 40


def visible_files(service: Service, *, own_root: bool = False) -> tuple[Path, ...]:
    """Return the hidden files and folders of this machine that a service sees and may change in the sandbox's memory.

    These are its working folder, its `reads`, its program, and the paths that its command and its variables name. A file is seen with the
    folder that it lies in, for files beside a database, unless that is a home directory or a hidden folder (`.ssh`).

    `own_root`: the service has another root, in which it sees only its `reads`. Raises UsageError if its working folder is or holds a home
    directory, or a folder of temporary files.
    """
    folder = Path(service.folder)
    if own_root:
        return tuple(map(Path, service.reads))
    if folder != Path("/") and holds_home(folder):
        raise UsageError(
            f"the service works in {folder}, which the sandbox would show whole, with files of a person or of other programs:"
            " move the site file, or the service's `folder`, to a folder of its own"
        )
    found = [folder, *map(Path, service.reads), *_program(service, folder)]
    for text in (*service.command[1:], *service.env.values()):
        found += [place for path in _named(text, folder) for place in _with_folder(path)]
    return tuple(dict.fromkeys(path for path in found if path != Path("/") and is_hidden(path.absolute())))


def hidden_links(paths: Iterable[Path]) -> dict[str, str]:
    """Return the symbolic links on the way to visible files that the sandbox hides, with the paths that they lead to."""
    found = {}
    for path in map(Path.absolute, paths):
        for part in (*reversed(path.parents), path):
            if part.is_symlink() and is_masked(part):
                found[str(part)] = str(part.resolve())
                break
    return found


def _named(text: str, folder: Path) -> Iterator[Path]:
    """Yield the paths that a text names, absolute ones."""
    whole = Path(text).expanduser() if text.startswith(("/", "~/")) else None
    if whole and whole.exists():
        yield whole
        return
    for found in _PATH.finditer(text):
        name = found[1]
        yield Path(name).expanduser() if name.startswith("~") else Path(folder, name).resolve() if name.startswith("..") else Path(name)


def _with_folder(path: Path) -> Iterable[Path]:
    """Return the paths shown for a named path: the folder itself, or the folder of a file, which may not exist yet."""
    if path.is_dir():
        return () if holds_home(path) else (path,)
    folder = path.parent
    if folder.is_dir() and not holds_home(folder) and not any(part.startswith(".") for part in folder.parts):
        return (folder,)
    return (path,) if path.exists() else ()


def _program(service: Service, folder: Path) -> Iterator[Path]:
    """Yield the program and its link's target, each with the libraries beside it."""
    name = service.command[0] if service.command else ""
    found = shutil.which(name, path=service.env.get("PATH")) if "/" not in name else str(folder / Path(name).expanduser())
    path = Path(found or "/")
    for _ in range(_MAX_LINKS):
        prefix = path.parent.parent
        yield path
        if path.parent.name == "shims" or (prefix / "pyvenv.cfg").is_file():
            yield prefix  # of a version manager, or of a virtual environment
        elif path.parent.name == "bin" and not holds_home(prefix):
            yield from (each for each in (prefix / "lib", prefix / "lib64") if each.is_dir())
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()
