"""The addresses of the sites: names such as `__SHOPPING__` in task files, and the environment variables that give their addresses.

The calls `func:` of task files: named functions with literal arguments, read as syntax and looked up. Nothing is evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

from exact.errors import UsageError
from exact.origins import origin

_NAME = re.compile(r"__([A-Z][A-Z_]*[A-Z])__")


class Addresses:
    """Addresses of a benchmark's sites, looked up when they are needed."""

    def __init__(self, prefix: str, environ: Mapping[str, str]) -> None:
        """Configure the addresses.

        prefix: the site SHOPPING is at `<prefix>SHOPPING`, else at `SHOPPING`: `WA_` for WebArena, `VWA_` for VisualWebArena.
        """
        self._prefix, self._environ = prefix, environ
        self._asked = set[str]()

    def variable(self, site: str) -> str:
        """Return the variable that gives a site's address: the one that is set, else the one to set. Sites are named in any case."""
        site = site.upper()
        names = (f"{self._prefix}{site}", site)
        return next((name for name in names if self._environ.get(name)), names[0])

    def of(self, site: str) -> str:
        """Return a site's address, without a last slash. Raises UsageError that names the variable."""
        variable = self.variable(site)
        self._asked.add(site.upper())
        address = self._environ.get(variable, "").rstrip("/")
        if not address:
            raise UsageError(f"the site {site.lower()} has no address: export {variable}=http://host:port")
        if not origin(address):
            raise UsageError(f"{variable} is {address!r}, which is no address: write http://host:port")
        return address

    def fill(self, text: str) -> str:
        """Return a text with addresses for the names in it. Raises UsageError."""
        return _NAME.sub(lambda match: self.of(match[1]), text)

    def blame(self, url: str) -> str:
        """Return the variable that an address comes from, such as `WA_SHOPPING`; empty if none fits."""
        found = (self.variable(site) for site in sorted(self._asked))
        return next((name for name in found if origin(self._environ.get(name, "")) == origin(url)), "")

    def way_out(self, url: str) -> str:
        """Return how a message continues about an address that does not answer; empty if no variable is the cause."""
        blame = self.blame(url)
        return f": is {blame} right, and the site up?" if blame else ""


def named(text: str) -> set[str]:
    """Return the sites named in a text, in capitals."""
    return set(_NAME.findall(text))


PAGE, LAST_URL = "__page__", "__last_url__"


class HelperCall(NamedTuple):
    """HelperCall of a task file; `__page__` among the arguments is the page, `__last_url__` in a text its address."""

    name: str
    arguments: tuple[object, ...]


Result = str | float
Helper = Callable[..., Awaitable[Result]]


def parse(text: str, known: Collection[str]) -> HelperCall:
    """Return the call after `func:`. Raises UsageError if it is not a call, or calls an unknown function."""
    source = text.strip().removeprefix("func:").strip()
    try:
        node = ast.parse(source, mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            raise ValueError("it is no call with plain arguments")
        arguments = tuple(_argument(each) for each in node.args)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"func: {source[:80]!r} cannot be read ({error}): write name('text', 3)") from error
    if node.func.id not in known:
        raise UsageError(f"func: {node.func.id!r} is no helper: known are {', '.join(sorted(known))}")
    return HelperCall(node.func.id, arguments)


def _argument(node: ast.expr) -> object:
    if isinstance(node, ast.Name) and node.id == PAGE:
        return PAGE
    return ast.literal_eval(node)
