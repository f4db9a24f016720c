"""Any environment in a sandbox: its whole process can be kept and returned to, whatever it is written in.

async with sandboxed_factory(Factory("shop.py:Shop")) as environments, environments.open(simulation=True) as environment:
    await environment.reset(task)
    snapshot = await environment.snapshot()
    async with environments.fork(snapshot, simulation=True) as other:
        ...

The environment needs no snapshots of its own, and nothing of exact: see `guest.py` for what it gives. It has loopback and no other
network, so that nothing it does reaches the outside, and its environment is isolated.
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
from exact.environments.sandbox import Sandbox, Sandboxes, SandboxLauncher, open_sandboxes
from exact.environments.sandbox.application import SandboxApplication
from exact.environments.sandbox.idle import IdleTimer
from exact.environments.sandbox.images import SandboxImage
from exact.environments.sandbox.python import inspect_python
from exact.environments.sandbox.sandboxes import LIMIT
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Task

IDLE = 5.0
"""Seconds after which an environment that nobody uses is paused."""


class SandboxedWorker(Worker):
    """One branch. Opened by SandboxedFactory."""

    def __init__(self, environments: SandboxedFactory) -> None:
        super().__init__(
            environments.factory, environments.launch, simulation=False, limits=environments.limits, actions=environments.actions
        )
        self._environments = environments
        self._sandbox: Sandbox | None = None
        self._idle: IdleTimer | None = None
        self._seen: Observation | None = None
        self._used = False
        """Whether an episode was begun in this guest, or before it branched off."""

    @property
    def capabilities(self) -> Capabilities:
        """Those of the inner environment, and what the sandbox adds."""
        return msgspec.structs.replace(super().capabilities, fidelity="full", isolated=True, concurrent=True)

    @property
    def observation(self) -> Observation:
        """The last one: of a branch that was just made, how it arrived. Raises EnvironmentFailure where there is none."""
        if self._seen is None:
            raise EnvironmentFailure("nothing is observed: no episode is under way")
        return self._seen

    @property
    def obstacle(self) -> str:
        """What stands in the way of a snapshot now; empty if nothing does."""
        if self._unsure or self._seen is None:
            return self._unsure or "no episode is under way"
        return "a call is under way" if self._guest is None or self._guest.channel.busy else ""

    @property
    def paused(self) -> bool:
        """Whether its processes are stopped."""
        return self._sandbox is not None and self._sandbox.paused

    async def open(self) -> None:
        """A guest that has seen nothing: the first one that ever was, or a branch of it. Raises EnvironmentFailure, UsageError."""
        async with self._environments.beginning:
            if not self._environments.origin:
                await super().open()
                self._environments.origin = (await self._checkpoint(pinned=True)).id
                return
        await self.branch(self._environments.origin)

    async def branch(self, id: str) -> None:
        """Go on from an image. Raises EnvironmentFailure, and there is no guest then."""
        await self._drop("it was left for another branch")
        async with self._environments.sandboxes.branch(id) as sandbox:
            await self._take(sandbox)

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to the task's start, in a guest that has seen nothing unless its own reset undoes everything."""
        if self._used and not super().capabilities.isolated:
            await self._renew()
        self._seen, self._used = None, True
        self._seen = await super().reset(task)
        return self._seen

    async def step(self, action: Action) -> Transition:
        """Carry out one action and settle. Raises ActionError and EnvironmentFailure; after the latter there is nothing to keep."""
        before, self._seen = self._seen, None
        try:
            transition = await super().step(action)
        except ActionError:
            self._seen = before
            raise
        self._seen = None if transition.terminated else transition.observation
        return transition

    async def snapshot(self) -> Snapshot:
        """The whole environment as it is; it goes on. Raises EnvironmentFailure where nothing could come back, and then nothing is lost."""
        if self.obstacle:
            raise EnvironmentFailure(f"no snapshot now: {self.obstacle}")
        fingerprint = self.observation.fingerprint
        return Snapshot(id=(await self._checkpoint()).id, fidelity="full", fingerprint=fingerprint)

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Leave this guest for a new branch of a snapshot, whichever environment of these environments took it. Raises
        EnvironmentFailure."""
        self._environments.sandboxes.images.find(snapshot.id)
        self._seen = None
        await self.branch(snapshot.id)
        self._used = True
        self._seen = await self._move("observe", {}, self._limits.restore, Observation)
        return self._seen

    async def _checkpoint(self, *, pinned: bool = False) -> SandboxImage:
        assert self._sandbox is not None and self._idle is not None
        await self._idle.rouse()
        try:
            return await self._environments.sandboxes.checkpoint(self._sandbox, pinned=pinned)
        finally:
            self._idle.rest(self._environments.idle)

    async def _take(self, process: GuestProcess) -> None:
        assert isinstance(process, Sandbox)
        self._sandbox, self._idle = process, IdleTimer(process)
        await super()._take(process)

    async def _call(self, op: str, arguments: Mapping[str, object], seconds: float) -> object:
        self._here()
        assert self._idle is not None
        await self._idle.rouse()
        try:
            return await super()._call(op, arguments, seconds)
        finally:
            self._idle.rest(self._environments.idle)

    async def _drop(self, why: str) -> None:
        if self._idle is not None:
            await self._idle.stop()
        await super()._drop(why)


class SandboxedFactory:
    """Opens guests of one factory, and branches of their snapshots. Made by `sandboxed_factory`.

    The first guest is kept before anything is done in it: those opened later, and those reset, are branches of it.
    """

    def __init__(
        self,
        sandboxes: Sandboxes,
        factory: EnvironmentSpec,
        launch: SandboxLauncher,
        *,
        limits: GuestTimeouts | None = None,
        actions: ActionSpace | None = None,
        idle: float = IDLE,
    ) -> None:
        self.sandboxes, self.factory, self.launch = sandboxes, factory, launch
        self.limits, self.actions, self.idle = limits, actions, idle
        self.beginning = asyncio.Lock()
        self.origin = ""
        """Image of the guest that has seen nothing; empty until there is one."""

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[SandboxedWorker]:
        """A fresh environment, ended on leaving. A speculative one is as any other: nothing reaches the outside."""
        async with self._around() as worker:
            await worker.open()
            yield worker

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[SandboxedWorker]:
        """Another environment that stands at a snapshot, whichever environment took it. Raises EnvironmentFailure if it is gone."""
        async with self._around() as worker:
            await worker.restore(snapshot)
            yield worker

    @property
    def bytes(self) -> int:
        """Of all images kept, that of the guest which has seen nothing included."""
        return self.sandboxes.images.bytes

    def has(self, snapshot: Snapshot) -> bool:
        """Whether it can still be restored: images are bounded by bytes."""
        return snapshot.id in self.sandboxes.images

    def drop(self, snapshot: Snapshot) -> None:
        """Nobody will come back to it."""
        self.sandboxes.images.drop(snapshot.id)

    @asynccontextmanager
    async def _around(self) -> AsyncIterator[SandboxedWorker]:
        worker = SandboxedWorker(self)
        try:
            yield worker
        finally:
            await worker.close()


@asynccontextmanager
async def sandboxed_factory(
    factory: EnvironmentSpec,
    *,
    reads: Sequence[Path] = (),
    inside: SandboxConfig | None = None,
    limits: GuestTimeouts | None = None,
    actions: ActionSpace | None = None,
    limit: int = LIMIT,
    idle: float = IDLE,
    log: Path | None = None,
) -> AsyncIterator[SandboxedFactory]:
    """Environments of a factory that fork, while the block runs.

    Of what lies in home directories and under /tmp, a guest sees its interpreter with its packages, the factory's file and `paths`, and
    `reads`; all of it read-only. `inside`: another root, mounts, variables and user; in another root, the factory's interpreter is one of
    that root. `limit`: bytes of snapshots kept. `idle`: seconds after which an environment that nobody uses is paused.
    `log`: a file that stderr of guests is appended to; without one it goes to the logger `exact.guest`.
    Raises EnvironmentFailure where there is no usable runsc, or no such interpreter.
    """
    inside = inside or SandboxConfig()
    place, own = SandboxApplication.of(inside), [Path(guest.__file__), *([factory.file] if factory.file else [])]
    reads = (*own, *factory.paths, *reads)
    if place.root is None:
        python = await inspect_python(factory.python, {**inside.env, **factory.env})
        factory, reads = msgspec.structs.replace(factory, python=python.executable), (*python.folders, *reads)
    async with open_sandboxes(limit=limit, log=log) as sandboxes:
        launch = SandboxLauncher(sandboxes, like=place.guest(reads=reads, programs=tuple(own)))
        yield SandboxedFactory(sandboxes, factory, launch, limits=limits, actions=actions, idle=idle)
