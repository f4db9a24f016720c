"""The suite `osworld`: a checkout's tasks, set up, executed and evaluated by desktop_env in a virtual environment of its own."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import exact.environments.adapters.guests
from exact.benchmarks.ids import split
from exact.benchmarks.osworld.format import collection, read
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.process.worker import EnvironmentSpec, GuestTimeouts, WorkerFactory
from exact.errors import UsageError, unknown
from exact.task import Task

FOLDER, PYTHON, OPTIONS = "EXACT_OSWORLD", "EXACT_OSWORLD_PYTHON", "EXACT_OSWORLD_OPTIONS"
"""Environment variables: the folder `evaluation_examples` of a checkout; desktop_env's interpreter; DesktopEnv's options, as JSON."""
_GUESTS = Path(exact.environments.adapters.guests.__file__).parent
_TIMEOUTS = GuestTimeouts(open=900.0, reset=900.0, step=300.0, evaluate=900.0, close=60.0)


class OSWorld:
    """Suite with ids `osworld/<domain>/<id>`; empty where no checkout is named."""

    name = "osworld"

    @functools.cached_property
    def _found(self) -> Mapping[str, Path]:
        """Task files by id."""
        if FOLDER not in os.environ:
            return {}
        folder = Path(os.environ[FOLDER]).expanduser()
        domains = collection(folder)
        return {f"osworld/{domain}/{id}": folder / "examples" / domain / f"{id}.json" for domain, ids in domains.items() for id in ids}

    def ids(self) -> Sequence[str]:
        return tuple(self._found)

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Return the lists by domain: `osworld/@chrome`."""
        found: dict[str, list[str]] = {}
        for id in self._found:
            found.setdefault(id.split("/")[1], []).append(id)
        return found

    def task(self, id: str) -> Task:
        name, seed = split(id)
        if not self._found:
            raise UsageError(f"{id}: OSWorld's tasks are not here: set {FOLDER} to the folder evaluation_examples of a checkout")
        if name not in self._found:
            raise unknown("task", name, self.ids())
        return read(self._found[name]).task(name.split("/")[1], seed)

    def check(self, task: Task) -> None:
        """Raise UsageError where no interpreter with desktop_env is named."""
        if not os.environ.get(PYTHON):
            raise UsageError(f"OSWorld runs in its own virtual environment: install desktop-env there and set {PYTHON} to its Python")

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the desktops. Raises UsageError where no interpreter with desktop_env is named."""
        self.check(Task(id="osworld", instruction=""))
        try:
            options = json.loads(os.environ.get(OPTIONS) or "{}")
        except ValueError as error:
            raise UsageError(f"{OPTIONS} is not JSON: {error}") from error
        spec = EnvironmentSpec(
            f"{_GUESTS / 'desktop_env_guest.py'}:DesktopEnvGuest", {"options": options}, python=Path(os.environ[PYTHON]), paths=(_GUESTS,)
        )
        yield WorkerFactory(spec, timeouts=_TIMEOUTS)
