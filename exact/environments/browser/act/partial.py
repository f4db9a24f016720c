"""Actions that turn out not to fit when part of them is done."""

from __future__ import annotations

from exact.errors import ActionError


class PartialAction(ActionError):
    """It may not leave the environment as it was: whoever catches it looks, and only then raises an ActionError or tells what came."""
