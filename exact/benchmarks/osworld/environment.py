"""An environment of OSWorld: a desktop of exact in gVisor, which the unmodified `desktop_env` sets up and judges.

A desktop in gVisor for a process that is not exact's: `python -m exact.benchmarks.osworld.environment WIDTH HEIGHT`.

Each line of stdin is a request, `{"op": "save", "name": "..."}` or `revert`; each line of stdout is its answer, with the `ports` of the
desktop's server, Chromium and VLC, which stay the same, or with an `error`. The first line of stdout answers the start. The end of stdin
ends the desktop.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from exact.action import Action, ActionSpace
from exact.benchmarks.osworld.format import OSWorldTask, SetupStep, of
from exact.environments.base import Capabilities, EnvironmentFactory, Snapshot, Transition
from exact.environments.desktop.factory import desktop_factory
from exact.environments.desktop.vm.document import opens_window
from exact.environments.desktop.vm.server import PORT
from exact.environments.desktop.vm.tunnel import listening, open_tunnel
from exact.environments.process.worker import Worker
from exact.errors import EnvironmentFailure, ExactError
from exact.observation import Observation
from exact.task import Outcome, Score, Task

if TYPE_CHECKING:
    from exact.environments.sandbox.factory import SandboxedFactory, SandboxedWorker


_FINAL = {"fail": "FAIL", "stop": "DONE"}
_WORDS = {"set_up": "set-up", "evaluate": "evaluation"}
_SECONDS, _TIMES = 60.0, 5
"""Most seconds until an application is there and nothing changes, and how often they may pass: GIMP queries plug-ins at its first start."""
_CALL_SECONDS = _SECONDS * _TIMES
"""Seconds after which a call counts as hung."""
SETTLE_SECONDS = 20.0
"""Seconds that OSWorld's own runner waits before it judges."""
_SETTLE_KEY = "settle_seconds"
"""Key of a task's private part."""
_BUSY_SECONDS = 30.0
"""Most seconds more until a state is judged that does not come to rest, such as that of a player."""
_CHROME, _CONFIG = "~/.config/google-chrome", "~/.config"
_SETTINGS = (
    f"{_CHROME}/Local State",
    *(f"{_CHROME}/Default/{name}" for name in ("Preferences", "Secure Preferences", "Bookmarks", "Cookies", "History")),
    *(f"{_CONFIG}/{path}" for path in ("vlc/vlcrc", "dconf/user", "mimeapps.list", "libreoffice/4/user/registrymodifications.xcu")),
)
"""Files of settings, which getters read without naming them in a task."""


class OSWorldEnvironment:
    """A desktop with a task of OSWorld. Made by OSWorldFactory."""

    def __init__(self, factory: OSWorldFactory, desktop: SandboxedWorker) -> None:
        self._factory, self._desktop = factory, desktop
        self._around = AsyncExitStack()
        self._judge: Worker | None = None
        self._task: Task | None = None

    @property
    def capabilities(self) -> Capabilities:
        return msgspec.structs.replace(self._desktop.capabilities, evaluates=True, deterministic=True, call_seconds=_CALL_SECONDS)

    @property
    def actions(self) -> ActionSpace:
        return self._desktop.actions

    @property
    def observation(self) -> Observation:
        """Last observation. Raises EnvironmentFailure if nothing was observed."""
        return self._desktop.observation

    @property
    def obstacle(self) -> str:
        """Reason that no snapshot can be taken now. Empty if there is none."""
        return self._desktop.obstacle

    @property
    def processor(self) -> float:
        """CPU seconds that the desktop has used."""
        return self._desktop.processor

    async def reset(self, task: Task) -> Observation:
        """Bring the desktop to a task's start: a fork of the state after set-up, if its snapshot is retained. Raises as `_set_up` does."""
        self._task, key = task, json.dumps(of(task).handed(), sort_keys=True)
        if (ready := self._factory.ready.get(key)) and self._factory.has(ready):
            with suppress(EnvironmentFailure):  # a damaged snapshot: set up anew
                return await self._desktop.restore(ready)
        seen = await self._set_up(task)
        self._factory.ready[key] = await self._desktop.snapshot()
        return seen

    async def _set_up(self, task: Task) -> Observation:
        """Set a task up on a fresh desktop, and wait until its applications are there. Raises EnvironmentFailure and UsageError."""
        wanted = of(task)
        await self._desktop.reset(BLANK)
        await self._ask(self._desktop, "set_up", task=wanted.handed())
        shown = [step for step in wanted.config or () if _shows(step)]
        for _ in range(_TIMES):
            rest = await self._desktop.command("settle", seconds=_SECONDS, starts=bool(shown))
            await self._check(self._desktop, "set_up")
            if rest["settled"]:
                break
        if shown and not rest["windows"]:
            what = f"{shown[0].type} {shown[0].parameters}"
            raise EnvironmentFailure(f"the desktop failed a step of the set-up: {what}: there is no window after {_CALL_SECONDS:g} s")
        seen = (await self._desktop.step(self.actions.action("wait"))).observation
        assert seen is not None
        return seen

    async def step(self, action: Action) -> Transition:
        return await self._desktop.step(action)

    async def snapshot(self) -> Snapshot:
        snapshot = await self._desktop.snapshot()
        self._factory.tasks[snapshot.id] = self._task
        return snapshot

    async def restore(self, snapshot: Snapshot) -> Observation:
        observation = await self._desktop.restore(snapshot)
        self._task = self._factory.tasks.get(snapshot.id, self._task)
        return observation

    async def evaluate(self, outcome: Outcome) -> Score:
        """Judge the state by OSWorld's own metric, on a fork, because judging changes the machine."""
        if self._task is None:
            raise EnvironmentFailure("there is no task to judge: reset first")
        history = [_FINAL.get(text.partition(" ")[0], text) for text in outcome.actions]
        async with self._desktop.copy() as fork:
            if history[-1:] != [_FINAL["fail"]] and of(self._task).possible:
                await self._settle(fork, of(self._task))
            said = await self._ask(fork, "evaluate", task=of(self._task).handed(), history=history[-1:])
        raw = float(str(said["text"]))
        return Score(value=min(1.0, max(0.0, raw)), success=raw == 1.0, raw=raw)

    async def close(self) -> None:
        await self._around.aclose()

    async def _settle(self, desktop: SandboxedWorker, task: OSWorldTask) -> None:
        """Wait until what a task's evaluator reads is at rest: applications write some settings many seconds after they have changed."""
        said = self._task.private.get(_SETTLE_KEY) if self._task else None
        least = self._factory.settle_seconds if said is None else float(said)
        await desktop.command("settle", seconds=least + _BUSY_SECONDS, least=least, files=(*task.files, *_SETTINGS))

    async def _ask(self, desktop: SandboxedWorker, command: str, **arguments: object) -> dict[str, object]:
        """Let the judge do something with a desktop. Raises EnvironmentFailure, also if the desktop failed one of its steps."""
        judge = await self._opened_judge()
        async with open_tunnel(desktop, PORTS) as tunnel:
            server, chromium, vlc = tunnel.ports
            done = await judge.command(command, address=f"127.0.0.1:{server}:{chromium}:0:{vlc}", **arguments)
        await self._check(desktop, command)
        return done

    async def _check(self, desktop: SandboxedWorker, command: str) -> None:
        """Raise EnvironmentFailure if a desktop failed a step since it was last asked."""
        if faults := (await desktop.command("faults", setup=command == "set_up"))["faults"]:
            raise EnvironmentFailure(f"the desktop failed a step of the {_WORDS[command]}: {faults[0]}")

    async def _opened_judge(self) -> Worker:
        if self._judge is None or self._judge.pid is None:
            opened = await self._around.enter_async_context(self._factory.judges.open(simulation=False))
            assert isinstance(opened, Worker)
            self._judge = opened
        return self._judge


def settled_after(task: Task, seconds: float) -> Task:
    """Return a task that records the fewest seconds before its states are judged, so that a later evaluation waits as the first one did."""
    return msgspec.structs.replace(task, private={**task.private, _SETTLE_KEY: seconds})


def _shows(step: SetupStep) -> bool:
    """Return whether a step starts an application with a window."""
    return step.type == "open" or (step.type == "launch" and opens_window(step.parameters.get("command") or ""))


class OSWorldFactory:
    """Opens environments, and forks of their snapshots."""

    def __init__(self, desktops: SandboxedFactory, judges: EnvironmentFactory, settle_seconds: float = SETTLE_SECONDS) -> None:
        """`judges`: opens workers with the guest `osworld_judge.py`. `settle_seconds`: fewest seconds before a state is judged."""
        self._desktops, self.judges, self.settle_seconds = desktops, judges, settle_seconds
        self.tasks: dict[str, Task | None] = {}
        """Tasks by the ids of snapshots."""
        self.ready: dict[str, Snapshot] = {}
        """Snapshots of the states after set-up, by their task files: setting up takes half a minute and more, forking a second or two."""

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[OSWorldEnvironment]:
        """Open a desktop without a task."""
        async with self._desktops.open(simulation=simulation) as desktop:
            environment = OSWorldEnvironment(self, desktop)
            try:
                yield environment
            finally:
                await environment.close()

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[OSWorldEnvironment]:
        """Open another desktop at the state of a snapshot. Raises EnvironmentFailure if the snapshot is gone."""
        async with self._desktops.fork(snapshot, simulation=simulation) as desktop:
            environment = OSWorldEnvironment(self, desktop)
            environment._task = self.tasks.get(snapshot.id)
            try:
                yield environment
            finally:
                await environment.close()

    def has(self, snapshot: Snapshot) -> bool:
        return self._desktops.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        self.tasks.pop(snapshot.id, None)
        self._desktops.drop(snapshot)


PORTS = (PORT, 9222, 8080)
"""Ports of a machine of OSWorld: its server, Chromium's and VLC's."""
BLANK = Task(id="osworld/blank", instruction="", private={"desktop": "{}"})
"""Task of an empty desktop, which desktop_env sets up further."""


class HostRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of stdin."""

    op: str
    name: str


async def serve(width: int, height: int) -> None:
    """Answer requests until stdin ends. Raises ExactError if there can be no desktop."""
    lines = await _stdin()
    async with (
        desktop_factory(sandbox=True, width=width, height=height, actions="pyautogui", vm_port=PORT) as environments,
        environments.open(simulation=True) as desktop,
        AsyncExitStack() as stack,
    ):
        sockets = stack.enter_context(listening(len(PORTS)))
        assert isinstance(desktop, Worker)
        await desktop.reset(BLANK)
        saved: dict[str, Snapshot] = {"init_state": await desktop.snapshot()}
        said: dict[str, object] = {}
        while True:
            async with open_tunnel(desktop, PORTS, sockets) as tunnel:
                _say({"ports": tunnel.ports, **said})
                line = await lines.readline()
            if not line:
                return
            try:
                asked = msgspec.json.decode(line, type=HostRequest)
                if asked.op == "save":
                    saved[asked.name] = await desktop.snapshot()
                elif asked.name in saved:
                    await desktop.restore(saved[asked.name])
                else:
                    raise msgspec.ValidationError(f"there is no snapshot {asked.name!r}: there are {', '.join(saved)}")
                said = {}
            except msgspec.MsgspecError as error:
                said = {"error": str(error)}


def _say(told: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def main() -> int:
    """Serve one desktop. Return the exit status."""
    try:
        asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
    except ExactError as error:
        _say({"error": str(error)})
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
