"""Sandboxes that can be checkpointed and restored: gVisor, without image, daemon or root."""

from exact.environments.sandbox.bundle import Guest, interpreter
from exact.environments.sandbox.launch import SandboxLaunch
from exact.environments.sandbox.runsc import Runsc, find_runsc
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import Sandboxes, open_sandboxes
from exact.environments.sandbox.service import Service, declared

__all__ = ["Guest", "Runsc", "Sandbox", "SandboxLaunch", "Sandboxes", "Service", "declared", "find_runsc", "interpreter", "open_sandboxes"]
