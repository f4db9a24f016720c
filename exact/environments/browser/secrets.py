"""Secret masking: agents know secrets by their placeholders only, which are filled at the secrets' own origins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import msgspec

from exact.config import LoginConfig
from exact.environments.base import SideEffect
from exact.environments.sites.accounts import AccountLease, Login
from exact.errors import InfrastructureError, SecretRefused, UsageError
from exact.observation import Element
from exact.origins import origins
from exact.secrecy.scrubber import NOTHING, Scrubber
from exact.secrecy.values import Secret, placeholder
from exact.task import Outcome, Task

if TYPE_CHECKING:
    from exact.environments.browser.login import Authenticator

_PLACEHOLDER = re.compile(r"<secret:[^<>\n]{1,120}>")


class SecretMasking:
    """Replacement of secrets by their placeholders in all that an agent reads, and of placeholders by secrets in all that it types."""

    def __init__(self, authenticator: Authenticator, account: AccountLease | None, login: LoginConfig) -> None:
        """Create a masking of the secrets of a log-in, which `begin` replaces, and of a leased account."""
        self._authenticator, self._account, self._login = authenticator, account, login
        self._start = self._goal = ""
        """Start and instruction of the present task."""
        self._known: tuple[Secret, ...] = ()
        self._made = NOTHING

    def begin(self, task: Task, login: LoginConfig) -> None:
        """Mask the secrets of an episode. User names and presumed secrets in the task's instruction are not masked."""
        self._start, self._goal, self._login = task.start, task.instruction, login

    @property
    def scrubber(self) -> Scrubber:
        """Removes the present secrets."""
        known = tuple(secret for secret in self._all() if not secret.is_stated_in(self._goal))
        if known != self._known:
            self._known, self._made = known, Scrubber(known)
        return self._made

    def _logins(self) -> tuple[Login, ...]:
        """Return the log-ins whose secrets an agent knows by name only."""
        return (*((self._account.login,) if self._account else ()), *self._authenticator.logins(self._login))

    def _unfilled(self) -> tuple[Secret, ...]:
        """Return the secrets that no agent types: those of headers, basic authentication and sessions."""
        return self._authenticator.secrets(self._login, self._account.login.name if self._account else "")

    def home(self) -> tuple[str, ...]:
        """Return the origins of secrets that are bound to no others: those of the task's start and of its log-in."""
        return origins(self._start, urljoin(self._start, self._login.url))

    def _all(self) -> tuple[Secret, ...]:
        return (*(secret for login in self._logins() for secret in login.secrets), *self._unfilled())

    def _untyped(self, text: str) -> str:
        """Return the first placeholder in a text of a secret that no agent types; empty if there is none."""
        return next((shown for each in self._unfilled() if (shown := placeholder(each.name)) in text), "")

    def holds(self, text: str) -> bool:
        """Return whether a placeholder stands in a text."""
        return any(login.named(text) for login in self._logins()) or bool(self._untyped(text))

    def fill(self, text: str, where: Iterable[str]) -> str:
        """Return a text with the secrets in place of their placeholders.

        `where`: origins of all documents that may get the text. Raises SecretRefused if a secret is not bound to one of them.
        """
        targets = tuple(where)
        if (shown := self._untyped(text)) and not any(login.named(shown) for login in self._logins()):
            raise SecretRefused(f"{shown} belongs to the log-in itself: no agent types it")
        for login in self._logins():
            named, bound = login.named(text), login.origins or self.home()
            if named and (not targets or not set(targets) <= set(bound)):
                foreign = next((each for each in targets if each not in bound), "") or "a page without an origin"
                raise SecretRefused(
                    f"{named} belongs to {', '.join(bound) or 'no origin'}: it is not typed at {foreign}; "
                    "secrets of further origins are declared by browser.login.secret_origins"
                )
        for login in self._logins():
            text = login.fill(text)
        return text

    def named(self, text: str) -> list[tuple[str, tuple[str, ...]]]:
        """Return the placeholders in a text, one for each log-in, with the origins that they are bound to."""
        return [(name, login.origins or self.home()) for login in self._logins() if (name := login.named(text))]

    def spelled(self, text: str, target: str) -> str:
        """Return the placeholder of a secret of other origins than `target` if most of it stands in a text; empty if none does."""
        try:
            logins = self._logins()
        except UsageError:
            return ""  # values that are not set are typed nowhere; the error is raised when the log-in begins
        return next((name for login in logins if target not in (login.origins or self.home()) and (name := login.held(text))), "")

    def guarded(self) -> frozenset[str]:
        """Return the origins that secrets of log-ins belong to, with their partners; empty if there are no such secrets."""
        try:
            bound = [login.origins or self.home() for login in self._logins()]
        except UsageError:
            return frozenset()
        return frozenset(chain(*bound, origins(*self._login.partner_origins))) if bound else frozenset()

    def mask(self, text: str) -> str:
        """Return a text with the placeholders in place of the secrets."""
        return self.scrubber.text(text)

    def revealed(self, outcome: Outcome) -> Outcome:
        """Return an outcome in whose answer the secrets stand again, for an evaluator: a placeholder is never scored.

        Raises InfrastructureError if a placeholder stands for no secret of this environment, or for several.
        """
        answer = outcome.answer or ""
        shown = tuple(dict.fromkeys(_PLACEHOLDER.findall(answer)))
        for each in shown:
            values = {secret.value for secret in self._all() if placeholder(secret.name) == each}
            if len(values) != 1:
                why = "which stands for several secrets" if values else "which stands for no secret of this task"
                raise InfrastructureError(f"the answer holds {each}, {why}: it is not scored").final()
            answer = answer.replace(each, values.pop())
        return msgspec.structs.replace(outcome, answer=answer, revealed=shown) if shown else outcome

    def effect(self, effect: SideEffect) -> SideEffect:
        """Return a side effect with masked secrets."""
        return msgspec.structs.replace(effect, url=self.mask(effect.url), detail=self.mask(effect.detail))

    def elements(self, elements: tuple[Element, ...]) -> tuple[Element, ...]:
        """Return elements with masked secrets, also of those that are split over several elements."""
        scrubber = self.scrubber
        given = [text for each in elements for text in (each.name, each.value or "")]
        if not scrubber or (done := scrubber.texts(given)) == given:
            return elements
        texts = zip(elements, done[::2], done[1::2], strict=True)
        return tuple(msgspec.structs.replace(each, name=name, value=each.value and value) for each, name, value in texts)
