"""An environment in a separate process, in any interpreter: the host's side.

environments = WorkerFactory(EnvironmentSpec("shop.environment:make", python=Path("venv/bin/python")))
async with environments.open(simulation=True) as environment:
    observation = await environment.reset(task)

`guest.py` describes the guest's side. A guest that hangs, dies or violates the protocol is killed with all processes that it started; the
call raises EnvironmentFailure, and the next `reset` starts a fresh guest.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.environments.base import Capabilities, Snapshot, Transition
from exact.environments.process import guest
from exact.environments.process.channel import Channel
from exact.environments.process.process import GuestProcess, Launcher, ProcessLauncher, processor_seconds
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.slowness import Limit
from exact.task import Outcome, Score, Task

T = TypeVar("T")


class EnvironmentSpec(msgspec.Struct, frozen=True):
    """Source of a guest's environment: factory, arguments and interpreter."""

    name: str
    """Factory, `module:name` or `file.py:name`. `guest.py` describes its result."""
    arguments: dict[str, Any] = {}
    """Keyword arguments of the factory: plain data. The guest adds `simulation` if the factory takes it."""
    python: Path = Path(sys.executable)
    """Python 3.9 or newer, of the virtual environment that the factory needs."""
    paths: tuple[Path, ...] = ()
    """Folders to import from first."""
    env: dict[str, str] = {}
    """Environment variables of the guest, added to a fixed list of ours; other variables of ours are not passed on."""
    shown: tuple[Path, ...] | None = None
    """The part of `paths` that a sandbox shows. None: all of them."""

    @property
    def file(self) -> Path | None:
        """File of the factory. None if it is named by module."""
        module = self.name.rpartition(":")[0]
        return Path(module) if module.endswith(".py") else None

    @property
    def command(self) -> list[str]:
        """Command line of the guest."""
        paths = [part for path in self.paths for part in ("--path", str(path))]
        return [str(self.python), guest.__file__, *paths, self.name]


class GuestTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that one call of each kind may take; then the guest is killed."""

    open: float = 120.0
    reset: float = 120.0
    step: float = 60.0
    snapshot: float = 60.0
    restore: float = 60.0
    evaluate: float = 120.0
    close: float = 10.0


class _Greeting(msgspec.Struct):
    protocol: int
    python: str
    capabilities: Capabilities
    actions: list[dict[str, Any]]


class _RewardedTransition(Transition, frozen=True, kw_only=True):
    """A guest's result of a step, with the reward that training reads."""

    reward: float | None = None


class _Guest:
    """A running guest process and the channel to it."""

    def __init__(self, process: GuestProcess) -> None:
        self.process = process
        self.channel = Channel(process.stdout, process.stdin)
        self.mark = f"{secrets.token_hex(4)}:"
        """Prefix of the ids of its snapshots, which distinguishes them from those of another guest."""

    async def end(self) -> None:
        """Close the channel and end the process."""
        try:
            await self.channel.close()
        finally:
            await self.process.end()


class Worker:
    """Environment whose work is done in a guest. Opened by WorkerFactory."""

    def __init__(
        self,
        spec: EnvironmentSpec,
        launcher: Launcher,
        *,
        simulation: bool,
        timeouts: GuestTimeouts | None = None,
        actions: ActionSpace | None = None,
    ) -> None:
        """Create a worker without a guest.

        `actions`: grammar that replaces the one that the guest reports, which has no rules for the canonical form of arguments.
        """
        self._spec, self._launcher, self._simulation = spec, launcher, simulation
        self._timeouts, self._own_actions = timeouts or GuestTimeouts(), actions
        self._guest: _Guest | None = None
        self._lost = "it was not opened"
        self._unknown = ""
        self._greeting: _Greeting | None = None
        self._actions = ActionSpace(())
        self._closed = False
        self._reward: float | None = 0.0
        """Reward of the last step. None if the guest gave none."""

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities that the guest reported. Raises UsageError before `open`."""
        return self._opened().capabilities

    @property
    def actions(self) -> ActionSpace:
        """Grammar of actions. Raises UsageError before `open`."""
        self._opened()
        return self._own_actions or self._actions

    @property
    def pid(self) -> int | None:
        """Process id of the guest. None while there is none."""
        return self._guest.process.pid if self._guest else None

    @property
    def processor(self) -> float:
        """CPU seconds that the guest and its descendants have used. 0 while there is none."""
        return processor_seconds(self.pid) if self.pid else 0.0

    async def open(self) -> None:
        """Start a guest and let it create the environment. Raises EnvironmentFailure, and UsageError if the factory raised one."""
        await self._take(await self._launcher.start(self._spec.command, self._spec.env))

    async def _take(self, process: GuestProcess) -> None:
        """Use a guest that was just started or restored, once it answers; it is ended if it does not."""
        self._guest, self._lost, self._unknown = _Guest(process), "", "no episode has begun: reset it first"
        try:
            opening = {"simulation": self._simulation, "arguments": self._spec.arguments}
            greeting = _parse("open", await self._call("open", opening, self._timeouts.open), _Greeting)
            self._check_greeting(greeting)
        except BaseException:
            await self._drop("it did not open")
            raise

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to the task's start, in a fresh guest if the last one was lost."""
        if self._guest is None or self._guest.channel.lost:
            await self._renew()
        self._reward = 0.0
        return await self._move("reset", {"task": task}, self._timeouts.reset, Observation)

    async def step(self, action: Action) -> Transition:
        """Carry out one action and wait until the environment has settled. Raises ActionError and EnvironmentFailure."""
        self._require_known_state()
        if action.name not in self.actions.verbs:
            raise ActionError(f"unknown action {action}: valid: {', '.join(self.actions.verbs)}")
        moved = await self._move("step", {"action": action}, self._timeouts.step, _RewardedTransition)
        self._reward = moved.reward
        return Transition(observation=moved.observation, terminated=moved.terminated, effects=moved.effects, info=moved.info)

    def reward(self) -> float:
        """Return the reward of the last step, as the guest gave it. Raises UsageError if it gave none."""
        if self._reward is None:
            raise UsageError("this environment gives no rewards: its steps have no `reward`, so choose another value.kind")
        return self._reward

    async def snapshot(self) -> Snapshot:
        """Take a snapshot of the present state. Raises EnvironmentFailure if the guest's environment has none."""
        self._require_known_state()
        taken = _parse("snapshot", await self._call("snapshot", {}, self._timeouts.snapshot), Snapshot)
        return msgspec.structs.replace(taken, id=f"{self._running().mark}{taken.id}")

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to a state of this guest. Raises EnvironmentFailure if the snapshot is another guest's, or gone."""
        running = self._running()
        if not snapshot.id.startswith(running.mark):
            raise EnvironmentFailure(f"snapshot {snapshot.id!r} is gone with the guest that took it: return by reset and replay")
        inner = msgspec.structs.replace(snapshot, id=snapshot.id.removeprefix(running.mark))
        self._reward = 0.0
        return await self._move("restore", {"snapshot": inner}, self._timeouts.restore, Observation)

    async def evaluate(self, outcome: Outcome) -> Score:
        """Return the score of the guest's environment."""
        self._require_known_state()
        return _parse("evaluate", await self._call("evaluate", {"outcome": outcome}, self._timeouts.evaluate), Score)

    async def command(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call `command` of the guest's environment (see `guest.py`). Raises EnvironmentFailure, also if it lacks one."""
        asked = {"name": name, "arguments": arguments}
        return _parse("command", await self._call("command", asked, self._timeouts.evaluate), dict[str, Any])

    async def close(self) -> None:
        """Let the guest close its environment, then end it. A guest that is busy with a cancelled call is killed."""
        self._closed = True
        if self._guest is not None and not self._guest.channel.busy:
            with contextlib.suppress(EnvironmentFailure, UsageError):
                await self._call("close", {}, self._timeouts.close)
        await self._drop("it is closed")

    async def _move(self, op: str, arguments: Mapping[str, object], seconds: float, type: type[T]) -> T:
        """Make a call that changes the state. If it fails with anything but ActionError, the state is unknown afterwards."""
        before, self._unknown = self._unknown, f"the state is unknown because a {op} failed: reset it or restore a snapshot"
        try:
            moved = _parse(op, await self._call(op, arguments, seconds), type)
        except ActionError:
            self._unknown = before
            raise
        except asyncio.CancelledError:
            self._unknown = f"the state is unknown because a {op} was cancelled: reset it or restore a snapshot"
            raise
        self._unknown = ""
        return moved

    async def _call(self, op: str, arguments: Mapping[str, object], seconds: float) -> object:
        running = self._running()
        try:
            async with Limit(seconds):
                return await running.channel.call(op, _to_data(arguments))
        except TimeoutError as error:
            await self._lose(running, f"{op} did not end within {seconds:g} s", error)
        except EnvironmentFailure as error:
            if not running.channel.lost:
                raise
            await self._lose(running, f"{op} failed: {running.channel.lost}", error)

    async def _lose(self, running: _Guest, why: str, error: BaseException) -> NoReturn:
        """Kill a guest and raise EnvironmentFailure with the reason of its loss."""
        running.process.kill()
        await self._drop(f"{why} ({await running.process.why()})")
        raise EnvironmentFailure(f"the guest was lost: {self._lost}; reset it or open a fresh one") from error

    async def _drop(self, why: str) -> None:
        """End the guest, even if this call is cancelled meanwhile. `why`: reason for later messages."""
        running, self._guest = self._guest, None
        if running is not None:
            self._lost = why
            if running.channel.busy or running.channel.lost:
                running.process.kill()
            ending = asyncio.ensure_future(running.end())
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                running.process.kill()
                await ending
                raise

    async def _renew(self) -> None:
        if self._closed:
            raise EnvironmentFailure("this worker is closed: open a fresh one")
        await self._drop("it ended")
        await self.open()

    def _running(self) -> _Guest:
        if self._guest is None:
            raise EnvironmentFailure(f"there is no guest: {self._lost}; reset it or open a fresh one")
        return self._guest

    def _require_known_state(self) -> None:
        self._running()
        if self._unknown:
            raise EnvironmentFailure(self._unknown)

    def _opened(self) -> _Greeting:
        if self._greeting is None:
            raise UsageError("a worker has capabilities and actions once it is open: open it with WorkerFactory")
        return self._greeting

    def _check_greeting(self, greeting: _Greeting) -> None:
        if greeting.protocol != guest.PROTOCOL:
            raise EnvironmentFailure(f"the guest speaks protocol {greeting.protocol}, this is {guest.PROTOCOL}: run exact's own guest.py")
        if self._greeting is not None and greeting != self._greeting:
            raise EnvironmentFailure("the fresh guest has other capabilities or actions than the last one: make the factory repeatable")
        self._greeting, self._actions = greeting, ActionSpace([_verb(verb) for verb in greeting.actions])
        if self._own_actions is not None and set(self._own_actions.verbs) != set(self._actions.verbs):
            raise UsageError(f"the actions given are not those of the guest: it has {', '.join(self._actions.verbs)}")


class WorkerFactory:
    """Opens workers of one specification, each with a separate guest."""

    def __init__(
        self,
        spec: EnvironmentSpec,
        *,
        launcher: Launcher | None = None,
        timeouts: GuestTimeouts | None = None,
        actions: ActionSpace | None = None,
        log: Path | None = None,
    ) -> None:
        """Create a factory.

        `launcher`: starts the guests; by default as plain processes, whose stderr is appended to `log`. `actions`: see Worker.
        """
        self._spec, self._launcher = spec, launcher or ProcessLauncher(log=log)
        self._timeouts, self._actions = timeouts, actions

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Worker]:
        """Open a worker with a fresh guest. Raises EnvironmentFailure if it cannot be started."""
        worker = Worker(self._spec, self._launcher, simulation=simulation, timeouts=self._timeouts, actions=self._actions)
        await worker.open()
        try:
            yield worker
        finally:
            await worker.close()


def _to_data(arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: msgspec.to_builtins(value) for name, value in arguments.items()}


def _parse(op: str, answer: object, type: type[T]) -> T:
    try:
        return msgspec.convert(answer, type)
    except msgspec.ValidationError as error:
        raise EnvironmentFailure(
            f"the result of {op} does not fit: {error}: exact/environments/process/guest.py says what is expected"
        ) from error


def _verb(fields: dict[str, Any]) -> Verb:
    parameters = {parameter.value: parameter for parameter in Parameter}
    form = tuple(parameters.get(part, part) for part in fields["form"])
    return Verb(name=fields["name"], form=form, help=fields["help"], final=fields["final"])
