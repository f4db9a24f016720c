"""The browser configuration of a task: the run's, with the task's own keys."""

from __future__ import annotations

import json

import msgspec

from exact.config import BrowserConfig
from exact.config.aliases import current
from exact.errors import UsageError, unknown
from exact.task import Task

KEYS = (
    *("width", "height", "scale", "locale", "timezone", "user_agent", "geolocation", "permissions", "mask", "login", "html", "dialogs"),
    *("download_bytes", "settle_seconds", "answer_seconds", "masks", "clock", "proxy", "authorities", "recording", "screenshots", "device"),
)
"""Keys of BrowserConfig that a task may set."""
_LAUNCH_KEYS = ("proxy", "authorities", "recording")
"""Keys that apply to a whole browser, so that environments with different values need different ones."""


def browser_config_of(config: BrowserConfig, task: Task) -> BrowserConfig:
    """Return the configuration with the keys of the task's metadata `browser`, a JSON object. Raises UsageError for an invalid one."""
    text = task.metadata.get("browser")
    if text is None:
        return config
    try:
        given = json.loads(str(text))
    except ValueError as error:
        raise UsageError(f"task {task.id}: `browser` is no JSON object: {error}") from error
    if not isinstance(given, dict):
        raise UsageError(f"task {task.id}: `browser` is no JSON object: write {{locale: de-DE}}")
    given = current(given, "browser", announce=False)
    for key in given:
        if key not in KEYS:
            raise unknown("key of a task's browser", key, KEYS)
    try:
        return msgspec.convert({**msgspec.to_builtins(config), **given}, BrowserConfig)
    except msgspec.ValidationError as error:
        raise UsageError(f"task {task.id}: invalid `browser`: {error}") from error


def same_launch(one: BrowserConfig, other: BrowserConfig) -> bool:
    """Return whether one browser suits both configurations."""
    return all(getattr(one, key) == getattr(other, key) for key in _LAUNCH_KEYS)
