"""Small Python programs as data: constants, assignments, loops over known values, and calls. They are not run.

A program of a model is parsed and interpreted here statement by statement. Only numbers, texts, lists and tuples exist in it. Its calls are
handed to a reader, which knows the available functions. Everything else is refused by name.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import NamedTuple, Never, TypeAlias

from exact.errors import ActionError

Value: TypeAlias = "str | float | int | bool | tuple[Value, ...] | None"
Arguments: TypeAlias = "tuple[list[Value], dict[str, Value]]"

_MOST_STEPS = 2_000
"""Maximum number of statements and expressions that a program may take, loops counted in full."""
_LONGEST = 20_000
"""Maximum characters of a text, and most parts of a list."""
_LARGEST = 1e9
"""Largest number."""
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip


class Call(NamedTuple):
    """Call of a function by its full name, such as `pyautogui.click`."""

    name: str
    positional: list[Value]
    named: dict[str, Value]

    def __str__(self) -> str:
        given = [*map(repr, self.positional), *(f"{name}={value!r}" for name, value in self.named.items())]
        return f"{self.name}({', '.join(given)})"


class Interpreter:
    """Interpreter of one program."""

    def __init__(self, modules: frozenset[str], call: Callable[[Call], Value], leave: Callable[[Call], None]) -> None:
        """Make an interpreter.

        `modules`: those that may be imported. `call` is given each call and returns its value; `leave` is given the call of a `with`
        statement when its block is over. Both raise ActionError if there is no such function.
        """
        self._modules, self._call, self._leave = modules, call, leave
        self._functions: dict[str, str] = {name: name for name in modules}
        """Meaning of names: modules, and functions that were imported from them."""
        self._values: dict[str, Value] = {}
        self._steps = 0

    def run(self, text: str) -> None:
        """Interpret a program. Raises ActionError at the first part that is refused."""
        try:
            parsed = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ActionError(f"the program cannot be read ({error}): write whole Python statements") from error
        try:
            self._block(parsed.body)
        except RecursionError:
            raise ActionError("the program is nested too deeply: write one statement a line") from None

    def _block(self, statements: list[ast.stmt]) -> None:
        for each in statements:
            self._statement(each)

    def _statement(self, given: ast.stmt) -> None:
        self._count()
        match given:
            case ast.Import(names=names):
                for each in names:
                    self._known(each.name, given)
                    self._functions[each.asname or each.name] = each.name
            case ast.ImportFrom(module=str(module), names=names, level=0):
                self._known(module, given)
                for each in names:
                    self._functions[each.asname or each.name] = f"{module}.{each.name}"
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self._value(value)
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                self._values[name] = self._operate(op, self._value(ast.Name(name)), self._value(value), given)
            case ast.For(target=target, iter=over, body=body, orelse=[]):
                for item in self._items(over):
                    self._bind(target, item)
                    self._block(body)
            case ast.With(items=[ast.withitem(context_expr=ast.Call() as called, optional_vars=None)], body=body):
                entered = self._read_call(called)
                self._call(entered)
                self._block(body)
                self._leave(entered)
            case _:
                self._refuse(given)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Attribute):  # a setting of a module, such as PAUSE
            self._call(Call(self._name(target) + "=", [self._value(value)], {}))
        else:
            self._bind(target, self._value(value))

    def _bind(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self._values[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(value, tuple) and len(value) == len(parts):
                for part, each in zip(parts, value, strict=True):
                    self._bind(part, each)
            case _:
                self._refuse(target)

    def _items(self, over: ast.expr) -> tuple[Value, ...]:
        match over:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]):
                bounds = [self._value(each) for each in args]
                if not all(isinstance(each, int) for each in bounds) or not 1 <= len(bounds) <= 3 or bounds[2:] == [0]:
                    self._refuse(over)
                found = range(*(each for each in bounds if isinstance(each, int)))
                if len(found) > _MOST_STEPS:
                    raise ActionError(f"a loop of {len(found)} rounds is too long: at most {_MOST_STEPS} statements are carried out")
                return tuple(found)
            case _:
                value = self._value(over)
        if isinstance(value, str):
            return tuple(value)
        if not isinstance(value, tuple):
            self._refuse(over)
        return value

    def _value(self, given: ast.expr) -> Value:
        self._count()
        match given:
            case ast.Constant(value=bool() | str() | None as value):
                return value
            case ast.Constant(value=int() | float() as value):
                return self._bounded(value, given)
            case ast.Name(id=name) if name in self._values:
                return self._values[name]
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self._value(each) for each in parts)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                number = self._value(operand)
                if not isinstance(number, (int, float)):
                    self._refuse(given)
                return -number if isinstance(sign, ast.USub) else number
            case ast.BinOp(left=left, op=op, right=right):
                return self._operate(op, self._value(left), self._value(right), given)
            case ast.Subscript(value=value, slice=index):
                return self._part(self._value(value), self._value(index), given)
            case ast.JoinedStr(values=values):
                return self._text("".join(map(self._formatted, values)), given)
            case ast.Call(func=ast.Name(id="str" | "int" | "round" as name), args=[inner], keywords=[]):
                return self._converted(name, self._value(inner), given)
            case ast.Call():
                return self._call(self._read_call(given))
            case _:
                self._refuse(given)

    def _operate(self, op: ast.operator, left: Value, right: Value, given: ast.AST) -> Value:
        if isinstance(left, (int, float)) and isinstance(right, (int, float)) and type(op) in _OPERATORS:
            try:
                return self._bounded(_OPERATORS[type(op)](left, right), given)
            except ArithmeticError as error:
                raise ActionError(f"`{_shown(given)}`: {error}") from error
        match op, left, right:
            case ast.Add(), str(), str():
                return self._text(left + right, given)
            case ast.Add(), tuple(), tuple() if len(left) + len(right) <= _LONGEST:
                return left + right
            case ast.Mult(), str() | tuple(), int() if len(left) * right <= _LONGEST:
                return left * right
            case _:
                self._refuse(given)

    def _part(self, value: Value, index: Value, given: ast.AST) -> Value:
        if isinstance(value, (str, tuple)) and isinstance(index, int) and -len(value) <= index < len(value):
            return value[index]
        self._refuse(given)

    def _formatted(self, part: ast.expr) -> str:
        match part:
            case ast.Constant(value=str(text)):
                return text
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._written(self._value(value), part)
            case _:
                self._refuse(part)

    def _converted(self, name: str, value: Value, given: ast.AST) -> Value:
        if name == "str":
            return self._written(value, given)
        if not isinstance(value, (int, float)):
            self._refuse(given)
        return int(value) if name == "int" else round(value)

    def _written(self, value: Value, given: ast.AST) -> str:
        """Return the `str` of a value; that of a list would depend on how it was written."""
        return str(value) if not isinstance(value, tuple) else self._refuse(given)

    def _read_call(self, given: ast.Call) -> Call:
        positional = [self._value(each) for each in given.args if not isinstance(each, ast.Starred)]
        for each in given.args:
            if isinstance(each, ast.Starred):
                value = self._value(each.value)
                positional.extend(value if isinstance(value, tuple) else self._refuse(given))
        named = {each.arg: self._value(each.value) for each in given.keywords if each.arg is not None}
        if len(named) < len(given.keywords):
            self._refuse(given)
        return Call(self._name(given.func), positional, named)

    def _name(self, given: ast.expr) -> str:
        """Return the full name of a function: `pyautogui.click`, however it was imported."""
        match given:
            case ast.Name(id=name):
                return self._functions.get(name, name)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in self._functions:
                return f"{self._functions[module]}.{name}"
            case _:
                self._refuse(given)

    def _known(self, module: str, given: ast.stmt) -> None:
        if module not in self._modules:
            raise ActionError(f"`{_shown(given)}` is not allowed: there is {', '.join(sorted(self._modules))}, and nothing is run")

    def _text(self, text: str, given: ast.AST) -> str:
        return text if len(text) <= _LONGEST else self._refuse(given)

    def _bounded(self, value: float, given: ast.AST) -> float:
        return value if abs(value) <= _LARGEST else self._refuse(given)  # neither infinite nor NaN

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise ActionError(f"the program is too long: at most {_MOST_STEPS} statements and values, loops counted in full")

    @staticmethod
    def _refuse(given: ast.AST) -> Never:
        what = {"FunctionDef": "a function", "While": "a loop without a known end", "If": "a condition", "Lambda": "a function"}
        kind = what.get(type(given).__name__, "this")
        raise ActionError(
            f"`{_shown(given)}`: {kind} is not allowed: write calls with numbers and texts that are known, and `for` loops over them"
        )


def _shown(given: ast.AST) -> str:
    try:
        text = ast.unparse(given).splitlines()[0]
    except (RecursionError, IndexError):
        return "..."
    return text if len(text) <= 80 else text[:79] + "…"
