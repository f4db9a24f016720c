"""An environment in a process of its own, in any interpreter: the host's side.

environments = WorkerFactory(Factory("shop.environment:make", python=Path("venv/bin/python")))
async with environments.open(simulation=True) as environment:
    observation = await environment.reset(task)

What runs over there is described in `guest.py`. A guest that hangs, dies or breaks the protocol is killed with all it started;
the call raises EnvironmentFailure, and the next `reset` gets a fresh guest.
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
from exact.environments.process.cpu import processor_seconds
from exact.environments.process.process import GuestProcess, Launcher, ProcessLauncher
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.task import Outcome, Score, Task

T = TypeVar("T")


class EnvironmentSpec(msgspec.Struct, frozen=True):
    """What makes the environment over there, and where."""

    name: str
    """`module:factory`, or `file.py:factory`; see `guest.py` for what it gives."""
    arguments: dict[str, Any] = {}
    """Plain data that it is called with, besides `speculative`."""
    python: Path = Path(sys.executable)
    """The interpreter: 3.9 or newer, of the virtual environment that the factory needs."""
    paths: tuple[Path, ...] = ()
    """Folders to import from, before all others."""
    env: dict[str, str] = {}
    """Variables that it needs, besides the usual ones; ours do not cross."""

    @property
    def file(self) -> Path | None:
        """The file that the factory is in, where it is given by file."""
        module = self.name.rpartition(":")[0]
        return Path(module) if module.endswith(".py") else None

    @property
    def command(self) -> list[str]:
        """The command line of the guest."""
        paths = [part for path in self.paths for part in ("--path", str(path))]
        return [str(self.python), guest.__file__, *paths, self.name]


class GuestTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that one call may take; then the guest is killed."""

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


class _Guest:
    """A running guest and the channel to it."""

    def __init__(self, process: GuestProcess) -> None:
        self.process = process
        self.channel = Channel(process.stdout, process.stdin)
        self.mark = f"{secrets.token_hex(4)}:"
        """Before the ids of its snapshots, so that those of another guest are told apart."""

    async def end(self) -> None:
        try:
            await self.channel.close()
        finally:
            await self.process.end()


class Worker:
    """The environment of a guest. Opened by WorkerFactory."""

    def __init__(
        self,
        factory: EnvironmentSpec,
        launch: Launcher,
        *,
        simulation: bool,
        limits: GuestTimeouts | None = None,
        actions: ActionSpace | None = None,
    ) -> None:
        """`actions`: the grammar to use in place of what the guest tells, which has no rules for the canonical form of arguments."""
        self._factory, self._launch, self._simulation = factory, launch, simulation
        self._limits, self._given = limits or GuestTimeouts(), actions
        self._guest: _Guest | None = None
        self._lost = "it was not opened"
        self._unsure = ""
        self._greeting: _Greeting | None = None
        self._actions = ActionSpace(())
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """Known once it is open."""
        return self._greeted().capabilities

    @property
    def actions(self) -> ActionSpace:
        """Known once it is open."""
        self._greeted()
        return self._given or self._actions

    @property
    def pid(self) -> int | None:
        """Of the guest's process; None while there is none."""
        return self._guest.process.pid if self._guest else None

    @property
    def processor(self) -> float:
        """Processor seconds that the guest and what it started have taken; 0 while there is none."""
        return processor_seconds(self.pid) if self.pid else 0.0

    async def open(self) -> None:
        """Start a guest and let it make the environment. Raises EnvironmentFailure, and UsageError that the factory raised."""
        await self._take(await self._launch.start(self._factory.command, self._factory.env))

    async def _take(self, process: GuestProcess) -> None:
        """Go on with a guest that was just started, or came back from a snapshot, once it answers; it is ended if it does not."""
        self._guest, self._lost, self._unsure = _Guest(process), "", "no episode was begun: reset it first"
        try:
            opening = {"simulation": self._simulation, "arguments": self._factory.arguments}
            greeting = _read("open", await self._call("open", opening, self._limits.open), _Greeting)
            self._meet(greeting)
        except BaseException:
            await self._drop("it did not open")
            raise

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to the task's start, in a fresh guest where the last one was lost."""
        if self._guest is None or self._guest.channel.lost:
            await self._renew()
        return await self._move("reset", {"task": task}, self._limits.reset, Observation)

    async def step(self, action: Action) -> Transition:
        """Carry out one action and settle. Raises ActionError and EnvironmentFailure."""
        self._sure()
        if action.name not in self.actions.verbs:
            raise ActionError(f"unknown action {action}: valid: {', '.join(self.actions.verbs)}")
        return await self._move("step", {"action": action}, self._limits.step, Transition)

    async def snapshot(self) -> Snapshot:
        """A handle on the present state. Raises EnvironmentFailure where the inner environment has none."""
        self._sure()
        taken = _read("snapshot", await self._call("snapshot", {}, self._limits.snapshot), Snapshot)
        return msgspec.structs.replace(taken, id=f"{self._here().mark}{taken.id}")

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to a state of this guest. Raises EnvironmentFailure if it was another one's, or is gone."""
        here = self._here()
        if not snapshot.id.startswith(here.mark):
            raise EnvironmentFailure(f"snapshot {snapshot.id!r} is gone with the guest that took it: return by reset and replay")
        inner = msgspec.structs.replace(snapshot, id=snapshot.id.removeprefix(here.mark))
        return await self._move("restore", {"snapshot": inner}, self._limits.restore, Observation)

    async def evaluate(self, outcome: Outcome) -> Score:
        """The verdict of the inner environment."""
        self._sure()
        return _read("evaluate", await self._call("evaluate", {"outcome": outcome}, self._limits.evaluate), Score)

    async def command(self, name: str, **arguments: object) -> dict[str, Any]:
        """What the inner environment's `command` gives: see `guest.py`. Raises EnvironmentFailure, also where it has none."""
        asked = {"name": name, "arguments": arguments}
        return _read("command", await self._call("command", asked, self._limits.evaluate), dict[str, Any])

    async def close(self) -> None:
        """Let the guest close its environment, and end it; at once where it is busy with a call that was cancelled."""
        self._closed = True
        if self._guest is not None and not self._guest.channel.busy:
            with contextlib.suppress(EnvironmentFailure, UsageError):
                await self._call("close", {}, self._limits.close)
        await self._drop("it is closed")

    async def _move(self, op: str, arguments: Mapping[str, object], seconds: float, type: type[T]) -> T:
        """A call after which the state is known if it succeeded, and unknown if it did not, unless it was refused."""
        before, self._unsure = self._unsure, f"the state is unknown, for a {op} failed: reset it or restore a snapshot"
        try:
            moved = _read(op, await self._call(op, arguments, seconds), type)
        except ActionError:
            self._unsure = before
            raise
        except asyncio.CancelledError:
            self._unsure = f"the state is unknown, for a {op} was cancelled: reset it or restore a snapshot"
            raise
        self._unsure = ""
        return moved

    async def _call(self, op: str, arguments: Mapping[str, object], seconds: float) -> object:
        here = self._here()
        try:
            async with asyncio.timeout(seconds):
                return await here.channel.call(op, _built(arguments))
        except TimeoutError as error:
            await self._lose(here, f"{op} did not end within {seconds:g} s", error)
        except EnvironmentFailure as error:
            if not here.channel.lost:
                raise
            await self._lose(here, f"{op} failed: {here.channel.lost}", error)

    async def _lose(self, here: _Guest, why: str, error: BaseException) -> NoReturn:
        """Kill a guest and say what was with it."""
        here.process.kill()
        await self._drop(f"{why} ({await here.process.why()})")
        raise EnvironmentFailure(f"the guest was lost: {self._lost}; reset it or open a fresh one") from error

    async def _drop(self, why: str) -> None:
        """Let the guest go, also where we are cancelled meanwhile."""
        here, self._guest = self._guest, None
        if here is not None:
            self._lost = why
            if here.channel.busy or here.channel.lost:
                here.process.kill()
            ending = asyncio.ensure_future(here.end())
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                here.process.kill()
                await ending
                raise

    async def _renew(self) -> None:
        if self._closed:
            raise EnvironmentFailure("this worker is closed: open a fresh one")
        await self._drop("it ended")
        await self.open()

    def _here(self) -> _Guest:
        if self._guest is None:
            raise EnvironmentFailure(f"there is no guest: {self._lost}; reset it or open a fresh one")
        return self._guest

    def _sure(self) -> None:
        self._here()
        if self._unsure:
            raise EnvironmentFailure(self._unsure)

    def _greeted(self) -> _Greeting:
        if self._greeting is None:
            raise UsageError("a worker tells its capabilities and actions once it is open: open it with WorkerFactory")
        return self._greeting

    def _meet(self, greeting: _Greeting) -> None:
        if greeting.protocol != guest.PROTOCOL:
            raise EnvironmentFailure(f"the guest speaks protocol {greeting.protocol}, this is {guest.PROTOCOL}: run exact's own guest.py")
        if self._greeting is not None and greeting != self._greeting:
            raise EnvironmentFailure("the fresh guest has other capabilities or actions than the one before: make the factory repeatable")
        self._greeting, self._actions = greeting, ActionSpace([_verb(verb) for verb in greeting.actions])
        if self._given is not None and set(self._given.verbs) != set(self._actions.verbs):
            raise UsageError(f"the actions given are not those of the guest: it has {', '.join(self._actions.verbs)}")


class WorkerFactory:
    """Opens workers of one factory, each with a guest of its own."""

    def __init__(
        self,
        factory: EnvironmentSpec,
        *,
        launch: Launcher | None = None,
        limits: GuestTimeouts | None = None,
        actions: ActionSpace | None = None,
        log: Path | None = None,
    ) -> None:
        """`launch`: a sandbox's; by default plain processes, whose stderr is appended to `log`. `actions`: see Worker."""
        self._factory, self._launch = factory, launch or ProcessLauncher(log=log)
        self._limits, self._actions = limits, actions

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Worker]:
        """A fresh guest. Raises EnvironmentFailure where it cannot be started."""
        worker = Worker(self._factory, self._launch, simulation=simulation, limits=self._limits, actions=self._actions)
        await worker.open()
        try:
            yield worker
        finally:
            await worker.close()


def _built(arguments: Mapping[str, object]) -> dict[str, object]:
    return {name: msgspec.to_builtins(value) for name, value in arguments.items()}


def _read(op: str, answer: object, type: type[T]) -> T:
    try:
        return msgspec.convert(answer, type)
    except msgspec.ValidationError as error:
        raise EnvironmentFailure(
            f"what {op} gave does not fit: {error}: exact/environments/process/guest.py says what is expected"
        ) from error


def _verb(told: dict[str, Any]) -> Verb:
    slots = {slot.value: slot for slot in Parameter}
    form = tuple(slots.get(part, part) for part in told["form"])
    return Verb(name=told["name"], form=form, help=told["help"], final=told["final"])
