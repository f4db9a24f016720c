"""Program of the guest column of browser_step.py, run in a separate process."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from exact.benchmarks.miniwob import MiniWob
from exact.config import BrowserConfig
from exact.environments.base import EnvironmentFactory


def environments() -> AbstractAsyncContextManager[EnvironmentFactory]:
    return MiniWob().environments(BrowserConfig(screenshots=False))
