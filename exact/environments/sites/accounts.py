"""Log-ins that environments lease, one each, and the masking of their secrets, which neither models nor run folders contain."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterable, Mapping

from exact.environments.sites.site import Account
from exact.errors import EnvironmentFailure, UsageError
from exact.origins import origin, origins
from exact.secrecy.scrubber import Scrubber
from exact.secrecy.values import Secret, placeholder

_STORED = re.compile(r"<secret:([^<>]+)>")
"""Text that a run stores in place of a secret."""


class Login:
    """Secret values of one account. In prompts and in run folders placeholders such as `<secret:password>` stand for them."""

    def __init__(self, account: Account, environ: Mapping[str, str]) -> None:
        """Read the values. Raises UsageError if an environment variable is not set, or an origin is invalid."""
        self.name = account.name
        self.origins = _origins(account)
        """Origins at which the values may be typed. Empty: those of the task's log-in."""
        self._values = {field: value_of(f"account {account.name}: {field}", text, environ) for field, text in account.fields.items()}
        self._placeholders = re.compile("|".join(rf"<(?:secret:)?({re.escape(field)})>" for field in self._values) or r"(?!)")
        self._scrubber = Scrubber(self.secrets)
        self._parts = Scrubber(
            Secret(each.name, part, within=True) for each in self.secrets if each.is_sure for part in _most_of(each.value)
        )

    def __repr__(self) -> str:
        return f"Login({self.name!r})"

    def fill(self, text: str) -> str:
        """Return a text with the values in place of their placeholders."""
        return self._placeholders.sub(lambda found: self._values[found[found.lastindex or 0]], text)

    def named(self, text: str) -> str:
        """Return the first placeholder that stands in a text; empty if there is none."""
        found = self._placeholders.search(text)
        return placeholder(found[found.lastindex or 0]) if found else ""

    def mask(self, text: str) -> str:
        """Return a text with the placeholders in place of their values."""
        return self._scrubber.text(text)

    def held(self, text: str) -> str:
        """Return the placeholder of a value if most of it stands in a text in some form; empty if none does. Short values are ignored."""
        return next((placeholder(found.name) for found in self._parts.find(text)), "")

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The values by their names."""
        return tuple(Secret(field, value) for field, value in self._values.items())


class Accounts:
    """Leases log-ins, in the order of the requests."""

    def __init__(self, accounts: Iterable[Account], environ: Mapping[str, str], *, shared: bool = False) -> None:
        """Create log-ins.

        `environ`: environment variables for values of the form `$NAME`. `shared`: a log-in may be leased any number of times, because the
        environments do not see each other's effects. Raises UsageError if a variable is not set.
        """
        self._shared = shared
        self._free = [Login(account, environ) for account in accounts]
        self._waiting: deque[asyncio.Future[Login]] = deque()

    async def lease(self) -> Login:
        """Lease a log-in. Waits until one is free."""
        if self._shared:
            return self._free[0]
        if self._free and not self._waiting:
            return self._free.pop(0)
        future: asyncio.Future[Login] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release(future.result())
            raise

    def take(self, name: str) -> Login:
        """Lease the log-in that a state belongs to. Raises EnvironmentFailure if another environment has it."""
        for login in self._free:
            if login.name == name:
                if not self._shared:
                    self._free.remove(login)
                return login
        raise EnvironmentFailure(f"another environment uses the log-in {name} of that state: return by another route")

    def release(self, login: Login) -> None:
        """Release a log-in: the longest waiting request gets it."""
        if self._shared:
            return
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(login)
                return
        self._free.append(login)


class AccountLease:
    """Log-in of one environment, which can change with the state."""

    def __init__(self, accounts: Accounts, login: Login) -> None:
        self._accounts, self._login = accounts, login

    @property
    def login(self) -> Login:
        """Present log-in."""
        return self._login

    def change(self, name: str) -> None:
        """Change to another log-in. Raises EnvironmentFailure if another environment has it."""
        if name and name != self._login.name:
            other = self._accounts.take(name)
            self._accounts.release(self._login)
            self._login = other

    def close(self) -> None:
        """Release the log-in."""
        self._accounts.release(self._login)


def _origins(account: Account) -> tuple[str, ...]:
    """Return the origins of an account in the one form in which they are compared. Raises UsageError."""
    for each in account.origins:
        if not origin(each):
            raise UsageError(f"account {account.name}: {each!r} is no origin: write https://host")
    return origins(*account.origins)


def _most_of(value: str) -> tuple[str, str]:
    """Return the beginning and the end of a value. Each text that holds most of the value holds one of them."""
    length = max(6, -(-len(value) * 3 // 5))
    return value[:length], value[-length:]


def variable_of(name: str) -> str:
    """Return the environment variable from which a stored placeholder is resolved."""
    return f"EXACT_SECRET_{re.sub(r'[^A-Za-z0-9]+', '_', name).upper()}"


def value_of(what: str, text: str, environ: Mapping[str, str]) -> str:
    """Return a value as given, or that of the environment variable `$NAME`. Raises UsageError if that is not set.

    `what`: description of the value in the message. A run stores `<secret:name>` in place of a value, which is read again: it is that
    of the variable `variable_of(name)`.
    """
    if stored := _STORED.fullmatch(text):
        variable = variable_of(stored[1])
        if variable not in environ:
            raise UsageError(f"{what} is not stored in a run: export {variable}=..., or give a file: exact resume --secrets FILE")
        return environ[variable]
    if not text.startswith("$"):
        return text
    if text[1:] not in environ:
        raise UsageError(f"{what} is {text}, which is not set: export {text[1:]}=...")
    return environ[text[1:]]
