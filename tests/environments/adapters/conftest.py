"""What others' virtual environment there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from exact.environments.adapters.gym import browsergym_python, has_module
from exact.errors import UsageError


@pytest.fixture(scope="session")
def browsergym(executable: str) -> Path:
    """BrowserGym's interpreter; tests that need it are skipped where it is not, or no browser."""
    try:
        return browsergym_python()
    except UsageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def libwebarena(browsergym: Path) -> Path:
    if not has_module(browsergym, "webarena"):
        pytest.skip("libwebarena is not installed: run shells/setup.sh --browsergym")
    return browsergym
