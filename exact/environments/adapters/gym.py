"""Environments of Gymnasium, and BrowserGym's tasks, each in a process by its own interpreter, or in a sandbox.

async with gymnasium_factory("FrozenLake-v1") as environments, environments.open(simulation=True) as environment:
    observation = await environment.reset(task)

The files in `guests/` map the spaces both ways. A small discrete action space gets a verb for each action; any other gets the verb `act`
with JSON. Observations are written out part by part, and pictures become screenshots. The reward is not shown: `evaluate` uses it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import exact.environments.adapters.guests
from exact.environments.base import EnvironmentFactory
from exact.environments.browser.launch.find import find_browser
from exact.environments.process.worker import EnvironmentSpec, GuestTimeouts, WorkerFactory
from exact.environments.reward import miniwob_pages
from exact.environments.sandbox.sandboxes import LIMIT
from exact.errors import UsageError, unknown
from exact.version import clone, set_up

GUESTS = Path(exact.environments.adapters.guests.__file__).parent
VARIABLE = "EXACT_BROWSERGYM"
"""Environment variable with the interpreter of BrowserGym's virtual environment."""


class TaskFamily(NamedTuple):
    """Tasks of BrowserGym that one package registers."""

    package: str
    module: str
    variables: tuple[str, ...]
    """Environment variables that they need: addresses of their sites, keys of their judges."""
    needs: str
    """Further requirements, in words."""


_SITES = ("WA_SHOPPING", "WA_SHOPPING_ADMIN", "WA_REDDIT", "WA_GITLAB", "WA_WIKIPEDIA", "WA_MAP", "WA_HOMEPAGE")
_VISUAL = ("VWA_CLASSIFIEDS", "VWA_CLASSIFIEDS_RESET_TOKEN", "VWA_SHOPPING", "VWA_REDDIT", "VWA_WIKIPEDIA", "VWA_HOMEPAGE")

FAMILIES: Mapping[str, TaskFamily] = {
    "miniwob": TaskFamily("browsergym-miniwob", "browsergym.miniwob", (), "the pages of the wheel miniwob"),
    "webarena": TaskFamily("browsergym-webarena", "browsergym.webarena", (*_SITES, "OPENAI_API_KEY"), "seven sites that run in containers"),
    "visualwebarena": TaskFamily(
        "browsergym-visualwebarena", "browsergym.visualwebarena", (*_VISUAL, "OPENAI_API_KEY"), "its sites, torch and a captioning model"
    ),
    "workarena": TaskFamily(
        "browsergym-workarena", "browsergym.workarena", ("SNOW_INSTANCE_URL", "SNOW_INSTANCE_UNAME", "SNOW_INSTANCE_PWD"),
        "an instance of ServiceNow on the internet",
    ),
}  # fmt: skip
"""Families by the first part of a task's name, such as `webarena.310`."""


@asynccontextmanager
async def gymnasium_factory(
    id: str,
    *,
    python: Path = Path(sys.executable),
    options: Mapping[str, Any] | None = None,
    imports: Sequence[str] = (),
    paths: Sequence[Path] = (),
    success: float | None = None,
    isolated: bool = True,
    deterministic: bool | None = None,
    sandbox: bool = False,
    timeouts: GuestTimeouts | None = None,
    limit: int = LIMIT,
    log: Path | None = None,
) -> AsyncIterator[EnvironmentFactory]:
    """Open a factory of one Gymnasium environment for the time of the block.

    A task's seed is passed to `reset`, with the JSON of `options` in its metadata.

    `id`, `options`: as for `gymnasium.make`. `python`: an interpreter that has Gymnasium and the environment. `imports`: modules that
    register it, found in `paths` too. `success`: total reward from which an episode counts as solved. `isolated`, `deterministic`: see
    Capabilities. `sandbox`: whether it runs in gVisor, so that it can be forked as a whole. `limit`: bytes of retained
    snapshots.
    """
    arguments = {
        "id": id, "options": dict(options or {}), "imports": list(imports), "success": success,
        "isolated": isolated, "deterministic": deterministic,
    }  # fmt: skip
    spec = EnvironmentSpec(f"{GUESTS / 'gymnasium_guest.py'}:GymnasiumGuest", arguments, python=python, paths=(GUESTS, *paths))
    async with _environments(spec, (), sandbox=sandbox, timeouts=timeouts, limit=limit, log=log) as environments:
        yield environments


@asynccontextmanager
async def browsergym_factory(
    id: str,
    *,
    python: Path | None = None,
    screenshots: bool = True,
    options: Mapping[str, Any] | None = None,
    sandbox: bool = False,
    timeouts: GuestTimeouts | None = None,
    limit: int = LIMIT,
    log: Path | None = None,
) -> AsyncIterator[EnvironmentFactory]:
    """Open a factory of one BrowserGym task, such as `miniwob.click-test`, `webarena.310` or `workarena.servicenow.order-ipad-pro`.

    A task whose metadata names another one of the same family, as `browsergym`, can be attempted in them too. `python`: that of
    BrowserGym's virtual environment; by default as `browsergym_python` finds it. `options`: those of BrowserGym's environment.
    Raises UsageError, which names requirements of the task that this machine lacks.
    """
    family = family_of(id)
    if lack := missing_requirements(id, python):
        raise UsageError(f"browsergym/{id} cannot be attempted here: {lack}")
    env = {name: os.environ[name] for name in family.variables}
    reads: tuple[Path, ...] = ()
    if family is FAMILIES["miniwob"]:
        pages = miniwob_pages()
        env["MINIWOB_URL"], reads = f"{(pages / 'miniwob').as_uri()}/", (pages,)
    elif sandbox:
        raise UsageError(f"browsergym/{id} needs {family.needs}, which a sandbox does not reach: leave the sandbox out")
    arguments = {
        "id": id, "browser": str(find_browser()), "screenshots": screenshots, "isolated": bool(reads), "options": dict(options or {}),
    }  # fmt: skip
    python = python or browsergym_python()
    spec = EnvironmentSpec(f"{GUESTS / 'browsergym_guest.py'}:BrowserGymGuest", arguments, python=python, paths=(GUESTS,), env=env)
    async with _environments(spec, reads, sandbox=sandbox, timeouts=timeouts, limit=limit, log=log) as environments:
        yield environments


def family_of(id: str) -> TaskFamily:
    """Return the family of a BrowserGym task. Raises UsageError, which names the nearest one."""
    name = id.partition(".")[0]
    if name not in FAMILIES:
        raise unknown("family of BrowserGym tasks", name, FAMILIES, where=repr(id))
    return FAMILIES[name]


def missing_requirements(id: str, python: Path | None = None) -> str:
    """Return the requirements of a BrowserGym task that this machine lacks, with the way to get them. Empty if it can be attempted."""
    family, found = family_of(id), list[str]()
    try:
        python = python or browsergym_python()
        if not has_module(python, family.module):
            found.append(f"{family.package} is not in {python.parents[1]}: install it there")
    except UsageError as error:
        found.append(str(error))
    if unset := [name for name in family.variables if not os.environ.get(name)]:
        found.append(f"{', '.join(unset)} not set")
    if family is FAMILIES["miniwob"]:
        try:
            miniwob_pages()
        except UsageError as error:
            found.append(str(error))
    elif found:
        found.append(f"it needs {family.needs}")
    return "; ".join(found)


def browsergym_hint() -> str:
    """Return the way to BrowserGym."""
    way = set_up("--browsergym", "install it apart: python -m venv browsergym && browsergym/bin/pip install browsergym-miniwob")
    return f"{way}, or name its interpreter in {VARIABLE}" if clone() else f"{way}, then set {VARIABLE}=browsergym/bin/python"


def browsergym_python() -> Path:
    """Return the interpreter of BrowserGym's virtual environment: $EXACT_BROWSERGYM, else the one that shells/setup.sh --browsergym made.

    Raises UsageError if there is none.
    """
    named = os.environ.get(VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    python = Path(named).absolute() if named else cache / "exact" / "browsergym" / "bin" / "python"
    if os.access(python, os.X_OK):
        return python
    if named:
        raise UsageError(f"{VARIABLE}={named} is not an interpreter: correct it or unset it")
    raise UsageError(f"BrowserGym is not installed: {browsergym_hint()}")


def has_module(python: Path, module: str) -> bool:
    """Return whether an interpreter has a module, by the names of its packages. Nothing is run."""
    folders = [*python.parents[1].glob("lib/python3*/site-packages"), python.parents[1] / "Lib" / "site-packages"]
    return any((folder / module.replace(".", "/")).is_dir() for folder in folders)


def _environments(
    spec: EnvironmentSpec, reads: Sequence[Path], *, sandbox: bool, timeouts: GuestTimeouts | None, limit: int, log: Path | None
) -> AbstractAsyncContextManager[EnvironmentFactory]:
    if sandbox:
        from exact.environments.sandbox.factory import sandboxed_factory

        return sandboxed_factory(spec, reads=reads, timeouts=timeouts, limit=limit, log=log)
    return _plain(WorkerFactory(spec, timeouts=timeouts, log=log))


@asynccontextmanager
async def _plain(environments: EnvironmentFactory) -> AsyncIterator[EnvironmentFactory]:
    yield environments
