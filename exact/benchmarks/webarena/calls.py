"""The calls `func:` of task files: named functions with literal arguments, read as syntax and looked up. Nothing is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

from exact.errors import UsageError

PAGE, LAST_URL = "__page__", "__last_url__"


class HelperCall(NamedTuple):
    """HelperCall of a task file; `__page__` among the arguments is the page, `__last_url__` in a text its address."""

    name: str
    arguments: tuple[object, ...]


Result = str | float
Helper = Callable[..., Awaitable[Result]]


def parse(text: str, known: Collection[str]) -> HelperCall:
    """Return the call after `func:`. Raises UsageError where it is no call, or of an unknown function."""
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
