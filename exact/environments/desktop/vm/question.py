"""Programs by which `desktop_env` asks a machine for a path: one `print` of constants, home, variables and joined paths. None is run."""

from __future__ import annotations

import ast
import os.path
from collections.abc import Mapping

from exact.errors import ActionError

_SYSTEM = "Linux"


def answer(program: str, variables: Mapping[str, str]) -> str | None:
    r"""Return what a program prints; None where it is no such question. `variables`: environment of the session, HOME among them.

    >>> answer("import os; print(os.path.join(os.getenv('HOME'), '.config'))", {"HOME": "/home/user"})
    '/home/user/.config\\n'
    """
    try:
        statements = ast.parse(program).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    questions = [each for each in statements if not isinstance(each, (ast.Import, ast.Assign))]
    match questions:
        case [ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[said], keywords=[]))]:
            try:
                return f"{_value(said, variables)}\n"
            except ActionError:
                return None
        case _:
            return None


def _value(given: ast.expr, variables: Mapping[str, str]) -> str:
    match given:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(func=func, args=args, keywords=[]):
            values = [_value(each, variables) for each in args]
        case _:
            raise ActionError("no constant and no call")
    match ast.unparse(func), values:
        case "os.path.expanduser", [path]:
            return variables["HOME"] + path[1:] if path == "~" or path.startswith("~/") else path
        case "os.getenv" | "os.environ.get", [name] if name in variables:
            return variables[name]
        case "os.path.join", [first, *rest]:
            return os.path.join(first, *rest)  # noqa: PTH118 - what was asked for, character by character
        case "platform.system", []:
            return _SYSTEM
        case _:
            raise ActionError("another function")
