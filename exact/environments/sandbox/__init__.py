"""Sandboxes that can be checkpointed and restored: gVisor, without image, daemon or root.

The names are imported when they are first used: `service` holds the declarations of a task, and is imported without the sandbox.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exact.environments.sandbox.bundle import GuestSpec, find_interpreter
    from exact.environments.sandbox.launcher import SandboxLauncher
    from exact.environments.sandbox.runsc import Runsc, find_runsc
    from exact.environments.sandbox.sandbox import Sandbox
    from exact.environments.sandbox.sandboxes import Sandboxes, open_sandboxes
    from exact.environments.sandbox.service import Service, declared_services

_MODULES = {
    "GuestSpec": "bundle",
    "Runsc": "runsc",
    "Sandbox": "sandbox",
    "SandboxLauncher": "launcher",
    "Sandboxes": "sandboxes",
    "Service": "service",
    "declared_services": "service",
    "find_runsc": "runsc",
    "find_interpreter": "bundle",
    "open_sandboxes": "sandboxes",
}

__all__ = [
    "GuestSpec",
    "Runsc",
    "Sandbox",
    "SandboxLauncher",
    "Sandboxes",
    "Service",
    "declared_services",
    "find_runsc",
    "find_interpreter",
    "open_sandboxes",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
