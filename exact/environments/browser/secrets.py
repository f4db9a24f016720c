"""Secret masking: agents know secrets by their placeholders only, which are filled at the secrets' own origins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from exact.environments.base import SideEffect
from exact.environments.sites.accounts import Login
from exact.errors import InfrastructureError, SecretRefused, UsageError
from exact.observation import Element
from exact.secrecy.scrubber import NOTHING, Scrubber
from exact.secrecy.values import Secret, placeholder
from exact.task import Outcome

_PLACEHOLDER = re.compile(r"<secret:[^<>\n]{1,120}>")


class SecretMasking:
    """Replacement of secrets by their placeholders in all that an agent reads, and of placeholders by secrets in all that it types."""

    def __init__(
        self,
        logins: Callable[[], Sequence[Login]],
        home: Callable[[], Iterable[str]] = tuple,
        unfilled: Callable[[], Sequence[Secret]] = tuple,
        goal: Callable[[], str] = str,
    ) -> None:
        """Create a masking.

        `logins` returns the present log-ins, whose secrets are masked. `home` returns the origins of secrets that are bound to no others.
        `unfilled` returns the secrets that no agent types, such as headers and values of cookies; they are masked too. `goal` returns the
        instruction of the present task: user names and presumed secrets in it are not masked.
        """
        self._logins, self._home, self._unfilled, self._goal = logins, home, unfilled, goal
        self._known: tuple[Secret, ...] = ()
        self._made = NOTHING
        self.typing: Callable[[str, Sequence[str], Sequence[str]], None] = lambda name, at, bound: None
        """Called before a secret is typed: with its placeholder, the origins of the documents that get it, and those that it belongs to."""

    @property
    def scrubber(self) -> Scrubber:
        """Removes the present secrets."""
        goal = self._goal()
        known = tuple(secret for secret in self._all() if not secret.is_stated_in(goal))
        if known != self._known:
            self._known, self._made = known, Scrubber(known)
        return self._made

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
            named, bound = login.named(text), login.origins or tuple(self._home())
            if named and (not targets or not set(targets) <= set(bound)):
                foreign = next((each for each in targets if each not in bound), "") or "a page without an origin"
                raise SecretRefused(
                    f"{named} belongs to {', '.join(bound) or 'no origin'}: it is not typed at {foreign}; "
                    "secrets of further origins are declared by browser.login.secret_origins"
                )
            if named:
                self.typing(named, targets, bound)
        for login in self._logins():
            text = login.fill(text)
        return text

    def spelled(self, text: str, target: str) -> str:
        """Return the placeholder of a secret of other origins than `target` if most of it stands in a text; empty if none does."""
        try:
            logins = self._logins()
        except UsageError:
            return ""  # values that are not set are typed nowhere; the error is raised when the log-in begins
        return next((name for login in logins if target not in (login.origins or tuple(self._home())) and (name := login.held(text))), "")

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
