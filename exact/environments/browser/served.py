"""Environments of a task's site: browser and services together in a sandbox, or side by side on this machine without a sandbox.

In a sandbox everything is rolled back as one. On this machine the services run once for all environments of the task and retain writes, so
states are reached by reset and replay, and simulations send no writes.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from exact.config import BrowserConfig, SandboxConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.browser.fork.init_process import last_lines, unanswered
from exact.environments.browser.launch.connect import NO_WALL
from exact.environments.browser.launch.launch import launch
from exact.environments.browser.page.setup import PageSetup
from exact.environments.process import guest
from exact.environments.process.process import StderrReader
from exact.environments.sandbox.service import Service
from exact.environments.sites.site import Outside
from exact.errors import EnvironmentFailure, UsageError
from exact.machine import Child, kill_group, scratch

if TYPE_CHECKING:
    from exact.environments.browser.environment import Evaluator

_POLL, _GRACE = 0.05, 1.0
"""Seconds between two checks whether a service is ready, and within which the end of its output is read."""


@asynccontextmanager
async def open_served_site(
    config: BrowserConfig,
    setup: PageSetup,
    services: Sequence[Service],
    *,
    application: SandboxConfig | None = None,
    evaluator: Evaluator | None = None,
    outside: Outside | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> AsyncIterator[EnvironmentFactory]:
    """Open environments of a site with its services, in a sandbox or not as `config.sandbox` says.

    `application`: the sandbox that the services need. `outside`: other servers that they reach. `warn` is called with the reason why the
    environments do not fork although they should. Raises EnvironmentFailure if a service does not start, or if a sandbox is missing that is
    required or that `application` describes.
    """
    async with AsyncExitStack() as stack:
        if obstacle := "browser.sandbox is never" if config.sandbox == "never" else await _sandbox_obstacle(config):
            if application not in (None, SandboxConfig()):
                raise EnvironmentFailure(f"the services need the sandbox that `sandbox` describes, and there is none: {obstacle}")
            if config.sandbox != "never":
                warn(f"environments do not fork here ({obstacle}): states are reached by reset and replay, and simulations send no writes")
            for service in services:
                await stack.enter_async_context(_run_service(service))
            browser = await stack.enter_async_context(launch(config, setup.hosts))
            from exact.environments.browser.factory import BrowserFactory

            yield BrowserFactory(browser, setup, config, isolated=False, evaluator=evaluator, outside=outside)
        else:
            inside = {"services": services, "application": application, "warn": warn}
            yield await stack.enter_async_context(_forking(config, setup, outside, evaluator, **inside))


@asynccontextmanager
async def open_remote_site(
    config: BrowserConfig,
    setup: PageSetup,
    outside: Outside,
    *,
    evaluator: Evaluator | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> AsyncIterator[EnvironmentFactory]:
    """Open environments of a site that runs elsewhere.

    The browser forks if this machine can, unless the configuration says `never`; so the search continues after a write that was sent. With
    hooks that save and restore the site's state everything is rolled back. In a plain browser a site with hooks is reset for the live
    environment, and nothing is rolled back. `warn` is called with the reason why the browser does not fork, or why hooks are not used.
    Raises EnvironmentFailure if a sandbox is required and there is none.
    """
    async with AsyncExitStack() as stack:
        obstacle = "browser.sandbox is never" if config.sandbox == "never" else _unforkable(config) or await _sandbox_obstacle(config)
        if not obstacle:
            yield await stack.enter_async_context(_forking(config, PageSetup(), outside, evaluator))
            return
        if outside.site and outside.site.has_states:
            warn(f"the site's hooks are not used for search ({obstacle}): simulations send no writes")
        elif config.sandbox != "never":
            warn(f"the browser does not fork here ({obstacle}): what follows a write that was sent is judged without being tried")
        if config.cdp_url:
            warn(NO_WALL)
        browser = await stack.enter_async_context(launch(config, {**setup.hosts, **outside.hosts}, pins=outside.trusted))
        from exact.environments.browser.factory import BrowserFactory

        yield BrowserFactory(browser, setup, config, isolated=False, evaluator=evaluator, outside=outside)


def _forking(
    config: BrowserConfig, setup: PageSetup, outside: Outside | None, evaluator: Evaluator | None, **inside: Any
) -> AbstractAsyncContextManager[EnvironmentFactory]:
    from exact.environments.browser.fork.factory import forking

    if config.login.certificate:
        raise UsageError("a client certificate cannot be used in a sandbox: set browser.sandbox to never")
    return forking(config, setup, outside=outside, evaluator=evaluator, limit=config.snapshots << 20, **inside)


def _unforkable(config: BrowserConfig) -> str:
    """Return the reason if a browser of this configuration stays outside of a sandbox by default; empty if there is none."""
    if config.sandbox == "required":
        return ""
    if config.headed:
        return "browser.headed shows its window"
    for name in ("cdp_url", "profile", "device"):
        if getattr(config, name):
            return f"browser.{name} is for a browser outside of a sandbox"
    return "browser.login.certificate is not available in a sandbox" if config.login.certificate else ""


async def _sandbox_obstacle(config: BrowserConfig) -> str:
    """Try to start a sandbox. Return the reason why there is none; empty if there is. Raises EnvironmentFailure if one is required."""
    from exact.environments.sandbox.probe import probe_forking

    try:
        await probe_forking()
    except (EnvironmentFailure, TimeoutError) as error:
        if config.sandbox == "required":
            raise EnvironmentFailure(f"browser.sandbox is required: {error or 'no answer'}: see `exact doctor`") from error
        return str(error) or "the sandbox does not answer"
    return ""


@asynccontextmanager
async def _run_service(service: Service) -> AsyncIterator[None]:
    """Run a service on this machine while the block runs, and end it with all processes that it started.

    Raises EnvironmentFailure if it does not become ready.
    """
    name = " ".join(service.command)
    if not await asyncio.to_thread(unanswered, service.ready_url):
        raise EnvironmentFailure(f"another process answers at {service.ready_url}, where `{name}` should be started: end it first")
    with scratch("service") as folder:
        try:
            if shutil.which(service.command[0]) is None:
                raise FileNotFoundError(2, f"No such file or directory: {service.command[0]!r}")
            # a guest's supervisor ends the service and all that it started when this process ends or crashes
            process = await Child.start(
                sys.executable, "-IS", guest.__file__, "--run", *service.command,
                cwd=service.folder, env={**os.environ, "TMPDIR": str(folder), **service.env, guest.TOKEN: secrets.token_hex(16)},
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise EnvironmentFailure(f"the service `{name}` does not start: {error}") from error
        assert process.stdout is not None
        output = StderrReader(process.stdout, process.pid, None)
        try:
            await _wait_until_ready(service, name, process, output)
            yield
        finally:
            with suppress(ProcessLookupError):  # all its processes have ended
                kill_group(process.pid)
            await output.end(_GRACE)
            await output.close()
            await process.end()


async def _wait_until_ready(service: Service, name: str, process: Child, output: StderrReader) -> None:
    reason = ""
    try:
        async with asyncio.timeout(service.seconds):
            while reason := await asyncio.to_thread(unanswered, service.ready_url):
                if process.returncode is not None:
                    await output.end(_GRACE)
                    ended = f"the service `{name}` ended with status {process.returncode} before it was ready"
                    raise EnvironmentFailure(ended + last_lines(output.lines))
                await asyncio.sleep(_POLL)
    except TimeoutError as error:
        late = f"the service `{name}` did not answer at {service.ready_url} within {service.seconds:g} s"
        raise EnvironmentFailure(f"{late}{reason and f': {reason}'}{last_lines(output.lines)}") from error
