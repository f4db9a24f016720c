"""Environments of a site that comes with its task: browser and services in one sandbox where that can be had, else side by side on this
machine.

In a sandbox everything is rolled back as one. On this machine the services run once for all environments of the task and keep what is
written to them, so states are reached by reset and replay, and writes are held back while exploring.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import secrets
import shutil
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from exact.child import Child
from exact.config import BrowserConfig, SandboxConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.browser.environment import Evaluator
from exact.environments.browser.factory import BrowserFactory
from exact.environments.browser.launch.launch import launch
from exact.environments.browser.page.setup import PageSetup
from exact.environments.process import guest
from exact.environments.process.stderr import StderrReader
from exact.environments.sandbox.service import Service
from exact.environments.sites.site import Outside
from exact.errors import EnvironmentFailure, UsageError
from exact.scratch import scratch

_POLL, _GRACE = 0.05, 1.0
"""Seconds between questions whether a service is ready, and in which the last of what it said is read."""


@asynccontextmanager
async def served(
    config: BrowserConfig,
    setup: PageSetup,
    services: Sequence[Service],
    *,
    application: SandboxConfig | None = None,
    evaluator: Evaluator | None = None,
    outside: Outside | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> AsyncIterator[EnvironmentFactory]:
    """Environments of a site with its services, as `config.sandbox` says. `tell` hears why they do not fork where they were to.

    `application`: what the services run in, in a sandbox. `outside`: what else they reach. Raises EnvironmentFailure where a service does
    not start, or no sandbox can be had and one is required, or `application` says something.
    """
    async with AsyncExitStack() as stack:
        if refused := "browser.sandbox is never" if config.sandbox == "never" else await _refused(config):
            if application not in (None, SandboxConfig()):
                raise EnvironmentFailure(f"the services want the sandbox that `sandbox` describes, and there is none: {refused}")
            if config.sandbox != "never":
                tell(f"environments do not fork here ({refused}): states are reached by reset and replay, and no write is explored")
            for service in services:
                await stack.enter_async_context(_running(service))
            browser = await stack.enter_async_context(launch(config, setup.hosts))
            yield BrowserFactory(browser, setup, config, isolated=False, evaluator=evaluator, outside=outside)
        else:
            yield await stack.enter_async_context(_forking(config, setup, outside, evaluator, services=services, application=application))


@asynccontextmanager
async def elsewhere(
    config: BrowserConfig,
    setup: PageSetup,
    outside: Outside,
    *,
    evaluator: Evaluator | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> AsyncIterator[EnvironmentFactory]:
    """Environments of a site that runs elsewhere: forked where the configuration requires it, or where hooks bring the site back with them.

    In a plain browser a site with hooks is reset for the environment that acts for good, and nothing is rolled back. Raises
    EnvironmentFailure where a sandbox is required and cannot be had.
    """
    async with AsyncExitStack() as stack:
        wanted = config.sandbox == "required" or (config.sandbox == "auto" and outside.site is not None)
        refused = await _refused(config) if wanted else ""
        if wanted and not refused:
            yield await stack.enter_async_context(_forking(config, PageSetup(), outside, evaluator))
            return
        if outside.site:
            tell(f"the site's hooks are not used to look ahead ({refused or 'browser.sandbox is never'}): no write is explored")
        browser = await stack.enter_async_context(launch(config, {**setup.hosts, **outside.hosts}, pins=outside.trusted))
        yield BrowserFactory(browser, setup, config, isolated=False, evaluator=evaluator, outside=outside)


def _forking(
    config: BrowserConfig, setup: PageSetup, outside: Outside | None, evaluator: Evaluator | None, **inside: Any
) -> AbstractAsyncContextManager[EnvironmentFactory]:
    from exact.environments.browser.fork.factory import forking

    if config.login.certificate:
        raise UsageError("a client's certificate is not shown from a sandbox: set browser.sandbox to never")
    return forking(config, setup, outside=outside, evaluator=evaluator, limit=config.snapshots << 20, **inside)


async def _refused(config: BrowserConfig) -> str:
    """Why no sandbox can be had, shown by trying; empty where one can. Raises EnvironmentFailure where one is required."""
    from exact.environments.sandbox.probe import probe_forking

    try:
        await probe_forking()
    except (EnvironmentFailure, TimeoutError) as error:
        if config.sandbox == "required":
            raise EnvironmentFailure(f"browser.sandbox is required: {error or 'no answer'}: see `exact doctor`") from error
        return str(error) or "the sandbox does not answer"
    return ""


@asynccontextmanager
async def _running(service: Service) -> AsyncIterator[None]:
    """A service on this machine, ready; ended with all that it started. Raises EnvironmentFailure."""
    name = " ".join(service.command)
    if await asyncio.to_thread(_answers, service.ready_url):
        raise EnvironmentFailure(f"something answers at {service.ready_url} already, where `{name}` was to be started: end it first")
    with scratch("service") as folder:
        try:
            if shutil.which(service.command[0]) is None:
                raise FileNotFoundError(2, f"No such file or directory: {service.command[0]!r}")
            # a guest's warden sees to it that it ends with us, also after a crash, and all that it started with it
            process = await Child.start(
                sys.executable, "-IS", guest.__file__, "--run", *service.command,
                cwd=service.folder, env={**os.environ, "TMPDIR": str(folder), **service.env, guest.TOKEN: secrets.token_hex(16)},
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise EnvironmentFailure(f"the service `{name}` does not start: {error}") from error
        assert process.stdout is not None
        said = StderrReader(process.stdout, process.pid, None)
        try:
            await _ready(service, name, process)
            yield
        finally:
            with suppress(ProcessLookupError):  # it has ended, and all that it started
                os.killpg(process.pid, signal.SIGKILL)
            await said.end(_GRACE)
            await said.close()
            await process.end()


async def _ready(service: Service, name: str, process: Child) -> None:
    try:
        async with asyncio.timeout(service.seconds):
            while not await asyncio.to_thread(_answers, service.ready_url):
                if process.returncode is not None:
                    raise EnvironmentFailure(f"the service `{name}` ended with status {process.returncode} before it was ready")
                await asyncio.sleep(_POLL)
    except TimeoutError as error:
        raise EnvironmentFailure(f"the service `{name}` did not answer at {service.ready_url} within {service.seconds:g} s") from error


def _answers(url: str) -> bool:
    """Whether HTTP is answered there, by whom it is asked itself: a proxy knows nothing of this machine's services."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, http.client.HTTPException):
        return False
