"""The far end of a worker: serves one environment, sync or async, by frames over stdin and stdout.

Run by path, `python guest.py [--path FOLDER]... MODULE:FACTORY` (or FILE.py:FACTORY), by any Python from 3.9 on. It needs the standard
library and no package, exact included. The environment's output goes to stderr. `python guest.py --run COMMAND...` becomes another
program instead; when that program ends, all processes that it started end too.

The factory is called with the arguments that the host sends, and with `simulation` (bool) if it takes it. It returns, or is a coroutine
that returns, one of

- an environment of exact's own contract (`exact.environments.base`), an EnvironmentFactory, or an async context manager of either; or
- any object with methods of the same names, `async def` or not, that take and return plain data in the form of exact's structs:
  `reset(task) -> observation`, `step(action) -> transition`, and optionally `snapshot() -> snapshot`, `restore(snapshot) ->
  observation`, `observe() -> observation`, `evaluate(outcome) -> score`, `close()`. `actions` is a list of verbs, `{"name": "click",
  "form": ["[id]"], "help": ""}`; a form's parts are `[id]`, `"text"`, `number` or a fixed word. `capabilities` may be left out: they are
  then derived from the methods, with `isolated` False; a slow environment states its `call_seconds` (30). Arguments are dicts: a task has
  `id`, `instruction`, `start`, `seed`, `origins`, `metadata`; an action `name`, `args`, `key`, `elements`; a snapshot `id`, `fidelity`,
  `fingerprint`; an outcome `actions`, `answer`.
  Results are dicts, or dataclasses with those fields: an observation needs `text`, and gets a `fingerprint` of URL and text if it has none;
  its `screenshot` is bytes; a `box` is `[x, y, width, height]`; a transition is `{"observation": ... or None, "terminated": False,
  "effects": [...], "info": {...}}`, with texts as values of `info`, and if the environment has rewards, `"reward": 0.0`, or a method
  `reward() -> float`; a score needs `value` and `success`. `observe` is called if the whole process was restored from a snapshot of its
  memory; without it, the last observation is used. `command(name, arguments) -> dict` does anything else that leaves the state unchanged.

An exception named ActionError (any class of that name) says that the action does not fit and the state is unchanged. A sync environment
is called in the main thread, in which no event loop runs. Factories, capabilities and snapshots may still use the names of earlier
versions: `speculative`, `sealed` and fidelity `world`.

A frame: `exg1`, bytes of JSON, bytes of binary parts (two unsigned 32-bit numbers, big-endian), the JSON, the parts. In the JSON, `binary`
lists for each part its place (`at`, keys from the top) and its `bytes`. A request has `id`, `op`, `arguments`; its reply has the
same `id`, and `value` or `error` (`type`, `kinds`: the names of its classes, `message`, `traceback`). EOF ends the guest and all processes
that it started.
"""

# ruff: noqa: E402 - stdout is moved away before anything else is imported

from __future__ import annotations

import os
import sys


def _take_over() -> tuple[int, int]:
    """Reserve stdin and stdout for frames and return them. From then on fd 0 is empty and fd 1 is stderr."""
    pipes = os.dup(0), os.dup(1)  # not inherited by the environment's processes
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return pipes


if __name__ == "__main__":  # before anything else is imported
    if sys.version_info < (3, 9):  # noqa: UP036
        sys.exit("Python %s is too old for a guest: name one of 3.9 or newer" % sys.version.split()[0])  # noqa: UP031
    _PIPES = _take_over()
    if sys.path[:1] == [os.path.dirname(os.path.realpath(__file__))]:  # noqa: PTH120 - our neighbours are not top-level modules
        sys.path[0] = os.getcwd()  # noqa: PTH109

import argparse
import asyncio
import contextlib
import dataclasses
import enum
import hashlib
import importlib
import importlib.util
import inspect
import json
import queue
import signal
import struct
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, BinaryIO

PROTOCOL = 1
"""Version that the guest reports when it opens."""
MAGIC = b"exg1"
LIMIT = 256 << 20
"""Largest frame, in bytes."""
SIZES = struct.Struct(">II")
TOKEN = "EXACT_GUEST"
"""Environment variable that marks a guest and all processes that it started, so that they can be found and ended."""

_PDEATHSIG = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""
_ENV_END = 48
"""Index of the field env_end of /proc/PID/stat, counted behind the program's name (proc(5))."""
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ) if sys.platform != "win32" else ()
"""Signals that Python ignores, and so would the program that it becomes."""
_OPS = ("reset", "step", "snapshot", "restore", "observe", "evaluate", "command", "close")
_OLD_ARGUMENT = "speculative"
"""Name of a factory's argument `simulation` in earlier versions."""
_OLD_KEYS = {"sealed": "isolated"}
_OLD_FIDELITIES = {"world": "full"}
"""Keys and fidelities of capabilities and snapshots in earlier versions, with their present names."""


def pack_frame(message: dict[str, Any], limit: int = LIMIT) -> list[bytes]:
    """Return the frame of a message, in pieces. Raises ValueError and TypeError for data that is not plain, or is too large."""
    message, parts, binary = dict(message), [], []
    for at, part in _take_bytes(message, ()):
        binary.append({"at": at, "bytes": len(part)})
        parts.append(part)
    if binary:
        message["binary"] = binary
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, default=_plain, separators=(",", ":")).encode("utf-8", "replace")
    rest = sum(map(len, parts))
    if len(text) + rest > limit:
        raise ValueError(f"a frame of {len(text) + rest} bytes is more than {limit}")
    return [MAGIC + SIZES.pack(len(text), rest) + text, *parts]


def _take_bytes(message: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Take bytes out of nested dicts and yield their paths and contents. Only `message` itself is changed."""
    for key, value in message.items():
        if not isinstance(value, (dict, list, tuple, str, int, float, bytes, type(None))):
            value = message[key] = _plain(value)
        if isinstance(value, bytes):
            message[key] = None
            yield (*path, key), value
        elif isinstance(value, dict):
            message[key] = dict(value)
            yield from _take_bytes(message[key], (*path, key))


def _plain(value: Any) -> Any:
    """Convert an object to plain data, one level deep. Raises TypeError."""
    if hasattr(value, "__struct_fields__"):
        return sys.modules["msgspec"].to_builtins(value, builtin_types=(bytes,))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if callable(getattr(value, "item", None)):  # a number of NumPy's
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be sent to the host: give dicts, lists, texts, numbers, and bytes as a screenshot")


def _fields(value: Any) -> dict[str, Any]:
    """Return a result as a dict."""
    return dict(value if isinstance(value, dict) else _plain(value))


def _renamed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return capabilities or a snapshot with the names of earlier versions replaced by the present ones."""
    fields = {_OLD_KEYS.get(name, name): value for name, value in fields.items()}
    if "fidelity" in fields:
        fields["fidelity"] = _OLD_FIDELITIES.get(fields["fidelity"], fields["fidelity"])
    return fields


class _PlainData:
    """An environment of exact's own contract behind plain data: structs inside, dicts outside."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.capabilities, self.actions = inner, inner.capabilities, inner.actions
        self._struct: Callable[..., Any] = importlib.import_module("msgspec").convert
        if hasattr(inner, "reward"):
            self.reward = inner.reward
        self._base, self._task = importlib.import_module("exact.environments.base"), importlib.import_module("exact.task")

    async def reset(self, task: dict[str, Any]) -> Any:
        return await self.inner.reset(self._struct(task, self._task.Task))

    async def step(self, action: dict[str, Any]) -> Any:
        return await self.inner.step(self.actions.action(action["name"], *action["args"]))

    async def snapshot(self) -> Any:
        return await self.inner.snapshot()

    async def restore(self, snapshot: dict[str, Any]) -> Any:
        return await self.inner.restore(self._struct(snapshot, self._base.Snapshot))

    async def evaluate(self, outcome: dict[str, Any]) -> Any:
        return await self.inner.evaluate(self._struct(outcome, self._task.Outcome))

    async def close(self) -> None:
        await self.inner.close()


class GuestServer:
    """Answers requests to one environment, one at a time."""

    def __init__(self, made: Any, *, simulation: bool) -> None:
        """Create a server that is not open. `made`: the result of the factory."""
        self._made, self._simulation = made, simulation
        self._around = contextlib.AsyncExitStack()
        self._environment: Any = None
        self._observation: dict[str, Any] | None = None

    @property
    def awaits(self) -> bool:
        """Return whether the environment needs an event loop."""
        return not hasattr(self._made, "step") or inspect.iscoroutinefunction(self._made.step)

    async def answer(self, message: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
        """Carry out a request and send the reply."""
        try:
            value = await self._do(message["op"], message["arguments"])
            send({"id": message["id"], "value": value})
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any error of foreign code crosses as data
            send({"id": message["id"], "error": error_data(error)})

    async def _do(self, op: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        if op == "open":
            return await self._open()
        method = getattr(self._environment, op, None) if op in _OPS else None
        if op == "close":
            await self._close(method)
            return None
        if op == "observe" and method is None:
            return self._last_observation()
        if method is None:
            raise NotImplementedError(f"this environment has no {op}")
        result = _fields(await _resolve(method(**arguments)))
        if op == "snapshot":
            result = _renamed(result)
        if op in ("reset", "restore", "observe"):
            self._observation = result = _with_fingerprint(result)
        if op == "step":
            if "reward" not in result and callable(getattr(self._environment, "reward", None)):
                result["reward"] = float(await _resolve(self._environment.reward()))
            seen = result.get("observation")
            self._observation = result["observation"] = None if seen is None else _with_fingerprint(_fields(seen))
        return result

    def _last_observation(self) -> dict[str, Any]:
        """Return the last observation."""
        if self._observation is None:
            raise RuntimeError("there is nothing to observe: reset first")
        return self._observation

    async def _open(self) -> dict[str, Any]:
        """Open the environment and describe it. A guest that is open, such as a restored one, only describes it again."""
        if self._environment is None:
            made = await _resolve(self._made)
            while not hasattr(made, "step"):
                around = made if hasattr(made, "__aenter__") else made.open(simulation=self._simulation)
                made = await self._around.enter_async_context(around)
            ours = sys.modules.get("exact.action")
            self._environment = _PlainData(made) if ours and isinstance(made.actions, ours.ActionSpace) else made
        verbs = [_verb(verb) for verb in _verbs(self._environment.actions)]
        return {"protocol": PROTOCOL, "python": sys.version.split()[0], "capabilities": _capabilities(self._environment), "actions": verbs}

    async def _close(self, method: Callable[[], Any] | None) -> None:
        self._environment = None
        async with self._around:
            if method is not None:
                await _resolve(method())


async def _resolve(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _with_fingerprint(observation: dict[str, Any]) -> dict[str, Any]:
    if "fingerprint" not in observation:
        seen = f"{observation.get('url', '')}\n{observation.get('text', '')}".encode("utf-8", "replace")
        observation["fingerprint"] = hashlib.blake2b(seen, digest_size=16).hexdigest()
    return observation


def _capabilities(environment: Any) -> dict[str, Any]:
    declared = getattr(environment, "capabilities", None)
    if declared is not None:
        return _renamed(_fields(declared))
    fidelity = "full" if hasattr(environment, "snapshot") else "replay"
    return {"fidelity": fidelity, "isolated": False, "evaluates": hasattr(environment, "evaluate")}


def _verbs(actions: Any) -> list[Any]:
    verbs = getattr(actions, "verbs", actions)
    return list(verbs.values() if isinstance(verbs, dict) else verbs)


def _verb(verb: Any) -> dict[str, Any]:
    fields = verb if isinstance(verb, dict) else {name: getattr(verb, name) for name in ("name", "form", "help", "final")}
    form = [part.value if isinstance(part, enum.Enum) else part for part in fields.get("form", ())]
    return {"name": fields["name"], "form": form, "help": fields.get("help", ""), "final": fields.get("final", False)}


def error_data(error: BaseException) -> dict[str, Any]:
    """Return an exception as plain data."""
    kind = type(error)
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ of foreign code
        message = "(no message)"
    kinds = [each.__name__ for each in kind.__mro__ if each not in (BaseException, object)]
    lines = traceback.format_exception(kind, error, error.__traceback__)
    return {"type": kind.__name__, "kinds": kinds, "message": message, "traceback": "".join(lines)}


def make_environment(factory: str, *, simulation: bool, arguments: dict[str, Any]) -> Any:
    """Call a factory, `module:name` or `file.py:name`, and return its result."""
    module, _, name = factory.rpartition(":")
    function: Any = _module(module)
    for part in name.split("."):
        function = getattr(function, part)
    takes = inspect.signature(function).parameters
    if _OLD_ARGUMENT in takes:
        arguments = {**arguments, _OLD_ARGUMENT: simulation}
    elif "simulation" in takes or any(each.kind is each.VAR_KEYWORD for each in takes.values()):
        arguments = {**arguments, "simulation": simulation}
    return function(**arguments)


def _module(name: str) -> Any:
    if not name.endswith(".py"):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("guest_environment", name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} cannot be loaded")
    module = sys.modules["guest_environment"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_request(source: BinaryIO) -> dict[str, Any]:
    """Read the next request. Raises EOFError at the end of the stream, ValueError for data that is not a request."""
    head = source.read(len(MAGIC) + SIZES.size)
    if len(head) < len(MAGIC) + SIZES.size:
        raise EOFError
    size, rest = SIZES.unpack(head[len(MAGIC) :])
    if head[: len(MAGIC)] != MAGIC or rest or size > LIMIT:
        raise ValueError("no request")
    message: dict[str, Any] = json.loads(source.read(size))
    return message


def write_frame(target: int, frame: list[bytes]) -> None:
    """Write a whole frame, however little the pipe accepts at a time."""
    for piece in frame:
        left = memoryview(piece)
        while left:
            left = left[os.write(target, left) :]


def end_group() -> None:
    """End this process and its group at once."""
    try:
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
    finally:
        os._exit(0)


def _listen(source: BinaryIO, deliver: Callable[[dict[str, Any]], None]) -> None:
    """Deliver requests until the host is gone, also while the environment is busy."""
    try:
        while True:
            deliver(read_request(source))
    except (EOFError, ValueError, OSError, RuntimeError):  # RuntimeError: the loop is closed
        end_group()


def _run_sync(answer: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits."""
    with contextlib.suppress(StopIteration):
        answer.send(None)
        answer.throw(TypeError("a method gave something to await: write `async def step`, so that an event loop is there"))


async def _serve(guest: GuestServer, source: BinaryIO, send: Callable[[dict[str, Any]], None], opening: dict[str, Any]) -> None:
    requests: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    requests.put_nowait(opening)
    loop = asyncio.get_running_loop()

    def deliver(message: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(requests.put_nowait, message)

    threading.Thread(target=_listen, args=(source, deliver), daemon=True).start()
    while True:
        await guest.answer(await requests.get(), send)


def _serve_sync(guest: GuestServer, source: BinaryIO, send: Callable[[dict[str, Any]], None], opening: dict[str, Any]) -> None:
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    requests.put(opening)
    threading.Thread(target=_listen, args=(source, requests.put), daemon=True).start()
    while True:
        _run_sync(guest.answer(requests.get(), send))


def die_with_host(token: str) -> None:
    """Make this process end with the thread that started it, and all processes that it starts end with this process.

    A child process, the supervisor, is notified of our death by the kernel, kills our process group and every process with our token, and
    ends. This function returns once the supervisor has left our group, because it would otherwise be killed with it.
    """
    prctl = _prctl()
    if prctl is None:
        return
    guest, host = os.getpid(), os.getppid()
    ready, begun = os.pipe()
    if os.fork() == 0:
        _supervise(prctl, guest, token, begun)
    os.close(begun)
    os.read(ready, 1)  # returns when the supervisor closes its end
    os.close(ready)
    prctl(_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != host:
        end_group()


def _prctl() -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        import ctypes
    except ImportError:  # a Python without libffi: EOF on stdin is left
        return None
    found: Callable[..., int] = ctypes.CDLL(None).prctl
    return found


def _supervise(prctl: Callable[..., int], guest: int, token: str, begun: int) -> None:
    """Run the supervisor, which does not return. It closes `begun` as soon as no process can escape it."""
    try:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        for pipe in _PIPES:
            os.close(pipe)
        prctl(_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        os.close(begun)
        if os.getppid() == guest:
            signal.sigwait({signal.SIGTERM})
        with contextlib.suppress(OSError):
            os.killpg(guest, signal.SIGKILL)
        for _ in range(1000):  # processes started during one pass are found by the next
            if not _kill_marked(token):
                break
    finally:
        os._exit(0)


def _kill_marked(token: str) -> int:
    """Kill all other processes that carry a token and return how many there were, or may have been."""
    mark, found = f"{TOKEN}={token}".encode(), 0
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                variables = _variables(name)
                if variables is None:
                    found += 1
                elif mark in variables.split(b"\0"):
                    os.kill(int(name), signal.SIGKILL)
                    found += 1
    return found


def _variables(pid: str) -> bytes | None:
    """Return the environment of a process; None while it becomes another program, when it cannot be read yet. Raises OSError."""
    variables = _read(f"/proc/{pid}/environ")
    if variables:
        return variables
    os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - OSError for kernel threads and ended processes, which have none
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return None if fields[_ENV_END : _ENV_END + 1] == [b"0"] else _read(f"/proc/{pid}/environ")


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


def run(command: list[str]) -> None:
    """Become another program, with default signal handlers. Its stdout goes to stderr."""
    die_with_host(os.environ[TOKEN])
    for name in _IGNORED:
        signal.signal(name, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error.strerror}")


def main() -> None:
    """Serve one environment until the host is gone."""
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="guest.py", description="Serve an environment over stdin and stdout.")
    parser.add_argument("--path", action="append", default=[], help="a folder to import from, before all others")
    parser.add_argument("factory", help="module:factory or file.py:factory")
    given = parser.parse_args()
    if os.environ.get(TOKEN):
        die_with_host(os.environ[TOKEN])
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.path[:0] = given.path
    source = os.fdopen(_PIPES[0], "rb")

    def send(message: dict[str, Any]) -> None:
        write_frame(_PIPES[1], pack_frame(message))

    try:
        opening = read_request(source)
    except (EOFError, ValueError):
        end_group()
    arguments = opening["arguments"]
    try:
        guest = GuestServer(make_environment(given.factory, **arguments), simulation=arguments["simulation"])
    except (Exception, SystemExit) as error:  # noqa: BLE001 - any error of foreign code crosses as data
        send({"id": opening["id"], "error": error_data(error)})
        end_group()
    if guest.awaits:
        asyncio.run(_serve(guest, source, send, opening))
    _serve_sync(guest, source, send, opening)


if __name__ == "__main__":
    main()
