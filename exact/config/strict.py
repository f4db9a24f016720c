"""Base class and value types of configuration sections."""

from __future__ import annotations

from typing import Annotated

import msgspec

AtLeastZero = Annotated[int, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
LONGEST = 30 * 24 * 3600.0
"""Seconds of the longest time limit: a month."""
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: frozen, by keyword, without unknown keys."""
