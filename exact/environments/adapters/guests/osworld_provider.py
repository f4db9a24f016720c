"""The provider `exact` for OSWorld's `desktop_env`: desktops in gVisor that are saved, and returned to, in a second.

    import osworld_provider
    with osworld_provider.open_desktop_env(cache_dir="cache") as env:  # the unmodified DesktopEnv
        env.reset(task_config=task)

Runs in the virtual environment of desktop_env (`shells/setup.sh --osworld`). The desktop is started by exact's own Python, which
`EXACT_PYTHON` names; by default that of the checkout in which this file is.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator, MutableSequence
from pathlib import Path
from typing import Any

PYTHON = "EXACT_PYTHON"
"""Environment variable: the Python in which exact is installed."""
STAND_INS = ("easyocr", "librosa")
"""Packages of gigabytes, each of which one or two metrics use."""
_CHECKED_AS = "docker"
"""Name under which DesktopEnv accepts a provider whose machine is fresh: it knows a fixed list of names."""
_ROOT = Path(__file__).resolve().parents[4]


class AbsentPackage(BaseException):
    """Raised on use of a package that has only a stand-in. No metric's `except Exception` turns it into a score."""


class ProviderError(Exception):
    """Raised if the desktop cannot be started, saved, or returned to."""


class _StandIn(types.ModuleType):
    """A package that can be imported and not used."""

    __path__: MutableSequence[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        package = self.__name__.partition(".")[0]
        raise AbsentPackage(f"{self.__name__} is needed to judge this task, and {package} is not installed: pip install {package}")


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in STAND_INS else None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing, for lack of code."""


def prepare() -> Any:
    """Return the module of DesktopEnv, imported with stand-ins. A metric that evaluates a machine's output reads literals only."""
    if not any(isinstance(each, _StandIns) for each in sys.meta_path):
        sys.meta_path.append(_StandIns())  # the last one: a package that is installed is used
    module = importlib.import_module("desktop_env.desktop_env")
    importlib.import_module("desktop_env.evaluators.metrics.basic_os").eval = ast.literal_eval  # type: ignore[attr-defined]
    return module


class AttachedProvider:
    """Provider of a machine that runs already, and that another process saves and returns to. Its address may be changed."""

    def __init__(self, address: str) -> None:
        """`address`: host and the ports of server, Chromium, VNC and VLC, joined by colons."""
        self.address = address

    def start_emulator(self, path_to_vm: str, headless: bool, os_type: str = "Ubuntu") -> None:
        """Do nothing: it runs."""

    def get_ip_address(self, path_to_vm: str) -> str:
        return self.address

    def save_state(self, path_to_vm: str, snapshot_name: str) -> None:
        raise ProviderError("this machine is saved by the process that started it")

    def revert_to_snapshot(self, path_to_vm: str, snapshot_name: str) -> str:
        raise ProviderError("this machine is returned to a state by the process that started it")

    def stop_emulator(self, path_to_vm: str, *_: Any) -> None:
        """Do nothing: it is stopped by the process that started it."""


class ExactProvider(AttachedProvider):
    """Provider of a desktop of exact. `save_state` takes a checkpoint of gVisor, and `revert_to_snapshot` forks it."""

    def __init__(self, python: str = "", size: tuple[int, int] = (1920, 1080)) -> None:
        """`python`: the one in which exact is installed. `size`: size of the screen in pixels."""
        super().__init__("")
        self._python = python or os.environ.get(PYTHON) or str(_ROOT / ".venv" / "bin" / "python")
        self._size, self._host = size, None

    _host: subprocess.Popen[str] | None

    def start_emulator(self, path_to_vm: str, headless: bool, os_type: str = "Ubuntu") -> None:
        """Start the desktop, unless it runs. Raises ProviderError."""
        if self._host is not None:
            return
        command = [self._python, "-m", "exact.benchmarks.osworld.environment", *map(str, self._size)]
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        try:
            self._host = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
            )
        except OSError as error:
            raise ProviderError(f"{self._python} cannot be started: {error.strerror}: name exact's Python in {PYTHON}") from error
        self._answer()

    def save_state(self, path_to_vm: str, snapshot_name: str) -> None:
        """Save the state of the whole machine under a name. Raises ProviderError."""
        self._ask("save", snapshot_name)

    def revert_to_snapshot(self, path_to_vm: str, snapshot_name: str) -> str:
        """Return to a saved state; `init_state` is that of the start. Raises ProviderError if there is none of that name."""
        self._ask("revert", snapshot_name)
        return path_to_vm

    def stop_emulator(self, path_to_vm: str, *_: Any) -> None:
        """Stop the desktop. May be called twice."""
        host, self._host = self._host, None
        if host is not None:
            assert host.stdin is not None and host.stdout is not None
            host.stdin.close()
            host.wait()
            host.stdout.close()

    def _ask(self, op: str, name: str) -> None:
        if self._host is None or self._host.stdin is None:
            raise ProviderError(f"{op}: the desktop does not run: start it first")
        try:
            self._host.stdin.write(json.dumps({"op": op, "name": name}) + "\n")
            self._host.stdin.flush()
        except OSError as error:
            raise ProviderError(f"{op} {name}: the desktop has ended") from error
        self._answer()

    def _answer(self) -> None:
        assert self._host is not None and self._host.stdout is not None
        line = self._host.stdout.readline()
        told = json.loads(line) if line else {"error": "it ended: its messages are above"}
        if "ports" in told:
            self.address = "127.0.0.1:{}:{}:0:{}".format(*told["ports"])
        if "error" in told:
            raise ProviderError(f"the desktop of exact: {told['error']}")


class _Machines:
    """The manager of virtual machines that DesktopEnv asks for a path: there is one, made anew each time."""

    def get_vm_path(self, **_: Any) -> str:
        return "exact"

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


@contextlib.contextmanager
def provided(provider: AttachedProvider) -> Iterator[Any]:
    """Let `DesktopEnv(provider_name=...)` take a provider while the block runs. Yields the class and the name to give it."""
    module = prepare()
    before = module.create_vm_manager_and_provider
    module.create_vm_manager_and_provider = lambda *_, **__: (_Machines(), provider)
    try:
        yield module.DesktopEnv, _CHECKED_AS
    finally:
        module.create_vm_manager_and_provider = before


@contextlib.contextmanager
def open_desktop_env(**options: Any) -> Iterator[Any]:
    """Open the unmodified DesktopEnv on a desktop of exact. `options`: those of DesktopEnv but `provider_name`."""
    size = tuple(options.get("screen_size") or (1920, 1080))
    provider = ExactProvider(size=(int(size[0]), int(size[1])))
    with provided(provider) as (DesktopEnv, name):
        try:
            env = DesktopEnv(provider_name=name, **{"screen_size": size, **options})
        except BaseException:
            provider.stop_emulator("")
            raise
    try:
        yield env
    finally:
        env.close()
