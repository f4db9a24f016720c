"""Log-ins that branches lease, one each, and secrets that neither a model nor a run gets to see."""

from __future__ import annotations

import asyncio
import html
import json
from collections import deque
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

from exact.environments.sites.site import Account
from exact.errors import EnvironmentFailure, UsageError

_SHORTEST = 3
"""Characters of a value that is looked for on pages; shorter ones are everywhere."""


class Login:
    """One account's values. In what an agent reads, and in what is written, they are names in angle brackets."""

    def __init__(self, account: Account, environ: Mapping[str, str]) -> None:
        """Raises UsageError where a variable is not set."""
        self.name = account.name
        self._values = {field: value_of(f"account {account.name}: {field}", text, environ) for field, text in account.fields.items()}
        hidden = ((form, f"<{field}>") for field, value in self._values.items() for form in _forms(value))
        self._hidden = sorted(hidden, key=lambda pair: -len(pair[0]))

    def __repr__(self) -> str:
        return f"Login({self.name!r})"

    def fill(self, text: str) -> str:
        """A text with the values in place of their names."""
        for field, value in self._values.items():
            text = text.replace(f"<{field}>", value)
        return text

    def veil(self, text: str) -> str:
        """A text with the names in place of their values."""
        for value, name in self._hidden:
            text = text.replace(value, name)
        return text


class Accounts:
    """Leases log-ins. Who waits longest gets the next one."""

    def __init__(self, accounts: Iterable[Account], environ: Mapping[str, str], *, shared: bool = False) -> None:
        """`environ`: where values that are `$NAME` are looked up. `shared`: each may have any number of branches, for what one does with
        it, another does not see. Raises UsageError."""
        self._shared = shared
        self._free = [Login(account, environ) for account in accounts]
        self._waiting: deque[asyncio.Future[Login]] = deque()

    async def lease(self) -> Login:
        """A free log-in, waited for."""
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
                self.give_back(future.result())
            raise

    def take(self, name: str) -> Login:
        """That log-in: a state is someone's. Raises EnvironmentFailure if another branch has it."""
        for login in self._free:
            if login.name == name:
                if not self._shared:
                    self._free.remove(login)
                return login
        raise EnvironmentFailure(f"another branch uses the log-in {name} of that state: return by another route")

    def give_back(self, login: Login) -> None:
        """Nobody uses it any more."""
        if self._shared:
            return
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(login)
                return
        self._free.append(login)


class AccountLease:
    """The log-in that one branch has now; it can change with the state."""

    def __init__(self, accounts: Accounts, login: Login) -> None:
        self._accounts, self._login = accounts, login

    @property
    def now(self) -> Login:
        return self._login

    def change(self, name: str) -> None:
        """Have that one instead. Raises EnvironmentFailure if another branch has it."""
        if name and name != self._login.name:
            other = self._accounts.take(name)
            self._accounts.give_back(self._login)
            self._login = other

    def close(self) -> None:
        """Give it back."""
        self._accounts.give_back(self._login)


def value_of(what: str, text: str, environ: Mapping[str, str]) -> str:
    """A value as it is given, or that of the variable it names: `$NAME`. Raises UsageError where that is not set."""
    if not text.startswith("$"):
        return text
    if text[1:] not in environ:
        raise UsageError(f"{what} is {text}, which is not set: export {text[1:]}=...")
    return environ[text[1:]]


def _forms(value: str) -> set[str]:
    """How a value may be written: as it is, in an address, in a form, in HTML; and each of these in JSON."""
    if len(value) < _SHORTEST:
        return set()
    in_addresses = {quote(value, safe=""), quote(value, safe="!'()*")}  # the second: encodeURIComponent
    in_forms = {quote_plus(value), quote_plus(value, safe="*").replace("~", "%7E")}  # the second: a browser's form
    in_html = {html.escape(value), html.escape(value, quote=False), html.escape(value, quote=False).replace('"', "&quot;")}
    written = {value, *in_addresses, *in_forms, *in_html}
    return written | {json.dumps(each, ensure_ascii=ascii)[1:-1] for each in written for ascii in (True, False)}
