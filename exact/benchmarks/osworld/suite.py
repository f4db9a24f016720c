"""The suite `osworld`: a checkout's tasks, set up and judged by desktop_env in a separate virtual environment.

They run on desktops of exact in gVisor, which fork, or on virtual machines of another provider of desktop_env.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec

import exact.environments.adapters.guests
from exact.benchmarks.ids import split
from exact.benchmarks.osworld.environment import SETTLE_SECONDS, OSWorldFactory, settled_after
from exact.benchmarks.osworld.format import CODE, OFFLINE, OSWorldTask, collection, index, of, read
from exact.config import BrowserConfig
from exact.config.ranges import refusal
from exact.environments.base import EnvironmentFactory
from exact.environments.desktop import account
from exact.environments.desktop.factory import absent, desktop_factory
from exact.environments.desktop.grammar import Space
from exact.environments.desktop.vm.document import executable
from exact.environments.desktop.vm.server import PORT
from exact.environments.process.worker import EnvironmentSpec, GuestTimeouts, WorkerFactory
from exact.environments.sandbox.factory import SandboxedFactory
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure, UsageError, unknown
from exact.task import Task
from exact.text import counted
from exact.version import environment_for, set_up

FOLDER, PYTHON, OPTIONS = "EXACT_OSWORLD", "EXACT_OSWORLD_PYTHON", "EXACT_OSWORLD_OPTIONS"
"""Environment variables: the folder `evaluation_examples` of a checkout; desktop_env's interpreter; `Options`, as JSON."""
_OURS = Path(__file__).parents[3] / ".bench" / "venvs" / "osworld" / "bin" / "python"
_GUESTS = Path(exact.environments.adapters.guests.__file__).parent
_APPLICATIONS = f"{set_up('--osworld', 'use apt-get')} for what Debian has (Visual Studio Code comes from its publisher)"
_ON_ELEMENTS = ("learned", "lexical", "random")
"""Policies without a language model."""
_SYSTEM = ("/usr/", "/bin/")
"""Folders of this machine's programs, which desktops show. Others are of the desktop."""
_TIMEOUTS = GuestTimeouts(open=900.0, reset=900.0, step=300.0, evaluate=900.0, close=60.0)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Places and settings of the tasks' runs. Further keys are options of DesktopEnv for the other providers."""

    provider_name: str = "exact"
    """`exact`: desktops in gVisor, whose states are returned to by snapshots. Others (docker, vmware, aws, ...): virtual machines of
    desktop_env, whose states are reached by reset and replay."""
    action_space: Space = "pyautogui"
    """Actions of the agent on desktops of exact."""
    cache_dir: str = ""
    """Folder of downloaded files. Empty: one for each environment, deleted with it."""
    screen_size: tuple[int, int] = (1920, 1080)
    """Width and height in pixels. Set-ups and tasks click points of the default."""
    settle_seconds: Annotated[float, msgspec.Meta(ge=0, le=60)] = SETTLE_SECONDS
    """Fewest seconds before a state is judged, on desktops of exact. Default: those of OSWorld's runner."""


class OSWorld:
    """Suite with ids `osworld/<domain>/<id>`; empty if no checkout is named."""

    name = "osworld"

    @functools.cached_property
    def _found(self) -> Mapping[str, Path]:
        """Task files by id."""
        if FOLDER not in os.environ:
            return {}
        folder = _folder()
        domains = collection(folder)
        return {f"osworld/{domain}/{id}": folder / "examples" / domain / f"{id}.json" for domain, ids in domains.items() for id in ids}

    def ids(self) -> Sequence[str]:
        return tuple(self._found)

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Return the lists by domain, `osworld/@chrome`, and those of the checkout's indices: `osworld/@all` of `test_all.json`.

        `@offline` has the tasks that need nothing outside the machine, unless the checkout has an index `test_offline.json` of its own.
        """
        found: dict[str, list[str]] = {}
        for id in self._found:
            found.setdefault(id.split("/")[1], []).append(id)
        for path in sorted(_folder().glob("test_*.json")) if self._found else ():
            ids = [f"osworld/{domain}/{id}" for domain, names in index(path).items() for id in names]
            found.setdefault(path.stem.removeprefix("test_"), [id for id in ids if id in self._found])
        offline = [id for domain, names in OFFLINE.items() for name in names if (id := f"osworld/{domain}/{name}") in self._found]
        if offline:
            found.setdefault("offline", offline)
        return found

    def task(self, id: str) -> Task:
        name, seed = split(id)
        if not self._found:
            raise UsageError(f"{id}: OSWorld's tasks are not here: set {FOLDER} to the folder evaluation_examples of a checkout")
        if name not in self._found:
            raise unknown("task", name, self.ids())
        task = read(self._found[name]).task(name.split("/")[1], seed)
        options = _options()
        return task if options.provider_name != "exact" else settled_after(task, options.settle_seconds)

    def check(self, task: Task) -> None:
        """Raise UsageError if desktop_env's interpreter, a requirement of exact's desktops, or a program of the task is missing."""
        if not check_parts():
            return
        if missing := [each for each in self.requirements(task) if not account.installed(each)]:
            raise UsageError(f"task {task.id} needs {', '.join(missing)}, not installed: {_APPLICATIONS}, or leave the task out")

    def requirements(self, task: Task) -> tuple[str, ...]:
        """Return the programs of this machine that a task needs: see `programs`."""
        return programs(of(task))

    def check_policy(self, kind: str) -> None:
        """Raise UsageError if a policy acts on elements, and the chosen actions are on none."""
        chosen = _options()
        if kind in _ON_ELEMENTS and chosen.provider_name == "exact" and chosen.action_space != "elements":
            way = f"""set {OPTIONS}='{{"action_space": "elements"}}'"""
            raise UsageError(f"policy.kind {kind} proposes actions on elements, and the actions here are {chosen.action_space}: {way}")

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the desktops. Raises UsageError if something that they need is missing."""
        ours, options, python = check_parts(), _options(), desktop_env_python()
        if not ours:
            passed = msgspec.json.decode(os.environ[OPTIONS], type=dict[str, Any])
            given = {"options": {name: value for name, value in passed.items() if name != "settle_seconds"}}
            yield _workers("desktop_env_guest.py:DesktopEnvGuest", given, python)
            return
        width, height = options.screen_size
        async with desktop_factory(
            sandbox=True, width=width, height=height, screenshots=config.screenshots, actions=options.action_space, vm_port=PORT,
            limit=config.snapshots << 20,
        ) as desktops:  # fmt: skip
            assert isinstance(desktops, SandboxedFactory)
            yield OSWorldFactory(desktops, judges(), options.settle_seconds)


def programs(file: OSWorldTask) -> tuple[str, ...]:
    """Return the programs of this machine that the set-up of a task starts, and Visual Studio Code if the evaluator asks it."""
    started = [executable(step.parameters.get("command") or "") for step in file.config or () if step.type == "launch"]
    ours = [each for each in started if each and ("/" not in each or each.startswith(_SYSTEM))]
    return tuple(dict.fromkeys([*ours, *([CODE] if file.asks_code else [])]))


def check_parts() -> bool:
    """Return whether desktops of exact are chosen. Raises UsageError if a part that each task needs is missing."""
    desktop_env_python()
    if _options().provider_name != "exact":
        return False
    if lacking := absent():
        raise UsageError(f"no desktop here: {lacking}")
    try:
        find_runsc()
    except EnvironmentFailure as failure:
        raise UsageError(f"{failure}; or name another provider in {OPTIONS}") from failure
    return True


def inspect() -> tuple[str, str]:
    """Return what is here for the tasks or is missing, and the way to get what is missing; empty if nothing is."""
    suite = OSWorld()
    try:
        if not (ids := suite.ids()):
            raise UsageError(f"no tasks: set {FOLDER} to the folder evaluation_examples of a checkout of OSWorld")
        needed = Counter(each for id in ids for each in suite.requirements(suite.task(id))) if check_parts() else Counter[str]()
    except UsageError as error:
        found, _, way = str(error).rpartition(": ")
        return found, way
    lacking = ", ".join(f"{each} ({counted(number, 'task')})" for each, number in needed.items() if not account.installed(each))
    found = f"{counted(len(ids), 'task')} in {_folder()}"
    return (f"{found}; not installed: {lacking}", _APPLICATIONS) if lacking else (found, "")


def judges() -> WorkerFactory:
    """Return a factory of workers that set tasks up and judge them: `osworld_judge.py`. Raises UsageError."""
    options = _options()
    return _workers("osworld_judge.py:Judge", {"size": options.screen_size, "cache": options.cache_dir}, desktop_env_python())


def _folder() -> Path:
    return Path(os.environ[FOLDER]).expanduser()


def _options() -> Options:
    try:
        given = msgspec.json.decode(os.environ.get(OPTIONS) or "{}", type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UsageError(f"{OPTIONS} cannot be read: {error}: write a JSON object") from error
    try:
        options = msgspec.convert(given, Options)
    except msgspec.ValidationError as error:
        raise UsageError(f"{OPTIONS}: {refusal(error, given, Options)}") from error
    for name in given if options.provider_name == "exact" else ():
        if name not in Options.__struct_fields__:
            raise unknown("key", name, Options.__struct_fields__, where=OPTIONS)
    return options


def desktop_env_python() -> Path:
    """Return desktop_env's interpreter. Raises UsageError."""
    named = os.environ.get(PYTHON)
    path = Path(named).expanduser() if named else _OURS
    if not path.exists():
        way = set_up("--osworld", environment_for("desktop-env", PYTHON))
        raise UsageError(f"there is no {path}, which OSWorld's set-up and evaluators need: {way}")
    return path


def _workers(name: str, arguments: dict[str, Any], python: Path) -> WorkerFactory:
    return WorkerFactory(EnvironmentSpec(f"{_GUESTS / name}", arguments, python=python, paths=(_GUESTS,)), timeouts=_TIMEOUTS)
