"""Factories of environments for the first local task, for `exact check` and search.

PYTHONPATH=examples/sync_environments exact check environments:plain --quick
PYTHONPATH=examples/sync_environments exact check environments:sandboxed --quick
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from run import HERE, tasks

from exact import EnvironmentFactory
from exact.environments.adapters.script_browser import script_browser_factory


def plain() -> AbstractAsyncContextManager[EnvironmentFactory]:
    return script_browser_factory(config=tasks()[0], isolated=True)


def sandboxed() -> AbstractAsyncContextManager[EnvironmentFactory]:
    return script_browser_factory(config=tasks()[0], sandbox=True, reads=(HERE,))
