"""What a task says about its browser, over what the run's configuration says."""

from __future__ import annotations

import json

import msgspec

from exact.config import BrowserConfig
from exact.config.aliases import current
from exact.errors import UsageError, unknown
from exact.task import Task

KEYS = (
    *("width", "height", "scale", "locale", "timezone", "user_agent", "geolocation", "permissions", "mask", "login", "html", "dialogs"),
    *("download_bytes", "settle_seconds", "answer_seconds", "masks", "clock", "proxy", "authorities", "recording", "screenshots"),
)
"""Of BrowserConfig, what a task may set."""
_LAUNCH = ("proxy", "authorities", "recording")
"""What holds for a whole browser."""


def browser_config_of(config: BrowserConfig, task: Task) -> BrowserConfig:
    """The configuration with the keys of the task's metadata `browser`, a JSON object. Raises UsageError."""
    text = task.metadata.get("browser")
    if text is None:
        return config
    try:
        given = json.loads(str(text))
    except ValueError as error:
        raise UsageError(f"task {task.id}: its `browser` is no JSON object: {error}") from error
    if not isinstance(given, dict):
        raise UsageError(f"task {task.id}: its `browser` is no JSON object: write {{locale: de-DE}}")
    given = current(given, "browser", announce=False)
    for key in given:
        if key not in KEYS:
            raise unknown("key of a task's browser", key, KEYS)
    try:
        return msgspec.convert({**msgspec.to_builtins(config), **given}, BrowserConfig)
    except msgspec.ValidationError as error:
        raise UsageError(f"task {task.id}: its `browser` does not fit: {error}") from error


def same_launch(one: BrowserConfig, other: BrowserConfig) -> bool:
    """Whether one browser does for both."""
    return all(getattr(one, key) == getattr(other, key) for key in _LAUNCH)
