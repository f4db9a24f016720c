"""Trac and Wagtail as suites.

They are real applications that run here, with their servers inside the environment that a search snapshots and restores.

The interpreter that has Trac and Wagtail, and their data, made once for each version of their sources.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import http.client
import importlib.util
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import urllib.request
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from exact.benchmarks.ids import join, split
from exact.benchmarks.webarena.evaluate import Check, EvaluatorContext, evaluate, evaluators
from exact.benchmarks.webarena.format import TaskFile, at, read
from exact.benchmarks.webarena.helpers import ON_PAGES
from exact.benchmarks.webarena.judges import Judges
from exact.benchmarks.webarena.sessions import Form, Sessions
from exact.benchmarks.webarena.variables import Addresses
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.browser import BrowserFactory, PageSetup
from exact.environments.browser.page.setup import Beginning, Prepare
from exact.environments.browser.served import open_served_site
from exact.environments.sandbox.python import inspect_python
from exact.environments.sandbox.service import Service
from exact.errors import EnvironmentFailure, UsageError, unknown
from exact.machine import Child
from exact.models.base import ChatModel
from exact.task import Outcome, Scalar, Score, Task
from exact.version import environment_for, set_up

if TYPE_CHECKING:
    from playwright.async_api import Page


_LOG = logging.getLogger("exact.sites")
_READY = 120.0


class Application(NamedTuple):
    """Application of a suite."""

    name: str
    host: str
    """Host for browsers; the port behind the name is an implementation detail."""
    form: Form
    word: str
    """Password of every user."""
    users: tuple[str, ...]
    clock: str = ""
    """Regular expression for the present time as its pages write it, besides the masks that apply everywhere."""


TRAC = Application(
    name="trac",
    host="trac.test",
    form=Form("/login", "#username", "#password", "#acctmgr_loginform input[type=submit]", "/prefs", "logged in as"),
    word="lantern-42",
    users=("alice", "bob", "carol", "dave"),
    clock=r"\b\d\d/\d\d/\d\d at \d\d:\d\d:\d\d\b",
)
WAGTAIL = Application(
    name="wagtail",
    host="gazette.test",
    form=Form("/admin/login/", "#id_username", "#id_password", "button[type=submit]", "/admin/api/main/pages/?limit=1", "total_count"),
    word="seagull-17",
    users=("mara", "ben", "ines"),
    clock=r"\b[A-Z][a-z]{2} \d{1,2}, \d{4}, \d{1,2}:\d\d [AP]M\b",
)


class SiteSuite:
    """Suite `trac` or `wagtail`: 30 tasks, numbered from 1."""

    def __init__(self, application: Application, *, path: Path | None = None) -> None:
        """Configure the suite.

        path: another task file for the same application.
        """
        self._application = application
        self.path = path or Path(__file__).with_name(f"{application.name}.json")
        names = {application.name.upper(): f"http://{application.host}"}
        names |= {f"{application.name}_{user}".upper(): names[application.name.upper()] for user in application.users}
        self._addresses = Addresses("", names)

    @property
    def name(self) -> str:
        return self._application.name

    @functools.cached_property
    def files(self) -> Mapping[str, TaskFile]:
        """Tasks by number. Raises UsageError."""
        return {str(each.task_id): each for each in read(self.path)}

    def ids(self) -> Sequence[str]:
        return tuple(f"{self.name}/{number}" for number in self.files)

    def lists(self) -> Mapping[str, Sequence[str]]:
        """Return the lists `@easy`, `@medium`, `@hard`, and `@writes` and `@reads` by whether a task changes the site."""
        found: dict[str, list[str]] = {}
        for number, file in self.files.items():
            for key in (file.overall_difficulty, "writes" if file.require_reset else "reads"):
                found.setdefault(key, []).append(f"{self.name}/{number}")
        return found

    def task(self, id: str) -> Task:
        name, number_seed = split(id)
        number = name.partition("/")[2]
        if number not in self.files:
            raise unknown("task", name, self.ids())
        file = self.files[number]
        metadata: dict[str, Scalar] = {"sites": " ".join(file.sites), "difficulty": file.overall_difficulty}
        if self._application.clock:
            metadata["masks"] = self._application.clock
        with at(f"{self.path}: task {number}: `start_url`"):
            start = self._addresses.fill(file.starts[0])
        return Task(id=join(name, number_seed), instruction=file.goal, start=start, seed=number_seed, metadata=metadata)

    def check(self, task: Task) -> None:
        """Raise UsageError if Trac and Wagtail are not installed."""
        interpreter()

    @asynccontextmanager
    async def environments(self, config: BrowserConfig) -> AsyncIterator[EnvironmentFactory]:
        """Open the environments.

        In a sandbox the application is part of each environment. Elsewhere one instance runs beside the browser; its data is restored at
        each reset of the live environment, so attempts run one at a time. Raises EnvironmentFailure, UsageError.
        """
        port, token = _free_port(), secrets.token_hex(8)
        service = await self._service(port, token)
        shared: list[bool] = []
        setup = PageSetup(hosts={self._application.host: f"127.0.0.1:{port}"}, prepare=self._prepare(port, token, shared))
        async with open_served_site(config, setup, [service], evaluator=self._verdict, warn=_LOG.warning) as environments:
            if isinstance(environments, BrowserFactory):
                shared.append(True)
            yield environments

    async def _service(self, port: int, token: str) -> Service:
        python = await inspect_python(interpreter(), {})
        data = await seed(self.name, python.executable)
        command = (str(python.executable), "-W", "ignore", "-I", str(SERVER), self.name, str(port), str(data), token)
        reads = (*map(str, python.folders), str(SERVED), str(data))
        return Service(command=command, ready_url=f"http://127.0.0.1:{port}/", seconds=_READY, reads=reads)

    def _prepare(self, port: int, token: str, shared: list[bool]) -> Prepare:
        """Return the function that resets the shared instance and logs in.

        `shared`: not empty if all environments share one instance, in which log-ins last.
        """
        forms = {
            f"{self.name}_{user}": self._application.form._replace(account=(user, self._application.word))
            for user in self._application.users
        }
        lasting, fresh = (Sessions(self._addresses, {}, forms=forms, lasting=each) for each in (True, False))

        async def prepare(beginning: Beginning) -> None:
            file = self.files[_number(beginning.task)]
            if shared and not beginning.simulation:
                await asyncio.to_thread(_reset, port, token)
            if file.logged_in:
                await (lasting if shared else fresh).enter(beginning.context, beginning.page, "", file.logged_in)

        return prepare

    async def _verdict(self, page: Page, outcome: Outcome) -> Score:
        if outcome.task is None:
            raise UsageError(f"{self.name}: nothing was attempted: reset first")
        return await evaluate(self.checks(_number(outcome.task)), page, outcome)

    def checks(self, number: str) -> tuple[Check, ...]:
        """Return the evaluators of a task."""
        setting = EvaluatorContext("visualwebarena", self._addresses, Judges(_nobody), ON_PAGES, quiet=0)
        return evaluators(self.files[number], setting, str(self.path))


def trac() -> SiteSuite:
    """Return the suite of the issue tracker and wiki."""
    return SiteSuite(TRAC)


def wagtail() -> SiteSuite:
    """Return the suite of the newspaper's content management."""
    return SiteSuite(WAGTAIL)


def _number(task: Task) -> str:
    return split(task.id)[0].partition("/")[2]


def _nobody(role: str) -> ChatModel:
    raise UsageError(
        f"tasks of this suite need no model to judge, and this one asks for {role}: use exact_match, must_include or program_html"
    )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _reset(port: int, token: str) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/__reset__", b"", {"X-Reset": token}, method="POST")
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60):
            pass
    except (OSError, http.client.HTTPException) as error:
        raise EnvironmentFailure(f"the site beside the browser was not reset: {error or type(error).__name__}") from error


SERVED = Path(__file__).parent / "served"
SERVER = SERVED / "serve.py"
"""Programs that make and serve the sites: run by that interpreter, never imported here."""
_SECONDS = 600.0
_OURS = Path(__file__).parents[3] / ".bench" / "venvs" / "sites"
"""Virtual environment of a source tree: shells/setup.sh --sites."""


def interpreter() -> Path:
    """Return EXACT_SITES (a virtual environment or its Python), else the source tree's, else our own.

    Raises UsageError if none has them.
    """
    if said := os.environ.get("EXACT_SITES"):
        place = Path(said).expanduser()
        python = place if place.is_file() else place / "bin" / "python"
        if not python.is_file():
            raise UsageError(f"EXACT_SITES is {said}, and there is no Python: name a virtual environment with Trac and Wagtail")
        return python
    if (python := _OURS / "bin" / "python").is_file():
        return python
    if importlib.util.find_spec("trac") and importlib.util.find_spec("wagtail"):
        return Path(sys.executable)
    raise UsageError(
        "Trac and Wagtail are not installed: "
        + set_up(
            "--sites, or install them in a virtual environment and set EXACT_SITES to it",
            environment_for("'exact-agent[sites]'", "EXACT_SITES"),
        )
    )


async def seed(site: str, python: Path) -> Path:
    """Return the folder of a site's data; make it in the user's cache if it is missing. Raises EnvironmentFailure."""
    parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exact" / "sites"
    target = parent / f"{site}-{_digest(site, python)}"
    if target.is_dir():
        return target
    parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{site}-", dir=parent))
    try:
        await _make(site, python, work / "seed")
        with suppress(OSError):  # another process was faster
            (work / "seed").rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


async def _make(site: str, python: Path, folder: Path) -> None:
    command = (str(python), "-W", "ignore", "-I", str(SERVED / "seed.py"), site, str(folder))
    process = await Child.start(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    try:
        async with asyncio.timeout(_SECONDS):
            _, said = await process.communicate()
    except TimeoutError as error:
        raise EnvironmentFailure(f"the data of {site} was not made within {_SECONDS:g} s: is the machine busy?") from error
    finally:
        await process.end()
    if process.returncode:
        last = (said.decode(errors="replace").strip().splitlines() or [f"status {process.returncode}"])[-1]
        raise EnvironmentFailure(f"the data of {site} cannot be made by {python}: {last}")


def _digest(site: str, python: Path) -> str:
    """Return a digest of everything that the data depends on: its sources, and the versions of the packages."""
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(SERVED.rglob("*")):
        if path.suffix in (".py", ".html") and "__pycache__" not in path.parts:
            found.update(path.relative_to(SERVED).as_posix().encode() + path.read_bytes())
    for name in sorted(_versions(python)):
        found.update(name.encode())
    return found.hexdigest()


def _versions(python: Path) -> Iterator[str]:
    """Yield the relevant distributions beside an interpreter, with their versions."""
    for packages in python.parents[1].glob("lib/python*/site-packages"):
        for path in packages.glob("*.dist-info"):
            if path.name.lower().startswith(("trac", "wagtail", "django-")):
                yield path.name
