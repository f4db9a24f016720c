"""The first of the local tasks as worlds, to be checked and searched:

PYTHONPATH=examples/sync_environments exact check worlds:plain --quick
PYTHONPATH=examples/sync_environments exact check worlds:sandboxed --quick
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from run import HERE, tasks

from exact import Worlds
from exact.environments.adapters.script_browser import script_browser_worlds


def plain() -> AbstractAsyncContextManager[Worlds]:
    return script_browser_worlds(config=tasks()[0], sealed=True)


def sandboxed() -> AbstractAsyncContextManager[Worlds]:
    return script_browser_worlds(config=tasks()[0], sandbox=True, reads=(HERE,))
