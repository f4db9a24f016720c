"""One desktop for all tests, with a text editor and a calculator. Tests are skipped where there is none."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from exact.environments.desktop.factory import absent, desktop_factory
from exact.environments.process.worker import Worker
from exact.observation import Observation

from .applications import Do


@pytest.fixture(scope="session")
def has_desktop() -> None:
    lack = absent() or ", ".join(name for name in ("mousepad", "galculator") if not shutil.which(name))
    if lack:
        pytest.skip(f"no desktop: {lack}")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def desktop(has_desktop: None) -> AsyncIterator[Worker]:
    """Open one desktop. Its tests run in the session's loop."""
    async with desktop_factory() as environments, environments.open(simulation=True) as environment:
        assert isinstance(environment, Worker)
        yield environment


@pytest.fixture
def do(desktop: Worker) -> Do:
    """Carry out an action in written form; what is seen then."""

    async def done(text: str) -> Observation:
        seen = (await desktop.step(desktop.actions.parse(text))).observation
        assert seen is not None
        return seen

    return done
