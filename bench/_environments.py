"""Environments of the restore benchmarks: a form application with a slow server and a MiniWoB++ page, in sandboxes and outside."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from exact.action import Action
from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig
from exact.environments.base import Environment, EnvironmentFactory, Snapshot
from exact.environments.browser import PageSetup
from exact.environments.browser.fork.factory import ForkingFactory, forking
from exact.environments.browser.served import open_served_site
from exact.environments.sandbox.service import Service
from exact.observation import Observation
from exact.task import Task

HERE = Path(__file__).resolve().parent
CONFIG = BrowserConfig(screenshots=False, width=600, height=400, settle_seconds=15.0, page_snapshots=True)
HOST = "form.test"
BOXES = "miniwob/click-checkboxes-large?seed=1"
"""Clicks on it do not end the episode."""


@dataclass(frozen=True)
class Site:
    """Something to walk down step by step."""

    name: str
    task: Task
    role: str
    """Ids of the elements that are clicked."""
    count: int
    """Number of elements that are clicked in turn."""

    def action(self, environment: Environment, seen: Observation, step: int) -> Action:
        """Return the action of a step."""
        found = [element.id for element in seen.elements if element.role == self.role]
        return environment.actions.parse(f"click [{found[step % self.count]}]")


def form(seconds: float) -> Site:
    """Return the form application whose pages take that long."""
    start = f"http://{HOST}/begin?seconds={seconds:g}"
    task = Task(id=f"form/add?seconds={seconds:g}", instruction="Add the rows apple, pear and quince.", start=start)
    return Site(f"form, {seconds:g} s", task, "button", 3)


def boxes() -> Site:
    """Return the MiniWoB++ page."""
    return Site("MiniWoB++ page", MiniWob().task(BOXES), "checkbox", 6)


def service(script: str, port: int, *arguments: str, **fields: Any) -> Service:
    """Return a script of this folder as a service on a port."""
    command, reads = ("python3", str(HERE / script), str(port), *arguments), (str(HERE / script),)
    return Service(command=command, ready_url=f"http://127.0.0.1:{port}/", reads=reads, **fields)


@contextlib.asynccontextmanager
async def forms(limit: int | None = None) -> AsyncIterator[ForkingFactory]:
    """Environments of the form application that fork. limit: bytes of snapshots that are retained."""
    more = {} if limit is None else {"limit": limit}
    setup, services = PageSetup(hosts={HOST: "127.0.0.1:8000"}), [service("_form.py", 8000)]
    async with forking(CONFIG, setup, services=services, **more) as environments:
        yield environments


@contextlib.asynccontextmanager
async def plain_forms() -> AsyncIterator[EnvironmentFactory]:
    """Open the form application with a browser beside it, without a sandbox, one environment at a time, because it has one server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    alone = msgspec.structs.replace(CONFIG, sandbox="never")
    async with open_served_site(alone, PageSetup(hosts={HOST: f"127.0.0.1:{port}"}), [service("_form.py", port)]) as environments:
        yield environments


async def walk(site: Site, environment: Environment, depth: int, keep: Sequence[int] = ()) -> tuple[list[Action], dict[int, Snapshot]]:
    """Down to a depth; the actions on the way, and snapshots of the depths that are wanted."""
    seen, actions, kept = await environment.reset(site.task), list[Action](), dict[int, Snapshot]()
    for step in range(depth):
        actions.append(site.action(environment, seen, step))
        transition = await environment.step(actions[-1])
        if transition.observation is None:
            raise SystemExit(f"{site.name}: the episode ended after {step + 1} steps")
        seen = transition.observation
        if step + 1 in keep:
            kept[step + 1] = await environment.snapshot()
    return actions, kept
