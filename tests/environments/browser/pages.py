"""Short ways to name what tests look for on a page."""

from __future__ import annotations

from exact.environments.base import Transition
from exact.environments.browser import BrowserEnvironment
from exact.environments.browser.fork.factory import ForkedBackend
from exact.observation import Element, Observation


def find(seen: Observation | None, name: str, role: str = "") -> Element:
    """Return the first element whose name contains `name`."""
    assert seen is not None
    found = [each for each in seen.elements if name in each.name and role in ("", each.role)]
    assert found, f"no {role} {name!r} in:\n{seen.text}"
    return found[0]


async def do(environment: BrowserEnvironment, text: str) -> Transition:
    """Take one step, written as an agent writes it."""
    return await environment.step(environment.actions.parse(text))


async def look(environment: BrowserEnvironment, text: str) -> Observation:
    """Return the observation after a step."""
    observation = (await do(environment, text)).observation
    assert observation is not None
    return observation


def forked(environment: BrowserEnvironment) -> ForkedBackend:
    """Return the backend of an environment that forks."""
    backend = environment.episode.backend
    assert isinstance(backend, ForkedBackend)
    return backend
