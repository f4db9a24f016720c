"""Secrets that an agent knows by name only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from exact.environments.base import SideEffect
from exact.environments.sites.accounts import Login
from exact.observation import Element


class SecretMasking:
    """The names stand in all that an agent reads; in what it types they are replaced by the secrets."""

    def __init__(self, logins: Callable[[], Sequence[Login]]) -> None:
        """`logins`: whose secrets these are, at the moment."""
        self._logins = logins

    def fill(self, text: str) -> str:
        """A text as it is typed."""
        for login in self._logins():
            text = login.fill(text)
        return text

    def mask(self, text: str) -> str:
        """A text as an agent may read it."""
        for login in self._logins():
            text = login.veil(text)
        return text

    def effect(self, effect: SideEffect) -> SideEffect:
        """An effect as it may be told."""
        return msgspec.structs.replace(effect, url=self.mask(effect.url), detail=self.mask(effect.detail))

    def elements(self, elements: tuple[Element, ...]) -> tuple[Element, ...]:
        """Elements as an agent may read them."""
        if not self._logins():
            return elements
        replace, mask = msgspec.structs.replace, self.mask
        return tuple(replace(each, name=mask(each.name), value=each.value and mask(each.value)) for each in elements)
