"""Skips where Trac and Wagtail, or a sandbox, are not there."""

from __future__ import annotations

import pytest

from exact.benchmarks.sites.suite import interpreter
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure, UsageError


@pytest.fixture(scope="session")
def applications() -> None:
    """Skipped where Trac and Wagtail are not installed."""
    try:
        interpreter()
    except UsageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def runsc() -> None:
    """Skipped where environments cannot fork."""
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))
