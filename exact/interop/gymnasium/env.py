"""One environment of exact as `gymnasium.Env`.

Spaces of texts: the observations of an environment, and the actions that it takes.

An event loop in a separate thread, in which sync code runs coroutines one after the other.

The open environment behind a Gymnasium environment, and the episode in it.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401 - registers its own hook at the interpreter's end before ours
import string
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeVar

import msgspec
import numpy

from exact.action import Action, ActionSpace
from exact.benchmarks.ids import join, split
from exact.config import Config, parse
from exact.environments.base import Environment, StateChanged, Transition
from exact.environments.check.suite import possible
from exact.environments.own import AnyEnvironment, opened_factory
from exact.environments.reward import reward_of, with_rewards
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.task import Outcome, Score, Task
from exact.untrusted import open_picture

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.error import ResetNeeded
except ImportError as missing:
    raise UsageError(f"Gymnasium is not installed ({missing}): run `pip install gymnasium`") from missing

LONGEST = 1_000_000
"""Characters of the longest observation. A longer one is cut."""
LONGEST_ACTION = 10_000
DRAWN = (640, 480)
"""Width and height of a drawing of a text, in pixels."""


class GymnasiumEnv(gymnasium.Env[str, str]):
    """One task. Observations and actions are texts; `info` has the rest.

    The reward is that of the environment if it has rewards, else the score in [0, 1] at the end of the episode. `info` holds the task's
    `instruction`, `url`, `title`, `elements`, `actions` (the grammar in words), `screenshot` (bytes of a PNG, or None), and after a step
    `error`, the reason that an action was refused, and `effects`. At the end it holds `is_success`, `score` and `reason`.

    A seed makes the same task again. Without one, each reset draws another from the environment's generator. All work runs in a separate
    thread, so this is usable from sync code and while an event loop runs. `close` ends all processes.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}

    def __init__(
        self,
        task: Task | str,
        *,
        environments: AnyEnvironment | None = None,
        config: Config | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Create an environment. Nothing is opened before the first reset.

        Args:
            task: Id of a benchmark's task or of a toy (`toy/maze`), or a Task. Its seed is replaced by that of each reset.
            environments: Environments of the task; None for those of its suite, or of its start page. Writes are not blocked.
            config: Configuration of the browser and the sandbox, or a mapping as in its file.
            render_mode: `ansi` for the observation's text, `rgb_array` for its screenshot.

        Raises UsageError for another render_mode.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UsageError(f"invalid render_mode {render_mode!r}: give 'ansi' or 'rgb_array'")
        self.render_mode = render_mode
        self.observation_space = AnyText(LONGEST)
        self.action_space = self._samples = ActionText(LONGEST_ACTION)
        self._session = GymnasiumSession(task, config if isinstance(config, Config) else parse(dict(config or {})), environments)
        self._loop: LoopThread | None = None
        self._grammar = ActionSpace(())
        self._seen: Observation | None = None
        self._last: Observation | None = None
        """Last observation, also after the end of an episode."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode. `seed`: that of the task. `options` are not used. Raises EnvironmentFailure, UsageError."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        environment, seen = self._run_loop().run(self._session.reset(drawn))
        self._grammar = environment.actions
        self._show(seen)
        return self._text(), self._info(seen)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out an action, such as `click [3]`.

        One that does not parse or does not fit the state changes nothing: its reward is 0 and `info["error"]` gives the reason. The
        observation is of the present state, even if it had changed by itself. Raises ResetNeeded if no episode is in progress,
        EnvironmentFailure if the environment broke.
        """
        if self._seen is None or self._loop is None:
            raise ResetNeeded("no episode is in progress: call reset first")
        seen, error = self._seen, ""
        try:
            parsed = self._grammar.parse(action)
            transition, reward = self._loop.run(self._session.step(parsed))
        except StateChanged as changed:
            transition, reward, error = changed.came, 0.0, str(changed)
        except ActionError as refused:
            return self._text(), 0.0, False, False, {**self._info(seen), "error": str(refused), "effects": []}
        self._show(transition.observation)
        info = {**self._info(transition.observation), **transition.info, "error": error, "effects": msgspec.to_builtins(transition.effects)}
        if transition.terminated:
            info.update(self._result(parsed))
        return self._text(), reward, transition.terminated, False, info

    def render(self) -> Any:
        """Return the last observation as text, or as an array of height, width and three colours: its screenshot, or its text drawn."""
        if self._last is None or self.render_mode is None:
            return None
        if self.render_mode == "ansi":
            return self._last.text
        from PIL import Image, ImageDraw

        if self._last.screenshot is not None:
            return numpy.asarray(open_picture(self._last.screenshot).convert("RGB"))
        drawn = Image.new("RGB", DRAWN, "white")
        ImageDraw.Draw(drawn).multiline_text((8, 8), self._last.text.encode("latin-1", "replace").decode("latin-1"), fill="black")
        return numpy.asarray(drawn)

    def close(self) -> None:
        """Close the environment and end its thread and processes. May be called twice."""
        loop, self._loop, self._seen = self._loop, None, None
        if loop is not None:
            loop.close()

    def _run_loop(self) -> LoopThread:
        if self._loop is None:
            self._loop = LoopThread(self._session.close)
        return self._loop

    def _show(self, seen: Observation | None) -> None:
        self._seen, self._last = seen, seen or self._last
        found = [] if seen is None else possible(seen, self._grammar)
        going = [action for action in found if not self._grammar.is_final(action)]
        self._samples.possible = tuple(action.key for action in going or found)

    def _text(self) -> str:
        return "" if self._seen is None else self._seen.text[:LONGEST]

    def _result(self, last: Action) -> dict[str, Any]:
        assert self._loop is not None
        score = self._loop.run(self._session.score(last))
        if score is None:
            return {}
        return {"is_success": score.success, "score": score.value, "raw": score.raw, "reason": score.reason}

    def _info(self, seen: Observation | None) -> dict[str, Any]:
        instruction = self._session.task.instruction or (self._last.instruction if self._last else "")
        return {
            "task": self._session.task.id,
            "instruction": instruction,
            "url": seen.url if seen else "",
            "title": seen.title if seen else "",
            "elements": [msgspec.to_builtins(element) for element in seen.elements] if seen else [],
            "actions": self._grammar.describe(),
            "screenshot": seen.screenshot if seen else None,
        }


class AnyText(spaces.Text):
    """All texts of a bounded length, of any characters. Samples are printable ASCII."""

    def __init__(self, max_length: int) -> None:
        """Create a space of texts of at most `max_length` characters."""
        super().__init__(max_length, min_length=0, charset=string.printable)

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length


class ActionText(AnyText):
    """Actions as texts. Samples are actions that the last observation allows, or any text before there is one."""

    def __init__(self, max_length: int) -> None:
        """Create a space of actions of at most `max_length` characters."""
        super().__init__(max_length)
        self.possible: tuple[str, ...] = ()
        """Actions that the last observation allows, as far as grammar and elements show; none that ends the attempt if there are others."""

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw an action. Masks are for texts of characters, and are not used if the possible actions are known."""
        if not self.possible:
            return str(super().sample(mask, probability))
        return self.possible[int(self.np_random.integers(len(self.possible)))]


T = TypeVar("T")

_CLOSING = 60.0
"""Seconds that closing may take before it is given up."""


class LoopThread:
    """A thread whose event loop runs coroutines in one task, so that context managers are entered and left in the same one."""

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the thread. `last`: makes the coroutine that runs when it is closed; it must not refer to the owner of this object."""
        self._loop = asyncio.new_event_loop()
        self._work: asyncio.Queue[tuple[Coroutine[Any, Any, Any], Future[Any]] | None] = asyncio.Queue()
        self._thread = threading.Thread(target=_run, args=(self._loop, self._work, last), name="exact-gymnasium", daemon=True)
        self._thread.start()
        self._finalizer = weakref.finalize(self, _close, self._loop, self._work, self._thread)
        self._finalizer.atexit = False
        _at_exit(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result, or raise its error."""
        future: Future[T] = Future()
        self._loop.call_soon_threadsafe(self._work.put_nowait, (work, future))
        return future.result()

    def close(self) -> None:
        """Run the last coroutine and end the thread. May be called twice."""
        self._finalizer()


_open = weakref.WeakSet[LoopThread]()


def _at_exit(thread: LoopThread) -> None:
    """Close a thread before the interpreter ends, if its owner did not.

    `atexit` is too late: the interpreter has ended all thread pools by then, and closing a browser needs one. concurrent.futures uses the
    same hook of `threading`, whose functions run in the reverse order of their registration.
    """
    if not _open:
        getattr(threading, "_register_atexit", atexit.register)(_close_all)
    _open.add(thread)


def _close_all() -> None:
    for thread in list(_open):
        thread.close()


def _run(
    loop: asyncio.AbstractEventLoop,
    queue: asyncio.Queue[tuple[Coroutine[Any, Any, Any], Future[Any]] | None],
    last: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(_serve(queue, last))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def _serve(
    queue: asyncio.Queue[tuple[Coroutine[Any, Any, Any], Future[Any]] | None], last: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    try:
        while (asked := await queue.get()) is not None:
            work, future = asked
            try:
                future.set_result(await work)
            except BaseException as error:  # noqa: BLE001 - raised in the thread that asked
                future.set_exception(error)
    finally:
        await last()


def _close(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[Any], thread: threading.Thread) -> None:
    if thread.is_alive():
        loop.call_soon_threadsafe(queue.put_nowait, None)
        thread.join(_CLOSING)


TOY = "toy/"


class GymnasiumSession:
    """Opens the environment of a task when it is first needed, and again after it broke. All methods run in one event loop."""

    def __init__(self, task: Task | str, config: Config, environments: AnyEnvironment | None) -> None:
        self._task, self._config, self._given = task, config, environments
        self._stack = AsyncExitStack()
        self._environment: Environment | None = None
        self._opened: str = ""
        """Task that the environment was opened for: only a toy's depends on the seed."""
        self._taken = list[str]()
        self.task = task if isinstance(task, Task) else Task(id=task, instruction="")

    async def reset(self, seed: int) -> tuple[Environment, Observation]:
        """Begin an episode of a seed. A broken environment is opened again, once. Raises EnvironmentFailure, UsageError."""
        self.task, self._taken = self._seeded(seed), []
        with suppress(EnvironmentFailure):
            environment = await self._open()
            return environment, await environment.reset(self.task)
        await self.close()
        environment = await self._open()
        return environment, await environment.reset(self.task)

    async def step(self, action: Action) -> tuple[Transition, float]:
        """Carry out an action. Return the transition and its reward. Raises ActionError, EnvironmentFailure."""
        assert self._environment is not None
        transition = await self._environment.step(action)
        self._taken.append(action.key)
        return transition, reward_of(self._environment)

    async def score(self, action: Action) -> Score | None:
        """Return the score of the ended episode, whose last action is given; None if nothing evaluates it."""
        assert self._environment is not None
        if not self._environment.capabilities.evaluates:
            return None
        answer = " ".join(map(str, action.args)) if self._environment.actions.is_final(action) else None
        return await self._environment.evaluate(Outcome(actions=tuple(self._taken), answer=answer))

    async def close(self) -> None:
        """Close the environment with all that was opened for it. May be called twice."""
        stack, self._stack, self._environment = self._stack, AsyncExitStack(), None
        await stack.aclose()

    def _seeded(self, seed: int) -> Task:
        from exact.benchmarks import registry
        from exact.environments.toy.known import toy_task

        if isinstance(self._task, Task):
            return msgspec.structs.replace(self._task, id=join(split(self._task.id)[0], seed), seed=seed)
        if self._task.startswith(TOY):
            return msgspec.structs.replace(toy_task(split(self._task)[0].removeprefix(TOY), seed), id=join(split(self._task)[0], seed))
        [task] = registry.own_suites([self._task])
        return registry.task(join(split(task)[0], seed))

    async def _open(self) -> Environment:
        toy = isinstance(self._task, str) and self._task.startswith(TOY)
        wanted = self.task.id if toy else "any"
        if self._environment is not None and self._opened == wanted:
            return self._environment
        await self.close()
        factory = await self._stack.enter_async_context(opened_factory(self._environments(toy)))
        environment = await self._stack.enter_async_context(factory.open(simulation=False))
        self._environment, self._opened = with_rewards(environment), wanted
        return self._environment

    def _environments(self, toy: bool) -> AnyEnvironment:
        from exact.benchmarks.open import open_environments
        from exact.environments.toy.factory import ToyFactory
        from exact.environments.toy.known import toy_graph
        from exact.library.tasks import is_of_suite

        if self._given is not None:
            return self._given
        if toy:
            return ToyFactory(toy_graph(split(str(self._task))[0].removeprefix(TOY), self.task.seed))
        return open_environments(self.task, self._config, benchmark=is_of_suite(self.task))
