"""Emulation of devices by Playwright's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from exact.config import BrowserConfig
from exact.errors import UsageError, unknown

Devices = Mapping[str, Mapping[str, Any]]
"""Descriptions of devices by name, as Playwright has them."""


def with_device(config: BrowserConfig, devices: Devices) -> BrowserConfig:
    """Return a configuration with the viewport, scale and user agent of its device, if it names one. A user agent that is given stays.

    Raises UsageError for an unknown name, with the nearest one.
    """
    if not config.device:
        return config
    found = _device(config.device, devices)
    size, agent = found["viewport"], config.user_agent or str(found["user_agent"])
    return msgspec.structs.replace(
        config, width=size["width"], height=size["height"], scale=float(found["device_scale_factor"]), user_agent=agent
    )


def device_options(config: BrowserConfig, devices: Devices) -> dict[str, Any]:
    """Return the options of a context for what a configuration does not hold: whether the device is a phone with a touch screen."""
    if not config.device:
        return {}
    found = _device(config.device, devices)
    return {"is_mobile": found["is_mobile"], "has_touch": found["has_touch"]}


def _device(name: str, devices: Devices) -> Mapping[str, Any]:
    if not devices:
        raise UsageError("browser.device needs a browser outside of a sandbox: set browser.sandbox to never")
    if name not in devices:
        raise unknown("browser.device", name, devices)
    return devices[name]
