"""Any environment in a sandbox: snapshots of its whole process can be restored and forked, in whatever language it is written.

async with sandboxed_factory(EnvironmentSpec("shop.py:Shop")) as environments, environments.open(simulation=True) as environment:
    await environment.reset(task)
    snapshot = await environment.snapshot()
    async with environments.fork(snapshot, simulation=True) as other:
        ...

The environment needs no own snapshots, and does not depend on exact: `guest.py` describes the result of its factory. It has loopback and
no other network. So none of its effects reach the outside: it is isolated.

Starts guests of any kind in sandboxes: the `Launcher` (`exact.environments.process.process`) of sandboxed workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from exact.action import Action, ActionSpace
from exact.config import SandboxConfig
from exact.environments.base import Capabilities, Snapshot, Transition
from exact.environments.process import guest
from exact.environments.process.process import GuestProcess
from exact.environments.process.worker import EnvironmentSpec, GuestTimeouts, Worker
from exact.environments.sandbox.application import SandboxApplication
from exact.environments.sandbox.bundle import GuestSpec
from exact.environments.sandbox.images import SandboxImage
from exact.environments.sandbox.python import inspect_python
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import LIMIT, IdleTimer, Sandboxes, open_sandboxes
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Task

IDLE = 5.0
"""Seconds after the last call after which an environment is paused."""


class SandboxedWorker(Worker):
    """Environment in a separate sandbox. Opened by SandboxedFactory."""

    def __init__(self, environments: SandboxedFactory) -> None:
        super().__init__(
            environments.spec, environments.launcher, simulation=False, timeouts=environments.timeouts, actions=environments.actions
        )
        self._environments = environments
        self._sandbox: Sandbox | None = None
        self._idle: IdleTimer | None = None
        self._observation: Observation | None = None
        self._used = False
        """Whether an episode has begun in this guest, or in the one that it was forked from."""

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the guest's environment, with those that the sandbox adds."""
        return msgspec.structs.replace(super().capabilities, fidelity="full", isolated=True, concurrent=True)

    @property
    def observation(self) -> Observation:
        """Last observation; after a fork, that of the snapshot's state. Raises EnvironmentFailure if there is none."""
        if self._observation is None:
            raise EnvironmentFailure("there is no observation: no episode is in progress: reset it first")
        return self._observation

    @property
    def obstacle(self) -> str:
        """Reason why no snapshot can be taken now. Empty if there is none."""
        if self._unknown or self._observation is None:
            return self._unknown or "no episode is in progress"
        return "a call is in progress" if self._guest is None or self._guest.channel.busy else ""

    @property
    def paused(self) -> bool:
        """Return whether its processes are paused."""
        return self._sandbox is not None and self._sandbox.paused

    async def open(self) -> None:
        """Start the first guest, or fork its state before its first episode. Raises EnvironmentFailure and UsageError."""
        async with self._environments.opening:
            if not self._environments.origin:
                await super().open()
                self._environments.origin = (await self._checkpoint(pinned=True)).id
                return
        await self.fork(self._environments.origin)

    async def fork(self, id: str) -> None:
        """Replace the guest by a fork of an image. Raises EnvironmentFailure; the guest is gone then."""
        await self._drop("it was left for another fork")
        async with self._environments.sandboxes.fork(id) as sandbox:
            await self._take(sandbox)

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to the task's start, in a fresh guest unless its own reset undoes every side effect."""
        if self._used and not super().capabilities.isolated:
            await self._renew()
        self._observation, self._used = None, True
        self._observation = await super().reset(task)
        return self._observation

    async def step(self, action: Action) -> Transition:
        """Carry out one action and wait until the environment has settled.

        Raises ActionError and EnvironmentFailure; after the latter no snapshot can be taken.
        """
        before, self._observation = self._observation, None
        try:
            transition = await super().step(action)
        except ActionError:
            self._observation = before
            raise
        self._observation = None if transition.terminated else transition.observation
        return transition

    async def snapshot(self) -> Snapshot:
        """Take a snapshot of the whole environment, which continues. Raises EnvironmentFailure if there is an obstacle."""
        if self.obstacle:
            raise EnvironmentFailure(f"no snapshot now: {self.obstacle}")
        fingerprint = self.observation.fingerprint
        return Snapshot(id=(await self._checkpoint()).id, fidelity="full", fingerprint=fingerprint)

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Replace the guest by a fork of a snapshot, whichever environment of this factory took it. Raises EnvironmentFailure."""
        self._environments.sandboxes.images.find(snapshot.id)
        self._observation = None
        await self.fork(snapshot.id)
        self._used = True
        self._observation = await self._move("observe", {}, self._timeouts.restore, Observation)
        return self._observation

    @asynccontextmanager
    async def copy(self) -> AsyncIterator[SandboxedWorker]:
        """Open another environment at the present state, even if the episode has ended, for the time of the block.

        Raises EnvironmentFailure.
        """
        image = await self._checkpoint()
        try:
            async with self._environments.made() as worker:
                await worker.fork(image.id)
                yield worker
        finally:
            self._environments.sandboxes.images.drop(image.id)

    async def _checkpoint(self, *, pinned: bool = False) -> SandboxImage:
        assert self._sandbox is not None and self._idle is not None
        await self._idle.wake()
        try:
            return await self._environments.sandboxes.checkpoint(self._sandbox, pinned=pinned)
        finally:
            self._idle.pause_after(self._environments.idle)

    async def _take(self, process: GuestProcess) -> None:
        assert isinstance(process, Sandbox)
        self._sandbox, self._idle = process, IdleTimer(process)
        await super()._take(process)

    async def _call(self, op: str, arguments: Mapping[str, object], seconds: float) -> object:
        self._running()
        assert self._idle is not None
        await self._idle.wake()
        try:
            return await super()._call(op, arguments, seconds)
        finally:
            self._idle.pause_after(self._environments.idle)

    async def _drop(self, why: str) -> None:
        if self._idle is not None:
            await self._idle.stop()
        await super()._drop(why)


class SandboxedFactory:
    """Opens environments of one specification in sandboxes, and forks of their snapshots. Made by `sandboxed_factory`.

    A snapshot of the first guest is taken before its first episode: guests opened or reset later are forks of it.
    """

    def __init__(
        self,
        sandboxes: Sandboxes,
        spec: EnvironmentSpec,
        launcher: SandboxLauncher,
        *,
        timeouts: GuestTimeouts | None = None,
        actions: ActionSpace | None = None,
        idle: float = IDLE,
    ) -> None:
        self.sandboxes, self.spec, self.launcher = sandboxes, spec, launcher
        self.timeouts, self.actions, self.idle = timeouts, actions, idle
        self.opening = asyncio.Lock()
        self.origin = ""
        """Id of the image of a guest before its first episode. Empty until there is one."""

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[SandboxedWorker]:
        """Open a fresh environment. `simulation` makes no difference, because nothing reaches the outside."""
        async with self.made() as worker:
            await worker.open()
            yield worker

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[SandboxedWorker]:
        """Open another environment at the state of a snapshot. Raises EnvironmentFailure if the snapshot is gone."""
        async with self.made() as worker:
            await worker.restore(snapshot)
            yield worker

    @property
    def bytes(self) -> int:
        """Bytes of all images, that of the first guest included."""
        return self.sandboxes.images.bytes

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot can still be restored: images are bounded by bytes."""
        return snapshot.id in self.sandboxes.images

    def drop(self, snapshot: Snapshot) -> None:
        """Release a snapshot that will not be used again."""
        self.sandboxes.images.drop(snapshot.id)

    @asynccontextmanager
    async def made(self) -> AsyncIterator[SandboxedWorker]:
        """Make an environment without a guest, and close it at the end of the block."""
        worker = SandboxedWorker(self)
        try:
            yield worker
        finally:
            await worker.close()


@asynccontextmanager
async def sandboxed_factory(
    spec: EnvironmentSpec,
    *,
    reads: Sequence[Path] = (),
    inside: SandboxConfig | None = None,
    timeouts: GuestTimeouts | None = None,
    actions: ActionSpace | None = None,
    limit: int = LIMIT,
    idle: float = IDLE,
    log: Path | None = None,
) -> AsyncIterator[SandboxedFactory]:
    """Open a factory of environments that fork, for the time of the block.

    In home directories and under /tmp a guest sees only its interpreter with its packages and the factory's file, read-only, and `paths`
    and `reads`, which it may change in its memory. `inside`: another root, mounts, variables and user; in another root, the
    specification's interpreter is a path of that root. `limit`: bytes of retained snapshots. `idle`: seconds after the last call after
    which an environment is paused. `log`: file to which the stderr of guests is appended; by default it goes to the logger `exact.guest`.
    Raises EnvironmentFailure without a usable runsc or that interpreter.
    """
    inside = inside or SandboxConfig()
    application, own = SandboxApplication.from_config(inside), (Path(guest.__file__), *([spec.file] if spec.file else []))
    ours, theirs = own, (*(spec.paths if spec.shown is None else spec.shown), *reads)
    if application.root is None:
        python = await inspect_python(spec.python, {**inside.env, **spec.env})
        spec, ours = msgspec.structs.replace(spec, python=python.executable), (*python.folders, *own)
    async with open_sandboxes(limit=limit, log=log) as sandboxes:
        launcher = SandboxLauncher(sandboxes, template=application.guest(reads=ours, writable=theirs, programs=own))
        yield SandboxedFactory(sandboxes, spec, launcher, timeouts=timeouts, actions=actions, idle=idle)


class SandboxLauncher:
    """Starts each guest in a separate sandbox, which `sandboxes` can checkpoint and fork."""

    def __init__(self, sandboxes: Sandboxes, *, template: GuestSpec) -> None:
        """Create a launcher.

        `template`: specification of all guests except command and variables. Its `reads` include the interpreter's folder if that lies in a
        home directory.
        """
        self._sandboxes, self._template = sandboxes, template

    async def start(self, args: Sequence[str], env: Mapping[str, str]) -> Sandbox:
        """Run a command in a sandbox with added environment variables. Raises EnvironmentFailure."""
        return await self._sandboxes.start(msgspec.structs.replace(self._template, args=tuple(args), env={**self._template.env, **env}))
