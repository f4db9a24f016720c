"""The boundary to parts that a user or a package brings: environments, policies, value functions, memories, evaluators, algorithms.

A part may raise and return anything. What its contract does not name becomes one typed failure here, which names the part.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from exact.errors import BudgetExceeded, ExactError, InfrastructureError, PartError, UncertainCommit, UsageError
from exact.text import inert

T = TypeVar("T")
_CONTRACT: tuple[type[Exception], ...] = (InfrastructureError, PartError, UsageError, UncertainCommit, BudgetExceeded, MemoryError)
"""Errors that every part may raise. Each keeps its meaning."""
_LONGEST = 500
"""Most characters of a foreign error's text that a failure repeats."""


@contextmanager
def calling(part: str, failure: type[ExactError] = PartError, *, admits: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Call a part in this block. Raise `failure` for whatever it raises that its contract does not name.

    A cancellation from outside stays one, whatever the part makes of it. What ends the process passes. `part`: name of the part and its
    method. `admits`: further errors of its contract.
    """
    try:
        yield
    except (*_CONTRACT, *admits):
        raise
    except (Exception, asyncio.CancelledError) as error:
        if _is_cancelled():
            raise asyncio.CancelledError from error
        raise failure(f"{part}: {described(error)}") from error


def expect(part: str, found: object, kind: type[T], failure: type[ExactError] = PartError) -> T:
    """Return the result of a part. Raise `failure` unless it is a struct of a kind, in all its fields, that can be stored."""
    if not isinstance(found, kind):
        raise failure(f"{part}: expected {kind.__name__}, got {type(found).__name__}")
    with calling(part, failure):
        msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=kind)
    return found


def expect_all(part: str, found: object, kind: type[T]) -> tuple[T, ...]:
    """Return the structs of a sequence that a part gave, as `expect` does each."""
    with calling(part):
        return tuple(expect(part, each, kind) for each in cast(Sequence[object], found))


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
