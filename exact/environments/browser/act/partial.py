"""Errors of actions that say more than that they were refused."""

from __future__ import annotations

from exact.errors import ActionError


class PartialAction(ActionError):
    """An action that failed after partly executing. The caller must observe again before it reports an ActionError."""


class Ineffective(PartialAction):
    """Raised after input to which a page may react in its own way. It is an error only where nothing came of it."""


class Vanished(ActionError):
    """An action whose element, or its document, the page has removed since it was observed. Nothing was done."""
