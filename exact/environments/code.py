"""Code as an action, for environments such as desktops, where a step is a few lines of Python (OSWorld's pyautogui).

The code is not run here: it is sent to the environment, which runs it inside itself.
"""

from __future__ import annotations

import ast

from exact.action import Parameter, Verb
from exact.errors import ActionError


def python(help: str, *, name: str = "python") -> Verb:
    """Return a verb whose argument is Python code. `help`: says what is imported and what is not allowed."""
    return Verb(name=name, form=(Parameter.TEXT,), code="python", normalise=_canonical, help=help)


def _canonical(args: tuple[str | float, ...]) -> tuple[str | float, ...]:
    """Return the code without comments and layout, so that equal statements are one action. Raises ActionError."""
    text = str(args[0])
    try:
        plain = ast.unparse(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ActionError(f"the code does not parse ({error}): write whole statements") from error
    if not plain:
        raise ActionError("there is no statement in the code: write at least one")
    return (plain,)
