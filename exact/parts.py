"""The boundary to parts that a user or a package brings: environments, policies, value functions, memories, evaluators, algorithms.

A part may raise and return anything. What its contract does not name becomes one typed failure here. It names the part by its class, the
method, what came, and what was expected.
"""

from __future__ import annotations

import asyncio
import inspect
import reprlib
import traceback
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from exact.errors import BudgetExceeded, ExactError, InfrastructureError, PartError, UncertainCommit, UsageError
from exact.text import inert

T = TypeVar("T")
_CONTRACT: tuple[type[Exception], ...] = (InfrastructureError, PartError, UncertainCommit, BudgetExceeded, MemoryError)
"""Errors that every part may raise. Each keeps its meaning."""
_LONGEST = 500
"""Most characters of a foreign error's text that a failure repeats."""
_ROLES = {
    "policy": "propose",
    "value": "evaluate",
    "reflector": "reflect",
    "comparator": "compare",
    "algorithm": "ask",
    "memory": "retrieve",
}
"""Methods by which a part of another role is known."""


class Misfit(Exception):
    """A result outside the contract of a part, in words that follow the part's name."""


@contextmanager
def calling(
    call: str, part: object = None, failure: type[ExactError] = PartError, *, admits: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Call a part in this block. Raise `failure` for whatever it raises that its contract does not name, and for a Misfit.

    A cancellation from outside stays one, whatever the part makes of it. What ends the process passes. A UsageError passes if a part of
    this package raises it, which speaks of the configuration.

    Args:
        call: Role of the part and its method, such as `policy.propose`.
        part: The part, whose class the failure names. None: the caller's own block.
        failure: Type of the error to raise.
        admits: Further errors of the part's contract.
    """
    try:
        yield
    except (*_CONTRACT, *admits):
        raise
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, UsageError) and (part is None or not is_own(part)):
            raise
        if _is_cancelled():
            raise asyncio.CancelledError from error
        raise failure(f"{call}: {_said(part, call.rpartition('.')[2], error)}") from error


def _said(part: object, method: str, error: BaseException) -> str:
    """Return what a part did, in words."""
    if part is None:
        return described(error)
    if isinstance(error, Misfit):
        return f"{name_of(part)} {error}"
    if isinstance(error, AttributeError) and error.obj is part and error.name == method:
        return f"{name_of(part)} has no {method}"
    return f"{name_of(part)} raised {described(error)}"


async def awaited(found: Awaitable[T]) -> T:
    """Return the result of a part's coroutine. Raise Misfit if the method is not one."""
    if inspect.isasyncgen(found):
        raise Misfit("yields its result: return it")
    if not inspect.isawaitable(found):
        raise Misfit(f"returned {shown(found)} from a plain function: write `async def`")
    return await found


def expect(found: object, kind: type[T]) -> T:
    """Return the result of a part. Raise Misfit unless it is a struct of a kind, in all its fields, that can be stored."""
    if not isinstance(found, kind):
        raise misfit(found, kind.__name__)
    try:
        msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=kind)
    except Exception as error:
        raise Misfit(f"returned {kind.__name__} that cannot be stored: {described(error)}") from error
    return found


def expect_all(found: object, kind: type[T]) -> tuple[T, ...]:
    """Return the structs of a sequence that a part gave, as `expect` does each."""
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise misfit(found, f"a sequence of {kind.__name__}")
    return tuple(expect(each, kind) for each in found)


def misfit(found: object, expected: str) -> Misfit:
    """Return the error for a result that is not what was expected."""
    if inspect.iscoroutine(found):
        found.close()
    return Misfit(f"returned {shown(found)}: expected {expected}")


def check_part(role: str, part: object, *methods: str, verb: str = "is") -> None:
    """Raise UsageError unless a part is an object that has the methods of its contract.

    Args:
        role: Name of the part for the error: an argument, or the key that named it.
        part: The part.
        methods: Names of the methods.
        verb: Word between role and part.
    """
    if inspect.isclass(part):
        raise UsageError(f"{role} {verb} the class {part.__name__}: give an instance of it, such as {part.__name__}()")
    for method in methods:
        if not callable(getattr(part, method, None)):
            other = next((each for each, known in _ROLES.items() if known != method and callable(getattr(part, known, None))), "")
            hint = f"its {_ROLES[other]} makes it a {other}: give each part in its place" if other else f"give an object that has {method}"
            raise UsageError(f"{role} {verb} {shown(part)}, which has no {method}: {hint}")


def without_result(found: object) -> None:
    """Raise Misfit for the result of a method that is `async def` and should be a plain function. It has done nothing."""
    if inspect.isawaitable(found):
        raise misfit(found, "a plain function")


def is_own(part: object) -> bool:
    """Return whether a part is the user's own, and not one of this package."""
    return type(part).__module__.partition(".")[0] != "exact"


def name_of(part: object) -> str:
    """Return the name of a class or function, or that of an object's class. A wrapper has the name of what it wraps."""
    name = getattr(part, "__name__", None)
    return name if isinstance(name, str) else type(part).__name__


def shown(found: object) -> str:
    """Return a value in a few words: a plain one with its type, any other by its type."""
    if found is None or inspect.isclass(found):
        return "None" if found is None else f"the class {found.__name__}"
    if inspect.isawaitable(found):
        return "a coroutine that was not awaited"
    plain = isinstance(found, str | bytes | int | float | list | tuple | dict)
    return f"{type(found).__name__} {inert(reprlib.repr(found), 80)}" if plain else f"an object of type {type(found).__name__}"


def described(error: BaseException) -> str:
    """Return an error of foreign code in one line: its type, its text, and the line that raised it. Of a group, the first one in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = inert(" ".join("".join(traceback.format_exception_only(error)).split()), _LONGEST)  # copes with an error that has no text
    frames = traceback.extract_tb(error.__traceback__)
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else text


def _is_cancelled() -> bool:
    """Return whether the present task is being cancelled from outside. Nothing is outside of a task."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0
