"""Sandboxes that can be checkpointed and restored: gVisor, without image, daemon or root.

The names are imported when they are first used: `service` describes what a task declares, and is imported without the sandbox.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exact.environments.sandbox.bundle import Guest, interpreter
    from exact.environments.sandbox.launch import SandboxLaunch
    from exact.environments.sandbox.runsc import Runsc, find_runsc
    from exact.environments.sandbox.sandbox import Sandbox
    from exact.environments.sandbox.sandboxes import Sandboxes, open_sandboxes
    from exact.environments.sandbox.service import Service, declared

_MODULES = {
    "Guest": "bundle",
    "Runsc": "runsc",
    "Sandbox": "sandbox",
    "SandboxLaunch": "launch",
    "Sandboxes": "sandboxes",
    "Service": "service",
    "declared": "service",
    "find_runsc": "runsc",
    "interpreter": "bundle",
    "open_sandboxes": "sandboxes",
}

__all__ = ["Guest", "Runsc", "Sandbox", "SandboxLaunch", "Sandboxes", "Service", "declared", "find_runsc", "interpreter", "open_sandboxes"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
