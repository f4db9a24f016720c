"""Secret masking: agents know secrets by their names only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from exact.environments.base import SideEffect
from exact.environments.sites.accounts import Login
from exact.observation import Element


class SecretMasking:
    """Replacement of secrets by their names in all that an agent reads, and of names by secrets in all that it types."""

    def __init__(self, logins: Callable[[], Sequence[Login]]) -> None:
        """Create a masking. `logins` returns the present log-ins, whose secrets are masked."""
        self._logins = logins

    def fill(self, text: str) -> str:
        """Return a text with the secrets in place of their names."""
        for login in self._logins():
            text = login.fill(text)
        return text

    def mask(self, text: str) -> str:
        """Return a text with the names in place of the secrets."""
        for login in self._logins():
            text = login.mask(text)
        return text

    def effect(self, effect: SideEffect) -> SideEffect:
        """Return a side effect with masked secrets."""
        return msgspec.structs.replace(effect, url=self.mask(effect.url), detail=self.mask(effect.detail))

    def elements(self, elements: tuple[Element, ...]) -> tuple[Element, ...]:
        """Return elements with masked secrets."""
        if not self._logins():
            return elements
        replace, mask = msgspec.structs.replace, self.mask
        return tuple(replace(each, name=mask(each.name), value=each.value and mask(each.value)) for each in elements)
